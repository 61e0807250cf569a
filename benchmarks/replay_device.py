"""A replay that is decoded on the device, beside the same one drawn in memory and copied.

    python benchmarks/replay_device.py [transitions] [game ...]     (extra: frugal-rl[atari])

Random play of ALE's own vector environment, the ring filled once and a half. Prints bytes per
transition in memory and on the device, and milliseconds of a draw until its tensors are ready, both
ways in turn; every drawn value is compared. Without a CUDA device the processor decodes, which
says what is right and nothing about speed. Last result: see benchmarks/replay_device.md.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from replay_million import ACTIONS, GAMES, SPACE, play

from frugal_rl import ReplayBuffer

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DRAWS = {32: 40, 256: 40, 2048: 10}


def filled(game: str, size: int) -> tuple[ReplayBuffer, ReplayBuffer]:
    """The same transitions in a replay on the device and in one in memory."""
    both = (
        ReplayBuffer(size, SPACE, ACTIONS, DEVICE, location="device"),
        ReplayBuffer(size, SPACE, ACTIONS, DEVICE),
    )
    for transition in play(game, size * 3 // 2):
        for replay in both:
            replay.add(*transition)
    return both


def draw(replay: ReplayBuffer, size: int, seed: int) -> tuple[float, list[torch.Tensor]]:
    """Milliseconds until a minibatch lies on the device, and its tensors."""
    np.random.seed(seed)  # noqa: NPY002 - SB3's stream
    begun = time.perf_counter()
    drawn = [x for x in replay.sample(size) if x is not None]
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begun) * 1e3, drawn


def measure(game: str, size: int) -> str:
    """A row of the table."""
    there, here = filled(game, size)
    cells, wrong = [], 0
    for batch, repeats in DRAWS.items():
        spent = []
        for seed in range(repeats):
            (a, ours), (b, theirs) = draw(there, batch, seed), draw(here, batch, seed)
            wrong += sum(not torch.equal(x, y) for x, y in zip(ours, theirs, strict=True))
            spent.append((a, b))
        a, b = np.median(spent[2:], axis=0)
        cells.append(f"{a:.2f} / {b:.2f} = {a / b:.2f}")
    parts = there.parts()
    records = parts["replay/obs/records"] / size
    device = parts["replay/obs/on the device"] / size
    return f"| {game} | {records:.0f} | {device:.0f} | {wrong} | {' | '.join(cells)} |"


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    name = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "no CUDA device: by the CPU"
    print(f"{name}, {size:,} transitions, torch {torch.__version__}", flush=True)
    columns = " | ".join(f"draw {batch}, ms: there / copied" for batch in DRAWS)
    print(f"| game | B in memory | B on the device | differing | {columns} |", flush=True)
    for game in sys.argv[2:] or GAMES:
        print(measure(game, size), flush=True)


if __name__ == "__main__":
    main()
