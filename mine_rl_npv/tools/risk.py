"""Plans against geological uncertainty: every plan on every equally likely model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.optimise.bound import Bound, relaxation
from mine_rl_npv.optimise.decode import list_schedule
from mine_rl_npv.optimise.orders import toposort_orders
from mine_rl_npv.optimise.problem import prepare


def toposort_plan(instance: Instance, bound: Bound | None = None) -> np.ndarray:
    """Periods (n,) of the best TopoSort schedule in the two-pass decoder; `bound` spares an LP."""
    bound = bound or relaxation(instance)
    problem = prepare(instance)
    plans = [list_schedule(problem, key, True) for key in toposort_orders(problem, bound).values()]
    best = max(plans, key=lambda plan: problem.worth(plan.period, plan.destination))
    return problem.whole(best.period)


def npv_matrix(instances: Sequence[Instance], plans: Sequence[np.ndarray]) -> np.ndarray:
    """NPV (P, R) of period plans on realisations of one mine.

    The plan fixes when a block is dug; where it goes is decided when it is seen, so a block pays
    its realised value. Mining limits do not change; milling limits are the planner's estimate.
    """
    value = np.stack([instance.value for instance in instances])
    npv = np.empty((len(plans), len(instances)))
    for p, period in enumerate(plans):
        mined = np.flatnonzero(period != NEVER)
        npv[p] = value[:, mined] @ instances[0].discount[period[mined]]
    return npv
