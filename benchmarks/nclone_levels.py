"""Share of generated levels that are proved winnable, and what a proof costs.

    python benchmarks/nclone_levels.py [levels per category] [category ...]

Draws recipes that the bundled pool does not hold, so the answer says nothing about chosen seeds.
Seconds are processor time of one search on one core.
"""

import sys
import time

import numpy as np

from nclone.levels.generators import CATEGORIES, EASY, draw_recipes, generate
from nclone.levels.proof import Prover

FIRST_SEED = 1 << 50


def main(per_category: int, categories: list[str]) -> None:
    prover = Prover()
    prover.prove(generate(draw_recipes("simplest", 1, FIRST_SEED)[0]))  # compiles or loads
    print("| category | levels | proved | median s | 95 % s | mean s | make ms | frames to win |")
    print("|---|---|---|---|---|---|---|---|")
    for category in categories or CATEGORIES:
        seconds, frames, made = [], [], []
        for recipe in draw_recipes(category, per_category, FIRST_SEED):
            began = time.process_time()
            level = generate(recipe)
            generated = time.process_time()
            proof = prover.prove(level)
            seconds.append(time.process_time() - generated)
            made.append(generated - began)
            if proof.inputs is not None:
                frames.append(proof.inputs.frames)
        name = f"**{category}**" if category in EASY else category
        print(
            f"| {name} | {per_category} | {len(frames) / per_category:.1%} | "
            f"{np.median(seconds):.4f} | {np.quantile(seconds, 0.95):.3f} | "
            f"{np.mean(seconds):.4f} | {1e3 * np.median(made):.2f} | {np.median(frames):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2:])
