"""Share of generated levels that are proved winnable, what a proof costs, and what they look like.

    python benchmarks/nclone_levels.py [levels per category] [folder of pictures] [category ...]

Draws recipes that the bundled pool does not hold, so the answer says nothing about chosen seeds.
Seconds are processor time of one search on one core, frames those until the win; `same` counts
levels whose content came before, in this category or an earlier one. With a folder, writes a
contact sheet per category: the first levels with the way of their winning inputs, if proved.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from nclone.levels.generators import CATEGORIES, EASY, draw_recipes, generate, level_content
from nclone.levels.level import Level
from nclone.render.export import contact_sheet
from nclone.replay.outcome import path_of
from nclone.search.proof import Prover

FIRST_SEED = 1 << 50
COLUMNS, ROWS, COLOURS = 5, 6, 48


def main(per_category: int, folder: str, categories: list[str]) -> None:
    prover = Prover()
    prover.prove(generate(draw_recipes("simplest", 1, FIRST_SEED)[0]))  # compiles or loads
    columns = "category,levels,proved,median s,95 % s,mean s,make ms,frames,same"
    head = columns.split(",")
    print("| " + " | ".join(head) + " |")
    print("|---|---|---|---|---|---|---|---|---|")
    seen: set[bytes] = set()
    for category in categories or CATEGORIES:
        seconds, frames, made, same = [], [], [], 0
        for recipe in draw_recipes(category, per_category, FIRST_SEED):
            began = time.process_time()
            level = generate(recipe)
            generated = time.process_time()
            proof = prover.prove(level)
            seconds.append(time.process_time() - generated)
            made.append(generated - began)
            same += level_content(level) in seen
            seen.add(level_content(level))
            if proof.inputs is not None:
                frames.append(proof.inputs.frames)
        name = f"**{category}**" if category in EASY else category
        print(
            f"| {name} | {per_category} | {len(frames) / per_category:.1%} | "
            f"{np.median(seconds):.4f} | {np.quantile(seconds, 0.95):.3f} | "
            f"{np.mean(seconds):.4f} | {1e3 * np.median(made):.2f} | {np.median(frames):.0f} | "
            f"{same} |",
            flush=True,
        )
        if folder:
            write_sheet(Path(folder), category, prover)


def write_sheet(folder: Path, category: str, prover: Prover) -> None:
    """The first levels of a category, each source in turn, as one small picture."""
    levels = [generate(r) for r in draw_recipes(category, COLUMNS * ROWS, FIRST_SEED)]
    folder.mkdir(parents=True, exist_ok=True)
    save_sheet(levels, COLUMNS, prover, folder / f"levels_{category}.png")


def save_sheet(levels: Sequence[Level], columns: int, prover: Prover, file: Path) -> None:
    """Levels with the ways that win them, in few colours."""
    inputs = [prover.prove(level).inputs for level in levels]
    paths = [
        None if i is None else path_of(level, i.per_step(1))
        for level, i in zip(levels, inputs, strict=True)
    ]
    sheet = Image.fromarray(contact_sheet(levels, columns, 0.25, paths))
    few = sheet.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 1000, words[1] if len(words) > 1 else "", words[2:])
