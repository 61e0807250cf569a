"""Search for faster wins of the bundled levels, keep what is faster, and print the table."""

from __future__ import annotations

import sys

from nclone.levels.bests import FOLDER, best_actions
from nclone.levels.bundled import bundled_level, bundled_names, winning_inputs
from nclone.replay.files import COMPACT, write_replays
from nclone.replay.inputs import Replay, inputs_of_actions
from nclone.search.solve import solve

FRAMES_PER_SECOND = 60


SEEDS_PER_ROUND = 8
"""A round of `solve` takes so many seeds."""


def main(rounds: int, names: list[str]) -> None:
    """Write `<level>.replay` where a search is faster; a line per level."""
    print("| level | stored, frames | best, frames | best, s |")
    print("|---|---|---|---|")
    for name in names or bundled_names():
        level, best = bundled_level(name), best_actions(name)
        for number in range(rounds):
            found = solve(level, seed=SEEDS_PER_ROUND * number)
            if found is not None and found.frames < len(best):
                best = found.actions
        replay = Replay(inputs_of_actions(best), level.map_data, True)
        write_replays(FOLDER / f"{name}{COMPACT}", [replay])
        seconds = len(best) / FRAMES_PER_SECOND
        print(f"| {name} | {len(winning_inputs(name))} | {len(best)} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 20, words[1:])
