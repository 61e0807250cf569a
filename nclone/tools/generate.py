"""What `scripts/generate.py env=nclone` does: a pool of proved levels and a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.table import Table

from frugal_rl.errors import ConfigError
from frugal_rl.report.terminal import show
from nclone.levels.generators import CATEGORIES
from nclone.levels.growing import PoolMaker, grow_pool
from nclone.levels.sources import MIRRORED

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from nclone.config import NppConfig


POOL_NAME = "pool.npz"
TEST_SHARE = 5
"""One test level for so many training levels."""
MAX_SEED = (1 << 16) - 1


def generate(run: RunConfig, folder: str, count: int, seed: int) -> list[Path]:
    """Write `folder`/pool.npz and pool.json: `count` proved training levels per category.

    A fifth as many are for tests. The categories are those that `env.levels` names, all nine where
    it names none. What the file holds already is kept: a search that was stopped goes on.

    Raises:
        ConfigError: a count or seed that cannot be, or levels that are only partly categories.
    """
    if count < 1:
        raise ConfigError(f"count is {count}; use 1 or more.")
    if not 0 <= seed <= MAX_SEED:
        raise ConfigError(f"seed is {seed}; a pool draws from seeds 0 to {MAX_SEED}.")
    path = Path(folder) / POOL_NAME
    maker = grow_pool(
        path,
        count,
        max(1, count // TEST_SHARE),
        _categories(cast("NppConfig", run.env).levels),
        seed,
    )
    show(search_table(maker))
    return [path, path.with_suffix(".json")]


def search_table(maker: PoolMaker) -> Table:
    """Category | set | proved | share | rejected | same | median seconds."""
    table = Table()
    for name in ("category", "set", "proved", "share", "unsolved", "same", "median s"):
        table.add_column(name, justify="left" if name in ("category", "set") else "right")
    for t in maker.tallies.values():
        table.add_row(
            t.category,
            t.split.value,
            f"{t.proved:,}",
            f"{t.share:.1%}",
            f"{t.unsolved:,}",
            f"{t.duplicates:,}",
            f"{t.median_seconds:.4f}",
        )
    return table


def _categories(levels: Sequence[str]) -> list[str]:
    """The categories that `env.levels` names, `mirrored:` ones included; all where none is."""
    named = [name for name in levels if name.removeprefix(MIRRORED) in CATEGORIES]
    others = [name for name in levels if name not in named]
    if named and others:
        raise ConfigError(
            f"env.levels={list(levels)}: a pool is generated from categories, and {others} are "
            f"none. Use some of {', '.join(CATEGORIES)}."
        )
    return named or list(CATEGORIES)
