"""Levels without end: generators, presets and categories, each level named by its recipe."""

from __future__ import annotations

from dataclasses import dataclass

from nclone.levels.categories import CATEGORIES, EASY, LIVELY, PLAIN, Category
from nclone.levels.format import pack_level
from nclone.levels.generators.canvas import Canvas
from nclone.levels.generators.dice import Dice
from nclone.levels.generators.lively import ARENAS, BUILDINGS, CAVES
from nclone.levels.generators.mirror import mirror_level
from nclone.levels.generators.presets import PLAIN_PRESETS, Generator
from nclone.levels.level import Level, load_level

__all__ = [
    "CATEGORIES",
    "EASY",
    "LIVELY",
    "PLAIN",
    "PRESETS",
    "TEST_SEEDS",
    "TRAIN_SEEDS",
    "Category",
    "Recipe",
    "draw_recipes",
    "generate",
    "level_content",
    "mirror_level",
]

PRESETS: dict[str, dict[str, Generator]] = {
    **PLAIN_PRESETS,
    "building": {**BUILDINGS},
    "cave": {**CAVES},
    "arena": {**ARENAS},
}
"""The presets of all generators."""
ONE_SIDED = (
    "single_chamber",
    "jump_required",
    "jump_platforms",
    "mine_maze",
    "islands",
    "hills",
)
"""Generators that lead from left to right; every second of their recipes is mirrored."""
TRAIN_SEEDS, TEST_SEEDS = 0, 1 << 40
"""Seed bases of the two sets; a set would need a million million levels to meet the other."""


@dataclass(frozen=True, order=True)
class Recipe:
    """Everything that is needed to make a level again."""

    generator: str
    preset: str
    seed: int
    mirrored: bool = False

    @property
    def title(self) -> str:
        """Name of the level, as written into its bytes."""
        side = " mirrored" if self.mirrored else ""
        return f"{self.generator}/{self.preset} {self.seed}{side}"


def generate(recipe: Recipe) -> Level:
    """Make the level of a recipe; the same recipe gives the same bytes on every machine.

    Raises:
        ValueError: no such generator or preset; the message lists what there is.
    """
    presets = PRESETS.get(recipe.generator)
    if presets is None:
        raise ValueError(f"There is no generator '{recipe.generator}'; use one of {list(PRESETS)}.")
    if recipe.preset not in presets:
        raise ValueError(
            f"Generator '{recipe.generator}' has no preset '{recipe.preset}'; "
            f"use one of {list(presets)}."
        )
    canvas = Canvas(Dice(f"{recipe.generator}/{recipe.preset}", recipe.seed))
    presets[recipe.preset].build(canvas)
    data = pack_level(canvas.tiles, canvas.records(), recipe.title)
    return load_level(mirror_level(data) if recipe.mirrored else data)


def draw_recipes(
    category: str, count: int, base: int = TRAIN_SEEDS, first: int = 0, mirrored: bool = False
) -> list[Recipe]:
    """The recipes number `first` to `first + count` of a category: its sources in turn.

    Levels that would all lead to the right are mirrored every second time, so that a category asks
    for both sides; `mirrored` exchanges the sides of all. Nothing is made here; different levels
    are told apart by `level_content`.
    """
    if category not in CATEGORIES:
        raise ValueError(f"There is no category '{category}'; use one of {list(CATEGORIES)}.")
    sources = CATEGORIES[category].sources
    recipes = []
    for k in range(first, first + count):
        (generator, preset), turn = sources[k % len(sources)], k // len(sources)
        side = mirrored != (generator in ONE_SIDED and turn % 2 == 1)
        recipes.append(Recipe(generator, preset, base + turn, side))
    return recipes


def level_content(level: Level) -> bytes:
    """What makes two levels the same: tiles and entities, not the title."""
    return level.tiles.tobytes() + level.map_data[1230:]
