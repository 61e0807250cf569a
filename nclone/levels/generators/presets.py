"""The presets of the plain generators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nclone.levels.generators.chambers import MultiChamber, SingleChamber
from nclone.levels.generators.corridors import Corridors, HorizontalCorridor, VerticalCorridor
from nclone.levels.generators.jumps import JumpPlatforms, JumpRequired
from nclone.levels.generators.maze import Maze, MineMaze
from nclone.levels.generators.terrain import Hills, Islands

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas


class Generator(Protocol):
    """Draws one level on a canvas; its parameters are its fields."""

    def build(self, canvas: Canvas) -> None:
        """Carve rooms and place spawn, exit and mines."""


PLAIN_PRESETS: dict[str, dict[str, Generator]] = {
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
}
