"""Rollouts of foreign environments in SB3's buffer, sb3-extra-buffers' and ours, bit for bit equal.

`python benchmarks/gymnasium_stores.py [name ...]` prints the table of gymnasium_stores.md.
Processor time, the stores interleaved step by step; the first rollout, in which forms are chosen
and kernels compiled, is not timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium_worlds import WORLDS
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from frugal_rl.sb3 import CompactRolloutBuffer

STEPS, ENVS, ROLLOUTS, BATCH = 256, 4, 3, 256


@dataclass
class Timed:
    """A store, and what it took in the timed rollouts."""

    name: str
    buffer: Any
    add_ns: list[int] = field(default_factory=list)
    draw_ns: list[int] = field(default_factory=list)
    drawn: list[Any] = field(default_factory=list)

    def timed(self, call: Callable[[], Any]) -> tuple[int, Any]:
        """Nanoseconds of processor time, and the value."""
        begin = time.process_time_ns()
        value = call()
        return time.process_time_ns() - begin, value


def observation_bytes(buffer: Any) -> int:
    """Bytes of the observations alone."""
    if isinstance(buffer, CompactRolloutBuffer):
        return sum(column.nbytes for column in buffer.columns.values())
    kept = buffer.observations
    if isinstance(kept, dict):
        return sum(a.nbytes for a in kept.values())
    if kept.dtype == object:  # a reference, and a bytes object with its header
        return kept.nbytes + sum(sys.getsizeof(item) for item in kept.ravel())
    return kept.nbytes


def stores(env: Any) -> list[Timed]:
    """SB3's, the peer's where it takes the space, ours."""
    space = env.observation_space
    kind = DictRolloutBuffer if isinstance(space, spaces.Dict) else RolloutBuffer
    given = {"device": "cpu", "n_envs": ENVS}
    made = [Timed("sb3", kind(STEPS, space, env.action_space, **given))]
    try:
        from sb3_extra_buffers.compressed import CompressedRolloutBuffer

        if isinstance(space, spaces.Box) and space.dtype == np.uint8:
            peer = CompressedRolloutBuffer(
                STEPS, space, env.action_space, compression_method="lz4-block",
                dtypes={"elem_type": np.uint8, "runs_type": np.uint16}, **given,
            )  # fmt: skip
            made.append(Timed("extra", peer))
    except (ImportError, AssertionError, KeyError, ValueError) as error:
        print(f"without sb3-extra-buffers: {error!r}", file=sys.stderr)
    return [*made, Timed("ours", CompactRolloutBuffer(STEPS, space, env.action_space, **given))]


def play(env: Any, kinds: list[Timed]) -> dict[str, int]:
    """Fill and draw all stores over some rollouts; bytes of observations when the last was full."""
    obs, starts, zeros = env.reset(), np.ones(ENVS, np.bool_), torch.zeros(ENVS)
    held: dict[str, int] = {}
    for rollout in range(ROLLOUTS):
        for kind in kinds:
            kind.buffer.reset()
            kind.add_ns.clear()
        for _ in range(STEPS):
            actions = np.array([env.action_space.sample() for _ in range(ENVS)])
            for kind in kinds:
                row = obs, actions, np.zeros(ENVS), starts, zeros, zeros
                spent, _ = kind.timed(lambda k=kind, r=row: k.buffer.add(*r))
                kind.add_ns.append(spent)
            obs, _, starts, _ = env.step(actions)
        for kind in kinds:
            held[kind.name] = observation_bytes(kind.buffer)
            kind.buffer.compute_returns_and_advantage(zeros, starts)
            np.random.seed(rollout)  # noqa: NPY002 - SB3 draws from it
            spent, kind.drawn = kind.timed(lambda k=kind: list(k.buffer.get(BATCH)))
            kind.draw_ns.append(spent)
        for kind in kinds[1:]:
            assert same(kinds[0].drawn, kind.drawn), f"{kind.name} drew something else"
    return held


def same(left: Any, right: Any) -> bool:
    """Whether samples are equal, bit for bit."""
    if isinstance(left, torch.Tensor):
        return left.numpy().tobytes() == right.numpy().tobytes()
    if isinstance(left, dict):
        return all(same(left[key], right[key]) for key in left)
    return all(same(a, b) for a, b in zip(left, right, strict=True))


def line(name: str, kinds: list[Timed], held: dict[str, int]) -> str:
    """One row of the table."""
    count = STEPS * ENVS
    by_name = {kind.name: kind for kind in kinds}
    stock, ours = by_name["sb3"], by_name["ours"]
    # the median step: a few steps in each rollout also look at the form
    add = np.median(ours.add_ns) / np.median(stock.add_ns)
    peer = f"{held['extra'] / count:,.0f}" if "extra" in held else "-"
    forms = {s.form.name for c in ours.buffer.columns.values() for s in c.segments}
    words = "; ".join(sorted(forms)) if len(forms) < 4 else f"{len(forms)} forms"
    share = held["sb3"] / held["ours"]
    return (
        f"| {name} | {held['sb3'] / count:,.0f} | {peer} | {held['ours'] / count:,.1f} "
        f"| 1/{share:.1f} | {add:.2f} | {min(ours.draw_ns) / min(stock.draw_ns):.2f} | {words} |"
    )


def main() -> None:
    print("| environment | SB3 | extra | ours | share | add | draw | form |")
    print("|---|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or WORLDS:
        try:
            env = WORLDS[name](ENVS)
        except ImportError as error:
            print(f"| {name} | not here: {error} | | | | | | |", flush=True)
            continue
        kinds = stores(env)
        print(line(name, kinds, play(env, kinds)), flush=True)
        env.close()


if __name__ == "__main__":
    main()
