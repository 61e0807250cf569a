"""The simulator on a CUDA device: the same functions, compiled again, one thread a world.

numba-cuda compiles what `advance.py` is made of for the device; only the loop over worlds differs.
Tables and worlds stay there between steps, and what is read is copied back. On a machine without a
device, Python started with NUMBA_ENABLE_CUDASIM=1 plays the kernels below in numba's simulator:
their indices, and all transfers; of the frames it plays the CPU's own. No GPU has run them yet:
what was checked without one says `docs/simulator.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numba import config
from numpy.typing import ArrayLike, NDArray

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing
from nclone.sim import state as st
from nclone.sim.advance import advance_world, advance_worlds, reset_world, reset_worlds
from nclone.sim.table import Tables
from nclone.sim.world import Arrays, World, held_actions, level_ids

WITHOUT = "nclone.sim.world.World plays the same frames on the CPU"
MISSING = f"Worlds on a CUDA device need numba-cuda: {installing('cuda')}. {WITHOUT}."
try:
    from numba import cuda
    from numba.cuda.cudadrv import nvvm
except ImportError as missing:
    raise ConfigError(MISSING) from missing

BLOCK = 32
"""Threads of a block: one warp. Worlds share nothing, so that blocks of one warp spread few worlds
over all multiprocessors, and a place is free as soon as its 32 worlds are done. A multiprocessor
has registers for 12 warps of `advance`, less than the 32 blocks that it takes."""


kernel = cuda.jit if config.ENABLE_CUDASIM else partial(cuda.jit, lto=False)
"""Makes a kernel. numba-cuda would optimise it while linking, unless told not to, and the linker
fuses products with sums whatever `exact` says. `@cuda.jit(lto=False)` forgets its option."""


def _bare(argument: Any) -> Any:
    """What lies under the wrappers of numba's simulator, which compiled functions do not take."""
    if isinstance(argument, tuple):
        return type(argument)(*map(_bare, argument))
    return getattr(getattr(argument, "_item", argument), "_ary", argument)


def _advance_simulated(tables, arrays, actions, frames, on_end, lively, w):
    """`advance_world` by the CPU's cached kernel: compiling it alone takes as long as that one."""
    executed = np.zeros(w + 1, np.int32)
    given = (_bare(tables), _bare(arrays), _bare(actions))
    advance_worlds(*given, frames, on_end, lively, executed, w, w + 1)
    return executed[w]


def _reset_simulated(tables, arrays, w):
    """`reset_world` by the CPU's cached kernel."""
    reset_worlds(_bare(tables), _bare(arrays), np.array([w]))


if config.ENABLE_CUDASIM:
    advance_world, reset_world = _advance_simulated, _reset_simulated


def _build_advance(lively: np.int64 | None):
    """The kernel for levels with something that moves, thinks or pushes, or (None) without."""

    @kernel
    def advance(tables, arrays, actions, frames, on_end, executed):
        """Play actions[:, w] in each world w."""
        w = cuda.grid(1)
        if w < executed.shape[0]:
            executed[w] = advance_world(tables, arrays, actions, frames, on_end, lively, w)

    return advance


advance, advance_still = _build_advance(st.LIVELY), _build_advance(None)


@kernel
def reset(tables, arrays, which, levels):
    """Reset the worlds listed in `which`, on the levels beside it where these are not negative."""
    i = cuda.grid(1)
    if i < which.shape[0]:
        w = which[i]
        if levels[i] >= 0:
            arrays.worlds[w]["level"] = levels[i]
        reset_world(tables, arrays, w)


@kernel
def gather(rows, first, column):
    """Copy bytes `first`, ... of all rows into the rows of `column`."""
    i = cuda.grid(1)
    if i < column.shape[0]:
        for b in range(column.shape[1]):
            column[i, b] = rows[i, first + b]


