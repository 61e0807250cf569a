"""Stock PPO on environments that nobody here wrote, with and without `compact`, a process each.

`python benchmarks/gymnasium_foreign.py [family or name ...]` prints a line per environment
and enters it into gymnasium_foreign.md as soon as it is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from gymnasium_stores import observation_bytes
from gymnasium_worlds import WORLDS
from stable_baselines3 import PPO

from frugal_rl.memory import usage
from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.observation.found_form import read_form
from frugal_rl.sb3 import CompactRolloutBuffer, compact, plan_stock

if TYPE_CHECKING:
    from frugal_rl.memory.choices import RolloutLocation
    from frugal_rl.store.column_spec import ColumnSpec
    from frugal_rl.store.columns import Column

STEPS, ENVS, UPDATES, BATCH = 128, 4, 4, 256
FAMILIES = {
    "atari": ("Pong, 4 x 84 x 84", "Breakout, 4 x 84 x 84", "SpaceInvaders, 4 x 84 x 84",
              "Riverraid, 4 x 84 x 84", "Pong, RAM"),
    "grids": ("MiniGrid DoorKey, view", "MiniGrid DoorKey, pixels", "Crafter", "Craftax Classic",
              "NetHack", "MiniHack"),
    "driving": ("highway", "parking", "CarRacing"),
    "control": ("LunarLander", "HalfCheetah", "CartPole", "dm_control, pixels"),
    "rooms": ("VizDoom", "MiniWorld"),
    "many": ("PettingZoo pursuit",),
    "games": ("Tetris", "trading", "Flappy Bird", "Mortar Mayhem"),
}  # fmt: skip
WORDS = "differences in known words"
ATARI = f"stack of 4 along 1 x 7056 B, {WORDS}"
DECLARED = {
    "Pong, 4 x 84 x 84": {"obs": ATARI},
    "Breakout, 4 x 84 x 84": {"obs": ATARI},
    "Seaquest, 4 x 84 x 84": {"obs": ATARI},
    "MiniGrid DoorKey, view": {"obs": WORDS},
    "MiniGrid DoorKey, pixels": {"obs": "tiles of 8 x 8 pixels"},
    "Crafter": {"obs": "tiles of 7 x 7 pixels"},
    "CarRacing": {"obs": WORDS},
    "Pong, RAM": {"obs": WORDS},
    "CartPole": {"obs": "as it is"},
}
"""Forms that a person names who knows the environment, as in a file for `env.spec`."""
PAGE = Path(__file__).with_suffix(".md")
HEAD = (
    "environment", "SB3 B", "extra B", "ours B", "declared B", "share", "add us: SB3", "ours",
    "draw ms: SB3", "ours", "peak MiB: SB3", "ours", "plan error: SB3", "ours", "parameters",
)  # fmt: skip


def peer_keywords() -> dict[str, Any]:
    """sb3-extra-buffers with LZ4, its smallest exact form on most of these."""
    from sb3_extra_buffers.compressed import CompressedRolloutBuffer

    types = {"elem_type": np.uint8, "runs_type": np.uint16}
    given = {"compression_method": "lz4-block", "dtypes": types}
    return {"rollout_buffer_class": CompressedRolloutBuffer, "rollout_buffer_kwargs": given}


class DeclaredRollout(CompactRolloutBuffer):
    """Columns that begin in the forms that were declared, and try no others."""

    forms: ClassVar[dict[str, str]] = {}

    def _column(self, spec: ColumnSpec, location: RolloutLocation, folder: str) -> Column:
        codec = FoundCodec(form=read_form(self.forms[spec.name]))
        return super()._column(replace(spec, codec=codec), location, folder)


def declared_keywords(name: str) -> dict[str, Any]:
    """The rollout with the forms of `DECLARED`."""
    DeclaredRollout.forms = DECLARED[name]
    return {"rollout_buffer_class": DeclaredRollout}


def timed(buffer: Any, spent: dict[str, list[int]]) -> None:
    """Let a buffer's add and get tell their processor time."""
    add, get = buffer.add, buffer.get

    def timed_add(*arguments: Any, **keywords: Any) -> None:
        begin = time.process_time_ns()
        add(*arguments, **keywords)
        spent["add"].append(time.process_time_ns() - begin)

    def timed_get(batch_size: int | None = None) -> Any:
        drawn = get(batch_size)
        while True:
            begin = time.process_time_ns()
            batch = next(drawn, None)
            if batch is None:
                return
            spent["draw"].append(time.process_time_ns() - begin)
            yield batch

    buffer.add, buffer.get = timed_add, timed_get


