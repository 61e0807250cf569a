"""The categories of levels, from easy to hard: where each draws from, and when it is left."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """A difficulty of levels: where it draws from, and when the curriculum leaves it.

    `regress` is the success rate below which a learner falls back, None for never.
    """

    share: float
    sources: tuple[tuple[str, str], ...]
    advance: float
    min_episodes: int
    regress: float | None = None


def _of(*names: str) -> tuple[tuple[str, str], ...]:
    pairs = (name.split("/") for name in names)
    return tuple((generator, preset) for generator, preset in pairs)


CATEGORIES: dict[str, Category] = {
    "simplest": Category(
        0.1,
        _of("vertical_corridor/simplest", "horizontal_corridor/simplest", "corridors/simplest"),
        0.70,
        100,
    ),
    "simplest_few_mines": Category(
        0.1,
        _of("vertical_corridor/few_mines", "horizontal_corridor/few_mines", "corridors/few_mines"),
        0.65,
        100,
        0.30,
    ),
    "simplest_with_mines": Category(
        0.1,
        _of("vertical_corridor/mines", "horizontal_corridor/mines", "corridors/mines"),
        0.60,
        100,
        0.30,
    ),
    "simpler": Category(
        0.1,
        _of(
            "vertical_corridor/simpler",
            "vertical_corridor/simpler_mines",
            "vertical_corridor/descent",
            "horizontal_corridor/simpler",
            "horizontal_corridor/simple",
            "corridors/simple",
        ),
        0.60,
        100,
        0.30,
    ),
    "simple": Category(
        0.2,
        _of(
            "maze/tiny",
            "hills/simple",
            "vertical_corridor/simple",
            "vertical_corridor/platforms",
            "jump_required/simple",
            "single_chamber/obstacle",
            "single_chamber/gap",
            "corridors/simple",
        ),
        0.50,
        75,
        0.30,
    ),
    "medium": Category(
        0.4,
        _of(
            "maze/small",
            "multi_chamber/medium",
            "jump_required/medium",
            "mine_maze/medium",
            "hills/medium",
            "vertical_corridor/medium",
            "islands/medium",
            "jump_platforms/medium",
            "single_chamber/mines",
            "single_chamber/ceiling",
            "single_chamber/gauntlet",
            "corridors/medium",
        ),
        0.45,
        100,
        0.25,
    ),
    "complex": Category(
        0.2,
        _of(
            "maze/large",
            "multi_chamber/complex",
            "jump_required/complex",
            "mine_maze/complex",
            "hills/complex",
            "vertical_corridor/complex",
            "islands/complex",
            "jump_platforms/complex",
            "single_chamber/complex",
            "corridors/complex",
        ),
        0.40,
        150,
        0.20,
    ),
    "exploration": Category(
        0.1, _of("maze/exploration", "multi_chamber/exploration"), 0.35, 150, 0.15
    ),
    "mine_heavy": Category(
        0.1, _of("mine_maze/heavy", "jump_required/heavy_mines"), 0.30, 200, 0.15
    ),
    "rooms": Category(
        0.2,
        _of(
            "building/rooms",
            "building/towers",
            "building/galleries",
            "building/keys",
            "cave/plain",
            "arena/plain",
        ),
        0.40,
        150,
        0.20,
    ),
    "machines": Category(
        0.2,
        _of(
            "building/machine_rooms",
            "building/machine_towers",
            "building/machine_galleries",
            "cave/machines",
            "arena/machines",
        ),
        0.35,
        150,
        0.15,
    ),
    "marathon": Category(
        0.1,
        _of("building/marathon", "building/marathon_keys", "cave/marathon", "arena/marathon"),
        0.30,
        150,
    ),
}
"""In the order of the curriculum."""
LIVELY = ("rooms", "machines", "marathon")
"""Levels like those that people make: many kinds of rooms and of machines."""
PLAIN = tuple(name for name in CATEGORIES if name not in LIVELY)
"""Corridors, chambers, mazes and open terrain with mines: one idea per level."""
EASY = ("simplest", "simplest_few_mines", "simplest_with_mines", "simpler", "simple")
