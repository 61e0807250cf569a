"""Where a level begins and ends: spawn, switch and exit on floors far from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone.levels.generators.areas import Area, Cell, distances, floors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nclone.levels.generators.canvas import Canvas

TRIALS = 5
"""Places of which the best becomes the switch's."""


def place_objectives(canvas: Canvas, areas: Sequence[Area], aloft: float = 0.2) -> bool:
    """Put spawn, switch and exit on floors of the areas; tells whether there was room.

    Spawn and exit are far apart, the switch is far from both; with a probability `aloft` it hangs
    two cells above its floor.
    """
    dice = canvas.dice
    spots = [cell for area in areas for cell in floors(canvas, area)]
    if len(spots) < 3:
        return False
    reached = distances(canvas, dice.pick(spots))
    spots = [cell for cell in spots if cell in reached]
    if len(spots) < 3:
        return False
    spawn = _far(canvas, spots, reached)
    from_spawn = distances(canvas, spawn)
    goal = _far(canvas, [c for c in spots if c != spawn], from_spawn)
    from_goal = distances(canvas, goal)
    others = [c for c in spots if c not in (spawn, goal)]
    tried = [dice.pick(others) for _ in range(TRIALS)]
    switch = max(tried, key=lambda c: min(from_spawn[c], from_goal[c]))
    column, row = switch
    if dice.chance(aloft) and all(canvas.is_free(column, row - k) for k in (1, 2)):
        switch = (column, row - 2)
    canvas.spawn(*spawn)
    canvas.exit(switch, goal)
    return True


def _far(canvas: Canvas, spots: list[Cell], steps: dict[Cell, int]) -> Cell:
    """One of the farthest third of places, so that not every way is the longest."""
    ranked = sorted(spots, key=lambda c: (steps[c], c))
    return canvas.dice.pick(ranked[-max(1, len(ranked) // 3) :])
