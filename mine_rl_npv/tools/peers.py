"""Other programs on the same instances: `oreblocks` (PyPI), through its public functions."""

from __future__ import annotations

import importlib
import time
from types import ModuleType
from typing import Any

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing

QUICK = ("greedy", "gershon")
PEERS = ("oreblocks", "oreblocks:quick", "oreblocks:exact", "oreblocks:bz")
"""TopoSort by its relaxation and shifts; the better of its orders without, and shifts; the
first and its exact local search; its joint bound alone."""


def peer_row(
    entry: str, prefix: str, problem: str, seconds: float
) -> tuple[dict[str, Any], np.ndarray | None]:
    """A row of the leaderboard and the periods (n,) of its schedule, -1 where not mined.

    Args:
        entry: one of `PEERS`.
        prefix: the instance's path without the ending.
        problem: cpit; the peer's other problems have no schedule of the same kind.
        seconds: budget of the exact local search.

    Raises:
        ConfigError: the package is missing, or the problem is not CPIT.
    """
    if problem != "cpit":
        raise ConfigError(f"{entry} is compared on cpit.")
    ob = _oreblocks()
    started = time.perf_counter()
    mine = ob.read_cpit(f"{prefix}.cpit")
    needs = ob.read_prec(f"{prefix}.prec", mine.n_blocks)
    if entry == "oreblocks:bz":
        found = ob.cpit_bz_bound(mine, needs)
        spent = time.perf_counter() - started
        return {"bound": float(found.bound), "seconds": 0.0, "bound_seconds": spent}, None
    if entry == "oreblocks:quick":
        plans = [ob.solve_cpit(mine, needs, method=one, bound=False)[0] for one in QUICK]
        plan = max(plans, key=lambda found: found.npv)
    else:
        plan, _ = ob.solve_cpit(mine, needs)
    if entry == "oreblocks:exact":
        plan = ob.exact_local_search(mine, needs, plan, time_limit=seconds)
    spent = time.perf_counter() - started  # its bound is part of its way to the schedule
    row = {"value": float(plan.npv), "bound": plan.bound, "seconds": spent, "bound_seconds": 0.0}
    return row, np.asarray(plan.period_of_block)


def _oreblocks() -> ModuleType:
    try:
        return importlib.import_module("oreblocks")
    except ImportError as error:
        raise ConfigError(
            "oreblocks is not installed. Leave it out of board.methods, or install it: "
            f"{installing('peers')}"
        ) from error
