"""Without a CUDA device: what the N++ kernels compile to, and that it plays as the CPU does.

python benchmarks/nclone_ptx.py [--frames 300]

numba-cuda and libNVVM compile the kernels for compute capability 9.0 (H100, H200); `ptxas`, where
there is one, says how many registers they take. Their PTX then runs on this processor
(`ptx_on_cpu.py`): random actions on all bundled and golden levels, with random resets, beside a
`World`; bits are compared after each call. Ends with an error where anything differs.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numba import cuda, typeof
from numba.cuda import dispatcher
from ptx_on_cpu import compiled
from simulator import GOLDEN, sticky_actions

from nclone.levels.bundled import bundled_level, bundled_names
from nclone.levels.level import Level, load_level
from nclone.sim import cuda as kernels
from nclone.sim import state as st
from nclone.sim.table import LevelTable
from nclone.sim.world import World

CAPABILITY = (9, 0)
FRAMES_A_CALL, RESET_SHARE = 4, 0.01


def golden_levels() -> list[Level]:
    """The levels of all golden trajectories."""
    stored = np.load(GOLDEN)
    ends = np.cumsum([entry["map"] for entry in json.loads(str(stored["_meta"]))])
    maps = np.split(stored["map"], ends[:-1])
    return [load_level(level.tobytes()) for level in maps]


def as_ptx(kernel: object, arguments: tuple) -> str:
    """PTX of a kernel for these arguments, which the device gets as it is."""
    assert kernel.targetoptions["lto"] is False, "the linker would compile it once more"
    with kernels.exact():
        return cuda.compile_ptx(kernel.py_func, tuple(map(typeof, arguments)), cc=CAPABILITY)[0]


def assembled(ptx: str, folder: Path) -> str:
    """Registers, and bytes of stack and spills, of a kernel as ptxas assembles it."""
    beside = Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin/ptxas")
    ptxas = next(beside, None) or shutil.which("ptxas")
    if ptxas is None:
        return "not known | not known"
    (folder / "kernel.ptx").write_text(ptx)
    words = [str(ptxas), "-v", "-arch=sm_90", "kernel.ptx", "-o", "kernel.cubin"]
    said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stderr
    registers = re.search(r"Used (\d+) registers", said)[1]
    elsewhere = re.findall(r"(\d+) bytes (?:stack|spill)", said)
    return f"{registers} | {', '.join(elsewhere)}"


def compile_kernels(folder: Path) -> dict[str, Callable]:
    """All kernels for this processor, by name; prints what they are made of."""
    world = World([bundled_level("walk")], threads=1)
    given, bytes_ = (world.table.tables, world.arrays), np.zeros((1, 1), np.uint8)
    step = (*given, bytes_, 1, st.STOP, world.executed)
    found = {}
    print(
        "| kernel | PTX instructions | fused | registers | stack, spills stored, loaded (bytes) |"
    )
    print("|---|---|---|---|---|")
    for name, kernel, arguments in (
        ("reset", kernels.reset, (*given, world.indices(None), world.level)),
        ("advance_still", kernels.advance_still, step),
        ("advance", kernels.advance, step),
        ("gather", kernels.gather, (bytes_, 0, bytes_)),
    ):
        place = folder / name
        place.mkdir()
        ptx = as_ptx(kernel, arguments)
        count = len(re.findall(r"^\t[^.].*;$", ptx, re.MULTILINE))
        fused = ptx.count("fma.")
        print(f"| `{name}` | {count:,} | {fused} | {assembled(ptx, place)} |", flush=True)
        assert not fused, f"{name} fuses products with sums"
        found[name] = compiled(ptx, place)
    return found


class Played:
    """Worlds that are reset and advanced by compiled kernels, as `DeviceWorld` does it."""

    def __init__(self, world: World, run: dict[str, Callable]) -> None:
        self.world, self.run = world, run
        self.advance = "advance_still" if world.table.lively is None else "advance"

    def launch(self, name: str, threads: int, *arguments: object) -> None:
        """Run a kernel in blocks."""
        self.run[name](arguments, -(-threads // kernels.BLOCK), kernels.BLOCK)

    def step(self, actions: np.ndarray, on_end: int) -> None:
        """Hold actions in all worlds."""
        world = self.world
        given = (world.table.tables, world.arrays, actions, FRAMES_A_CALL, on_end, world.executed)
        self.launch(self.advance, world.num_worlds, *given)

    def reset(self, which: np.ndarray, levels: np.ndarray) -> None:
        """Reset worlds, on levels that are not negative."""
        self.launch("reset", len(which), self.world.table.tables, self.world.arrays, which, levels)

    def read(self, name: str) -> np.ndarray:
        """One field of all worlds."""
        dtype, first = st.WORLD.fields[name][:2]
        rows = self.world.worlds.view(np.uint8).reshape(-1, st.WORLD.itemsize)
        column = np.zeros((len(rows), dtype.itemsize), np.uint8)
        self.launch("gather", len(rows), rows, first, column)
        return column.view(dtype)[:, 0]


def columns(one: World, other: World) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All fields of both, as whole numbers of the same bits."""
    for name in one.arrays._fields:
        pair = getattr(one, name), getattr(other, name)
        for field in pair[0].dtype.names:
            bits = f"u{pair[0].dtype[field].base.itemsize}"
            yield tuple(np.ascontiguousarray(array[field]).view(bits) for array in pair)


def play(levels: list[Level], frames: int, run: dict[str, Callable]) -> bool:
    """Both side by side, in the three ways to go on at an end; whether all bits are the same."""
    expected, world = World(levels, threads=1), World(levels, threads=1)
    for one in (expected, world):
        one.make_room(np.arange(len(one.table)))
    played = Played(world, run)
    random = np.random.default_rng(0)
    different = values = ended = executed = 0
    for on_end in (st.RUN_ON, st.STOP, st.RESTART):
        for actions in sticky_actions(frames // FRAMES_A_CALL, len(levels))[:, None]:
            executed += int(expected.step(actions, FRAMES_A_CALL, on_end).sum())
            ended += int(expected.ended.sum())
            played.step(actions, on_end)
            which = np.nonzero(random.random(len(levels)) < RESET_SHARE)[0]
            anew = random.integers(-1, len(expected.table), len(which)).astype(np.int32)
            expected.reset(which, np.where(anew < 0, expected.level[which], anew))
            played.reset(which, anew)
            rows = [(expected.executed, world.executed), (expected.level, played.read("level"))]
            for one, other in [*rows, *columns(expected, world)]:
                different += int((one != other).sum())
                values += one.size
    print(
        f"`{played.advance}`: {len(levels)} worlds, {executed:,} frames, {ended:,} times a world "
        f"at its end: {different} of {values:,} values differ in a bit"
    )
    return not different


def main() -> None:
    """Print kernels, then the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frames", type=int, default=300)
    frames = parser.parse_args().frames
    # functions that kernels call are compiled for the device that is there
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
    levels = [*map(bundled_level, bundled_names()), *golden_levels()]
    still = [level for level in levels if LevelTable([level]).lively is None]
    with tempfile.TemporaryDirectory() as folder:
        run = compile_kernels(Path(folder))
        print()
        same = [play(some, frames, run) for some in (levels, still)]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
