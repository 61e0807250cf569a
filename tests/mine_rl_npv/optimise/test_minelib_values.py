"""The published and recomputed values of MineLib instances (specification C3)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mine_rl_npv.data import published, read_instance, read_solution
from mine_rl_npv.data.solutions import read_pit
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.optimise.decode import list_schedule
from mine_rl_npv.optimise.exact import direct_relaxation, exact_schedule
from mine_rl_npv.optimise.problem import prepare


@pytest.fixture
def load(shared_data):
    return lambda name: read_instance(shared_data / "minelib" / name / name)


@pytest.mark.parametrize("name", published.PIT)
def test_ultimate_pits_have_their_known_value_and_blocks(load, shared_data, name):
    instance = load(name)
    pit = max_closure(instance.value, instance.graph)
    assert_allclose(instance.value[pit].sum(), published.PIT[name][0], rtol=1e-9)
    assert pit.sum() == published.PIT[name][1]
    solution = read_pit(shared_data / f"minelib/{name}/{name}_upit.sol", instance.blocks)
    assert_array_equal(pit, solution)


@pytest.mark.parametrize("name", published.CPIT_RELAXATION)
def test_cpit_relaxations_have_their_known_value(load, name):
    bound = relaxation(load(name))
    assert_allclose(bound.upper, published.CPIT_RELAXATION[name], rtol=1e-6)
    assert bound.upper - bound.primal <= 1e-8 * bound.upper


def test_the_direct_lp_of_newman1_agrees(load):
    assert_allclose(
        direct_relaxation(load("newman1")).value, published.CPIT_RELAXATION["newman1"], rtol=1e-9
    )


def test_the_pcpsp_relaxation_of_newman1_has_its_published_value(load):
    assert_allclose(
        relaxation(load("newman1"), True).upper, published.PCPSP_RELAXATION["newman1"], rtol=1e-8
    )


@pytest.mark.parametrize("file", published.SCHEDULES)
def test_published_and_reference_schedules_are_feasible_at_their_value(load, shared_data, file):
    name = file.split("_cpit_")[0]
    instance = load(name)
    path = shared_data / "minelib" / name / f"{file}.sol"
    shares = read_solution(path, instance).sum(axis=1, keepdims=True)
    verdict = check_shares(instance, shares)
    assert verdict.feasible
    assert_allclose(verdict.value, published.SCHEDULES[file], atol=0.01)


def test_greedy_list_scheduling_of_newman1_has_its_known_value(load):
    problem = prepare(load("newman1"))
    plan = list_schedule(problem, orders.value_order(problem))
    assert (
        round(problem.worth(plan.period, plan.destination)) == published.GREEDY_FORWARD["newman1"]
    )


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
    assert_allclose(result.value, published.CPIT_OPTIMUM["newman1"], rtol=1e-6)
    assert np.isfinite(result.upper)
