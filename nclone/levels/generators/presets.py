"""The presets of all generators, and the categories that draw from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from nclone.levels.generators.chambers import MultiChamber, SingleChamber
from nclone.levels.generators.corridors import Corridors, HorizontalCorridor, VerticalCorridor
from nclone.levels.generators.jumps import JumpPlatforms, JumpRequired
from nclone.levels.generators.lively import ARENAS, BUILDINGS, CAVES
from nclone.levels.generators.maze import Maze, MineMaze
from nclone.levels.generators.terrain import Hills, Islands

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas


class Generator(Protocol):
    """Draws one level on a canvas; its parameters are its fields."""

    def build(self, canvas: Canvas) -> None:
        """Carve rooms and place spawn, exit and mines."""


PRESETS: dict[str, dict[str, Generator]] = {
    "maze": {
        "tiny": Maze((6, 10), (4, 7)),
        "small": Maze((10, 16), (6, 10)),
        "large": Maze((24, 40), (12, 22), (2, 4)),
        "exploration": Maze((30, 42), (16, 23), (2, 4), loops=0.15, decoration=0.2),
    },
    "horizontal_corridor": {
        "simplest": HorizontalCorridor((4, 12), (1, 3)),
        "few_mines": HorizontalCorridor((8, 16), (3, 4), mines=(1, 2), mine_spacing=5),
        "mines": HorizontalCorridor((10, 20), (3, 5), mines=(2, 4)),
        "simpler": HorizontalCorridor((8, 20), (2, 5), decoration=0.2),
        "simple": HorizontalCorridor((14, 23), (3, 5), mines=(0, 2), bumps=0.15, decoration=0.2),
    },
    "vertical_corridor": {
        "simplest": VerticalCorridor((1, 3), (8, 11)),
        "few_mines": VerticalCorridor((3, 4), (8, 12), (6, 8), wall_mines=True),
        "mines": VerticalCorridor((3, 5), (9, 14), (4, 6), wall_mines=True),
        "simpler": VerticalCorridor((2, 5), (8, 14), decoration=0.2),
        "simpler_mines": VerticalCorridor((3, 5), (8, 14), (5, 7), wall_mines=True),
        "platforms": VerticalCorridor((4, 6), (10, 18), platforms=True),
        "simple": VerticalCorridor((2, 6), (10, 18), chaotic=0.1, decoration=0.2),
        "medium": VerticalCorridor(
            (4, 6), (12, 20), (4, 6), wall_mines=True, middle_mines=True, chaotic=0.1
        ),
        "descent": VerticalCorridor((2, 5), (8, 14), upwards=False),
        "complex": VerticalCorridor(
            (3, 6), (16, 22), (3, 5), wall_mines=True, middle_mines=True, chaotic=0.25
        ),
    },
    "corridors": {
        "simplest": Corridors((2, 2), (6, 12), (1, 2), (1, 3), (6, 8)),
        "few_mines": Corridors((2, 2), (10, 16), (3, 3), (2, 3), (6, 8), mines=(1, 1)),
        "mines": Corridors((2, 3), (12, 18), (3, 3), (2, 3), (6, 9), mines=(1, 2)),
        "simple": Corridors((3, 3), (8, 16), (1, 3), (2, 4), (6, 9), decoration=0.2),
        "medium": Corridors((3, 4), (8, 20), (2, 3), (1, 5), (6, 12), mines=(0, 2)),
        "complex": Corridors((4, 5), (8, 25), (2, 3), (1, 6), (6, 15), mines=(1, 3)),
    },
    "single_chamber": {
        "obstacle": SingleChamber((12, 22), (5, 8), obstacle=(1, 3)),
        "gap": SingleChamber((12, 22), (5, 8), gap=(2, 4)),
        "mines": SingleChamber((16, 30), (5, 9), mines=(1, 3)),
        "ceiling": SingleChamber((16, 30), (6, 10), obstacle=(0, 2), ceiling=0.3),
        "gauntlet": SingleChamber(
            (20, 30), (6, 10), obstacle=(1, 3), gap=(2, 4), gap_mines=True, mines=(1, 2)
        ),
        "complex": SingleChamber(
            (24, 40), (7, 12), 4, 2, (2, 4), (3, 5), gap_mines=True, mines=(2, 4), ceiling=0.2
        ),
    },
    "multi_chamber": {
        "medium": MultiChamber((2, 2), mines=(0, 1)),
        "complex": MultiChamber((3, 4), mines=(0, 2), steps=3, locked=0.4),
        "exploration": MultiChamber((4, 4), (5, 8), (4, 8), steps=4, locked=0.7),
    },
    "jump_required": {
        "simple": JumpRequired((16, 22), (8, 10), (3, 3)),
        "medium": JumpRequired((18, 30), (8, 13), (3, 4), platform_mines=(0, 1), uneven=1),
        "complex": JumpRequired((24, 40), (10, 16), (4, 5), platform_mines=(1, 3), uneven=2),
        "heavy_mines": JumpRequired((28, 40), (10, 16), (4, 5), platform_mines=(3, 5), uneven=2),
    },
    "jump_platforms": {
        "medium": JumpPlatforms(),
        "complex": JumpPlatforms((34, 40), (20, 22), (8, 10), (1, 1), 3),
    },
    "mine_maze": {
        "medium": MineMaze((10, 24), (4, 6), (3, 4), (1, 4)),
        "complex": MineMaze((20, 42), (4, 6), (3, 4), (2, 6)),
        "heavy": MineMaze((24, 42), (4, 6), (2, 3), (3, 10)),
    },
    "islands": {
        "medium": Islands(),
        "complex": Islands((36, 38), (16, 19), crowd=0.4),
    },
    "hills": {
        "simple": Hills((16, 26), (8, 12), (1, 2), change=(1, 2)),
        "medium": Hills((20, 34), (10, 16), (2, 5), change=(1, 4)),
        "complex": Hills((28, 38), (12, 19), (4, 8), (2, 3), (2, 8), ("mild", "straight", "steep")),
    },
    "building": {**BUILDINGS},
    "cave": {**CAVES},
    "arena": {**ARENAS},
}


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
