"""Instances by name: bundled synthetic deposits, or a path prefix of MineLib files or a CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.errors import DataError
from mine_rl_npv.data.block_model import read_csv
from mine_rl_npv.data.economics import Economics, MinePlan, model_instance
from mine_rl_npv.data.minelib import read_instance
from mine_rl_npv.data.synthetic import Deposit, deposit_instance

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance

BUNDLED: dict[str, Deposit] = {
    "porphyry_tiny": Deposit(10, 10, 5, seed=1, richness=0.7),
    "porphyry_small": Deposit(20, 20, 10, seed=2, richness=0.6),
    "porphyry": Deposit(40, 40, 20, seed=42, richness=0.5),
    "porphyry_50k": Deposit(50, 50, 20, seed=3, richness=0.5),
    "porphyry_full": Deposit(49, 71, 58, seed=4, richness=0.6, relief=0.5),
}
"""Grown from their seeds when asked for; nothing is stored."""


def open_instance(
    name: str,
    economics: Economics | None = None,
    plan: MinePlan | None = None,
    pit_only: bool = False,
) -> Instance:
    """The instance that a user named.

    Args:
        name: a bundled name, a CSV file, or the path prefix of MineLib files.
        economics: prices for block models; MineLib files bring their own money.
        plan: periods and slopes for block models.
        pit_only: whether MineLib files without periods are of use.

    Raises:
        DataError: nothing of that name exists, or its files cannot be read.
    """
    if name in BUNDLED:
        return deposit_instance(BUNDLED[name], economics, plan or MinePlan(rate=0.1))
    if name.endswith(".csv"):
        return model_instance(read_csv(name), economics, plan, Path(name).stem)
    if not Path(f"{name}.blocks").exists():
        raise DataError(
            f"There is no {name}.blocks, and '{name}' is no bundled deposit. "
            f"Bundled are {', '.join(BUNDLED)}; a MineLib instance is named by its path without "
            "the ending, a block model by its .csv file."
        )
    return read_instance(name, pit_only)
