"""The published and recomputed values of MineLib instances (specification C3)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mine_rl_npv.data import read_instance, read_solution
from mine_rl_npv.data.solutions import read_pit
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.optimise.decode import list_schedule
from mine_rl_npv.optimise.exact import direct_relaxation, exact_schedule
from mine_rl_npv.optimise.problem import prepare

UPIT = {
    "newman1": (26086899.026, 1059),
    "zuck_small": (1422726897.735, 9399),
    "kd": (652195036.915, 12154),
}
LP = {"newman1": 24486184.091, "zuck_small": 854190247.80, "kd": 409511609.47}
SCHEDULES = {
    "newman1/newman1_cpit_gmunoz120723.sol": 23483671.15,
    "zuck_small/zuck_small_cpit_gmunoz120723.sol": 788652599.55,
    "kd/kd_cpit_gmunoz120723.sol": 396858192.50,
    "newman1/newman1_cpit_optimal.sol": 24176864.82,
    "zuck_small/zuck_small_cpit_reference.sol": 840679170.06,
    "kd/kd_cpit_reference.sol": 408287882.01,
}


@pytest.fixture
def load(shared_data):
    return lambda name: read_instance(shared_data / "minelib" / name / name)


@pytest.mark.parametrize("name", UPIT)
def test_ultimate_pits_have_their_known_value_and_blocks(load, shared_data, name):
    instance = load(name)
    pit = max_closure(instance.value, instance.graph)
    assert_allclose(instance.value[pit].sum(), UPIT[name][0], rtol=1e-9)
    assert pit.sum() == UPIT[name][1]
    published = read_pit(shared_data / f"minelib/{name}/{name}_upit.sol", instance.blocks)
    assert_array_equal(pit, published)


@pytest.mark.parametrize("name", LP)
def test_cpit_relaxations_have_their_known_value(load, name):
    bound = relaxation(load(name))
    assert_allclose(bound.upper, LP[name], rtol=1e-6)
    assert bound.upper - bound.primal <= 1e-8 * bound.upper


def test_the_direct_lp_of_newman1_agrees(load):
    assert_allclose(direct_relaxation(load("newman1")).value, LP["newman1"], rtol=1e-9)


def test_the_pcpsp_relaxation_of_newman1_has_its_published_value(load):
    assert_allclose(relaxation(load("newman1"), True).upper, 24486549.022, rtol=1e-8)


@pytest.mark.parametrize("file", SCHEDULES)
def test_published_and_reference_schedules_are_feasible_at_their_value(load, shared_data, file):
    instance = load(file.split("/")[0])
    shares = read_solution(shared_data / "minelib" / file, instance).sum(axis=1, keepdims=True)
    verdict = check_shares(instance, shares)
    assert verdict.feasible
    assert_allclose(verdict.value, SCHEDULES[file], atol=0.01)


def test_greedy_list_scheduling_of_newman1_has_its_known_value(load):
    problem = prepare(load("newman1"))
    plan = list_schedule(problem, orders.value_order(problem))
    assert round(problem.worth(plan.period, plan.destination)) == 23552842


def test_column_actions_are_exact_on_all_three(load):
    for name, columns in (("newman1", 170), ("zuck_small", 1362), ("kd", 2156)):
        instance = load(name)
        position = {tuple(p): b for b, p in enumerate(instance.position.tolist())}
        assert len({p[:2] for p in position}) == columns
        for b, (x, y, z) in enumerate(instance.position.tolist()):
            above = position.get((x, y, z + 1))
            needed = instance.graph.index[instance.graph.pointer[b] : instance.graph.pointer[b + 1]]
            assert above is None or above in needed


@pytest.mark.slow
def test_the_proven_optimum_of_newman1_is_found(load):
    result = exact_schedule(load("newman1"), seconds=900, gap=5e-7)
    assert_allclose(result.value, 24176864.825, rtol=1e-6)
    assert np.isfinite(result.upper)
