"""63 levels drawn by hand in many styles, to try players on; nothing of ours trains on them.

`python -m nclone.levels.drawn` searches inputs for drawings that have none that win.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.untrusted.arrays import read_npz
from nclone.levels.files import DRAWING, read_level
from nclone.levels.inputs import Inputs

if TYPE_CHECKING:
    from nclone.levels.level import Level

FOLDER = Path(__file__).parent
SOLUTIONS = FOLDER / "solutions.npz"


@cache
def drawn_levels() -> dict[str, Level]:
    """All of them by name, in the order of the alphabet."""
    return {path.stem: read_level(path) for path in sorted(FOLDER.glob(f"*{DRAWING}"))}


@cache
def drawn_solutions() -> dict[str, Inputs]:
    """Inputs that win each level; names as in `drawn_levels`."""
    arrays = read_npz(SOLUTIONS)
    ends = arrays["ends"].tolist()
    parts = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return {
        str(name): Inputs(arrays["actions"][part], arrays["lengths"][part])
        for name, part in zip(arrays["names"], parts, strict=True)
    }


def save_solutions(found: dict[str, Inputs]) -> None:
    """Write the inputs of every level."""
    np.savez_compressed(
        SOLUTIONS,
        names=np.array(list(found), np.str_),
        ends=np.cumsum([len(i.actions) for i in found.values()]).astype(np.int32),
        actions=np.concatenate([i.actions for i in found.values()]),
        lengths=np.concatenate([i.lengths for i in found.values()]),
    )
