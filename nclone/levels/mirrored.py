"""Proved levels seen in a mirror, each proved again: rounding differs between left and right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nclone.levels.generators import generate
from nclone.levels.pool import PoolLevel
from nclone.levels.proof import Inputs, Prover, win_all

_OTHER_SIDE = np.array([0, 2, 1, 3, 5, 4], np.uint8)


def mirrored_actions(actions: np.ndarray) -> np.ndarray:
    """Actions 0..5 with left and right exchanged."""
    other: np.ndarray = _OTHER_SIDE[actions]
    return other


def mirrored_members(members: Sequence[PoolLevel]) -> list[PoolLevel]:
    """The mirror images of pool levels that are proved winnable.

    The mirrored inputs are played; where they do not win, a new proof is searched for, and a level
    without one is left out.
    """
    if not members:
        return []
    recipes = [replace(m.recipe, mirrored=not m.recipe.mirrored) for m in members]
    levels = [generate(recipe) for recipe in recipes]
    inputs: list[Inputs | None] = [
        Inputs(mirrored_actions(m.inputs.actions), m.inputs.lengths) for m in members
    ]
    prover = Prover()
    for k in np.flatnonzero(~win_all(levels, inputs)):  # type: ignore[arg-type]
        inputs[k] = prover.prove(levels[k], seed=recipes[k].seed & 0xFFFFFFFF).inputs
    return [
        replace(m, recipe=recipe, inputs=found, key=level.key)
        for m, recipe, level, found in zip(members, recipes, levels, inputs, strict=True)
        if found is not None
    ]