@contextmanager
def exact() -> Iterator[None]:
    """Kernels compiled in here round each product and each sum, as the CPU does.

    libNVVM fuses them unless it is told not to, and `cuda.jit` has no option that tells it
    (https://github.com/NVIDIA/numba-cuda/issues/118).
    """
    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = lambda *given, **options: compile_ir(*given, **{**options, "fma": False})
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir


def require_device() -> None:
    """Raises a ConfigError where nothing can play the kernels.

    The CUDA target inside Numba itself, which numba-cuda replaces, knows no functions that are
    merged before types are known.
    """
    if config.ENABLE_CUDASIM:
        return
    if find_spec("numba_cuda") is None:
        raise ConfigError(MISSING)
    if not cuda.is_available():
        raise ConfigError(
            f"DeviceWorld: numba-cuda finds no CUDA device here. {WITHOUT}; "
            "NUMBA_ENABLE_CUDASIM=1 before Python starts checks the kernels without a device."
        )


def launch(compiled: Any, threads: int, *arguments: Any) -> None:
    """Run a kernel, compiled if this is its first call; no threads, no call."""
    if threads:
        with exact():
            compiled[-(-threads // BLOCK), BLOCK](*arguments)


class DeviceWorld:
    """The worlds of a `World`, copied to the current CUDA device and played there.

    What is asked for comes back: single fields by `read`, everything by `snapshot`. The `World`
    itself stays as it is; `world.restore(device.snapshot())` brings it up to date.
    """

    def __init__(self, world: World) -> None:
        """Copy tables and worlds to the device, with room for all levels of the table.

        Raises:
            ConfigError: there is no CUDA device, or no compiler for one.
        """
        require_device()
        self.num_worlds, self.num_levels = world.num_worlds, len(world.table)
        self.kernel = advance_still if world.table.lively is None else advance
        world.make_room(np.arange(self.num_levels))
        self.world = world
        self.tables = Tables(*map(cuda.to_device, world.table.tables))
        self.arrays = Arrays(*map(cuda.to_device, world.arrays))
        self.executed = cuda.to_device(world.executed)

    def reset(self, mask: ArrayLike | None = None, levels: ArrayLike | None = None) -> None:
        """Start worlds anew.

        Args:
            mask: [N] bool, or indices of worlds; None means all.
            levels: level id of each world that is reset; None keeps their levels. Levels that
                joined the table since are not on the device.
        """
        which = self.world.indices(mask)
        kept = np.full(which.shape, -1, np.int32)
        ids = kept if levels is None else level_ids(levels, which, self.num_levels)
        placed = map(cuda.to_device, (which, np.ascontiguousarray(ids)))
        launch(reset, len(which), self.tables, self.arrays, *placed)

    def step(self, actions: ArrayLike, frames: int = 4, on_end: int = st.STOP) -> None:
        """Hold actions for some frames each, in all worlds, as `World.step` does.

        Returns while the device still plays. Frames executed: `executed.copy_to_host()`.
        """
        held = cuda.to_device(held_actions(actions, self.num_worlds))
        given = (self.tables, self.arrays, held, frames, on_end, self.executed)
        launch(self.kernel, self.num_worlds, *given)

    def read(self, name: str) -> NDArray:
        """[N] field of `worlds` (`nclone.sim.state.WORLD`), of which nothing else is copied."""
        dtype, first = st.WORLD.fields[name][:2]
        rows = self.arrays.worlds.view(np.uint8).reshape(self.num_worlds, st.WORLD.itemsize)
        column = cuda.device_array((self.num_worlds, dtype.itemsize), np.uint8)
        launch(gather, self.num_worlds, rows, first, column)
        shape = (self.num_worlds, *dtype.shape)
        return column.copy_to_host().view(dtype.base).reshape(shape)

    def snapshot(self) -> Arrays:
        """Copy of all worlds, as `World.restore` takes it."""
        return Arrays(*(array.copy_to_host() for array in self.arrays))
