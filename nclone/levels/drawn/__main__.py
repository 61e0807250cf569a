"""Prove the drawn levels: inputs from a search for those that have none that win."""

from __future__ import annotations

from nclone.levels.drawn import SOLUTIONS, drawn_levels, drawn_solutions, save_solutions
from nclone.search.proof import Prover, wins


def main() -> None:
    """Write `solutions.npz`; names the levels without a proof."""
    known = drawn_solutions() if SOLUTIONS.is_file() else {}
    found, prover = {}, Prover()
    for name, level in drawn_levels().items():
        if name in known and wins(level, known[name]):
            found[name] = known[name]
            continue
        inputs = prover.solution(level)
        if inputs is None:
            print(f"{name}: not proved")
        else:
            print(f"{name}: {inputs.frames} frames")
            found[name] = inputs
    save_solutions(found)


if __name__ == "__main__":
    main()