def run(name: str, kind: str) -> dict[str, Any]:
    """One training run in this process, and all that the table says of it."""
    torch.set_num_threads(1)
    env = WORLDS[name](ENVS)
    space = env.observation_space
    picture = len(space.shape or ()) == 3 and space.dtype == np.uint8 and min(space.shape[1:]) > 35
    policy = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    policy = "CnnPolicy" if picture else policy
    given = {"n_steps": STEPS, "batch_size": BATCH, "n_epochs": 1, "device": "cpu", "seed": 0}
    env.reset()  # a renderer is loaded by the first picture
    plan = plan_stock(PPO, policy, env, **given)
    usage.reset_peak()
    keywords = {
        "sb3": dict,
        "ours": lambda: compact(env),
        "extra": peer_keywords,
        "declared": lambda: declared_keywords(name),
    }[kind]()
    model = PPO(policy, env, **given, **keywords)
    spent: dict[str, list[int]] = {"add": [], "draw": []}
    timed(model.rollout_buffer, spent)
    model.learn(STEPS * ENVS * UPDATES)
    weights = b"".join(p.detach().numpy().tobytes() for p in model.policy.parameters())
    planned = plan.stock + plan.kernels if kind == "sb3" else plan.compact
    held = observation_bytes(model.rollout_buffer)
    peak = usage.peak_resident_bytes()
    if kind == "ours":  # the plan knows no study: what was found stands in its place
        planned += held - sum(c.spec.nbytes(STEPS, ENVS) for c in columns_of(model))
    return {
        "bytes": held / STEPS / ENVS,
        "add": float(np.median(spent["add"][STEPS:])) / 1000 / ENVS,
        "draw": float(np.median(spent["draw"][2:])) / 1e6,
        "peak": (peak - plan.process) / 2**20,
        "error": planned / peak - 1,
        "weights": hashlib.sha256(weights).hexdigest(),
    }


def columns_of(model: Any) -> list[Any]:
    """The found columns of a model."""
    return list(model.rollout_buffer.columns.values())


def child(name: str, kind: str) -> dict[str, Any] | str:
    """`run` in a process of its own, or why it did not end."""
    command = [sys.executable, __file__, "--one", name, kind]
    given = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl"}
    done = subprocess.run(command, capture_output=True, text=True, env=given)
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode or not last.startswith("{"):
        return (done.stderr.strip().splitlines() or ["nothing said"])[-1][:120]
    found: dict[str, Any] = json.loads(last)
    return found


def line(name: str) -> str:
    """One row of the table."""
    stock, ours = child(name, "sb3"), child(name, "ours")
    if isinstance(stock, str) or isinstance(ours, str):
        return f"| {name} | {stock if isinstance(stock, str) else ours} |" + " |" * 13
    peer = child(name, "extra")
    extra = "-" if isinstance(peer, str) else f"{peer['bytes']:,.0f}"
    hand = child(name, "declared") if name in DECLARED else "-"
    declared = "-" if isinstance(hand, str) else f"{hand['bytes']:,.1f}"
    equal = "equal" if stock["weights"] == ours["weights"] else "DIFFER"
    pairs = [f"{stock[k]:,.{d}f} | {ours[k]:,.{d}f}" for k, d in (("add", 1), ("draw", 2))]
    peaks = f"{stock['peak']:,.0f} | {ours['peak']:,.0f}"
    errors = f"{stock['error']:+.1%} | {ours['error']:+.1%}"
    share = f"{ours['bytes']:,.1f} | {declared} | 1/{stock['bytes'] / ours['bytes']:.1f}"
    words = [f"{stock['bytes']:,.0f}", extra, share, *pairs, peaks, errors, equal]
    return f"| {name} | {' | '.join(words)} |"


def enter(name: str, row: str) -> None:
    """Put an environment's row into the page: in the place of its old one, or behind the others."""
    lines = PAGE.read_text().splitlines()
    head = next(i for i, text in enumerate(lines) if text.startswith("|"))
    ends = next(i for i in range(head, len(lines)) if not lines[i].startswith("|"))
    rows = range(head, ends)  # other tables of the page stay
    old = [i for i in rows if lines[i].startswith(f"| {name} |")]
    lines[old[0] if old else rows[-1] + 1 : old[0] + 1 if old else rows[-1] + 1] = [row]
    PAGE.write_text("\n".join(lines) + "\n")


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(run(*sys.argv[2:4])))
        return
    print("| " + " | ".join(HEAD) + " |")
    print("|---" * len(HEAD) + "|")
    for asked in sys.argv[1:] or FAMILIES:
        for name in FAMILIES.get(asked, (asked,)):
            row = line(name)
            print(row, flush=True)
            if ModuleNotFoundError.__name__ not in row:  # one that is not installed here
                enter(name, row)


if __name__ == "__main__":
    main()
