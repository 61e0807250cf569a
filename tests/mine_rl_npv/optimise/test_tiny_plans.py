"""Plans of a few blocks, where the best answer can be found by trying them all."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.instance import NEVER, GeneralRows, Graph, Instance
from mine_rl_npv.optimise.check import check_periods
from mine_rl_npv.optimise.decode import (
    best_moves,
    empty_schedule,
    list_schedule,
    prune,
    settle,
)
from mine_rl_npv.optimise.problem import pace_of, prepare
from mine_rl_npv.optimise.shift import shift_search
from mine_rl_npv.optimise.window import slide_windows

PERIODS = 3


def random_mine(seed, blocks=6, resources=1, destinations=1):
    """A mine whose blocks need some of those before them, with room for two or so per period."""
    rng = np.random.default_rng(seed)
    needs = [np.flatnonzero(rng.random(b) < 0.35) for b in range(blocks)]
    pointer = np.concatenate(([0], np.cumsum([len(n) for n in needs]))).astype(np.int64)
    money = rng.integers(-4, 12, (blocks, destinations)).astype(float)
    tonnes = rng.integers(1, 6, (blocks, destinations, resources)).astype(float)
    return Instance(
        name=f"random {seed}",
        position=np.column_stack((np.arange(blocks), np.zeros((blocks, 2)))).astype(np.int32),
        graph=Graph(pointer, np.concatenate(needs).astype(np.int32)),
        value=money[:, 0],
        periods=PERIODS,
        rate=0.1,
        use=tonnes[:, 0],
        low=np.zeros((resources, PERIODS)),
        high=np.full((resources, PERIODS), 8.0),
        destination_value=money,
        destination_use=tonnes,
    )


def best_of_all(problem):
    """The worth of the best plan: every period of every block is tried."""
    graph, best = problem.graph, 0.0
    for period in itertools.product(range(-1, PERIODS), repeat=problem.blocks):
        chosen = np.array(period)
        if respects(chosen, graph) and fits(problem, chosen):
            best = max(best, problem.worth(chosen, np.zeros(problem.blocks, int)))
    return best


def respects(period, graph):
    for b in np.flatnonzero(period >= 0):
        needed = period[graph.index[graph.pointer[b] : graph.pointer[b + 1]]]
        if (needed < 0).any() or (needed > period[b]).any():
            return False
    return True


def fits(problem, period):
    room = problem.room.copy()
    for b in np.flatnonzero(period >= 0):
        room[:, period[b]] -= problem.use[b, 0]
    return bool((room >= 0).all())


@pytest.mark.parametrize("seed", range(6))
def test_every_search_ends_between_its_beginning_and_the_best_of_all(seed):
    problem = prepare(random_mine(seed))
    best = best_of_all(problem)
    plan = list_schedule(problem, problem.value[:, 0])
    worth = [problem.worth(plan.period, plan.destination)]
    for improve in (
        lambda: settle(problem, plan, 3),
        lambda: shift_search(problem, plan, 30, 6),
        lambda: prune(problem, plan),
        lambda: slide_windows(problem, plan, width=PERIODS, seconds=5.0, rounds=1),
    ):
        improve()
        worth.append(problem.worth(plan.period, plan.destination))
        assert respects(plan.period, problem.graph)
        assert fits(problem, plan.period)
    assert_array_equal(np.maximum.accumulate(worth), worth)
    assert_allclose(worth[-1], best)


@pytest.mark.parametrize("seed", range(6))
def test_a_window_over_all_periods_is_the_best_of_all_from_nothing(seed):
    problem = prepare(random_mine(seed))
    plan = empty_schedule(problem)
    gain = slide_windows(problem, plan, width=PERIODS, seconds=5.0, rounds=1)
    assert_allclose(gain, best_of_all(problem))
    assert_allclose(problem.worth(plan.period, plan.destination), gain)


def test_without_time_no_window_is_tried():
    problem = prepare(random_mine(3, blocks=10))
    plan = list_schedule(problem, problem.value[:, 0])
    before = plan.period.copy()
    slide_windows(problem, plan, width=2, seconds=0.4)
    assert_array_equal(plan.period, before)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("destinations", [1, 2])
def test_no_single_move_gains_after_the_sweeps(seed, destinations):
    mine = random_mine(seed, blocks=9, resources=2, destinations=destinations)
    problem = prepare(mine, destinations > 1)
    plan = list_schedule(problem, problem.value.max(axis=1))
    for _ in range(20):
        settle(problem, plan)
    worth = problem.worth(plan.period, plan.destination)
    for b in range(problem.blocks):
        for t in range(-1, PERIODS):
            for d in range(destinations):
                period, destination = plan.period.copy(), plan.destination.copy()
                period[b], destination[b] = t, d
                room = problem.room.copy()
                for i in np.flatnonzero(period >= 0):
                    room[:, period[i]] -= problem.use[i, destination[i]]
                if respects(period, problem.graph) and (room >= 0).all():
                    assert problem.worth(period, destination) <= worth + 1e-9, (b, t, d)


def test_moves_say_what_they_gained():
    problem = prepare(random_mine(4, blocks=12))
    plan = list_schedule(problem, -problem.value[:, 0])
    before = problem.worth(plan.period, plan.destination)
    gain = best_moves(problem.pit.order[::-1].copy(), problem.pit, plan)
    assert_allclose(problem.worth(plan.period, plan.destination) - before, gain)


def chain(values, uses=None, high=10.0, **changes):
    """Blocks one below the other: each needs the one before."""
    n = len(values)
    uses = np.ones((n, 1)) if uses is None else np.array(uses, float)[:, None]
    kept = {
        "name": "chain",
        "position": np.column_stack((np.zeros((n, 2)), np.arange(n)[::-1])).astype(np.int32),
        "graph": Graph(
            np.maximum(np.arange(n + 1) - 1, 0).astype(np.int64), np.arange(n - 1, dtype=np.int32)
        ),
        "value": np.array(values, float),
        "periods": PERIODS,
        "rate": 1.0,
        "use": uses,
        "low": np.zeros((1, PERIODS)),
        "high": np.full((1, PERIODS), high),
        "destination_value": np.array(values, float)[:, None],
        "destination_use": uses[:, None],
    }
    return Instance(**{**kept, **changes})


def test_list_scheduling_digs_as_early_as_there_is_room():
    problem = prepare(chain([1, 1, 1, 1], high=1.0))
    assert list_schedule(problem, np.zeros(4)).period.tolist() == [0, 1, 2, NEVER]


def test_waste_waits_for_the_ore_below_it():
    problem = prepare(chain([-1, -1, 9], uses=[1, 1, 10], high=10.0))
    plan = list_schedule(problem, np.zeros(3))
    assert plan.period.tolist() == [0, 0, 1]
    settle(problem, plan)
    assert plan.period.tolist() == [0, 0, 1]
    roomy = prepare(chain([-1, -1, 9], uses=[1, 1, 10], high=12.0))
    plan = list_schedule(roomy, np.zeros(3))
    settle(roomy, plan)
    assert plan.period.tolist() == [0, 0, 0]


def test_waste_that_nothing_below_pays_for_is_left():
    problem = prepare(chain([1, -2, 9]))
    plan = list_schedule(problem, np.zeros(3))
    plan.period[2] = NEVER
    plan.room[0, 0] += problem.use[2, 0, 0]
    prune(problem, plan)
    assert plan.period.tolist() == [0, NEVER, NEVER]
    assert plan.room.tolist() == [[9000, 10000, 10000]]


def test_a_pit_holds_only_what_pays():
    problem = prepare(chain([1, -2, 1, -9, 3]))
    assert problem.inside.tolist() == [True, False, False, False, False]
    assert problem.blocks == 1
    assert problem.whole(np.array([2])).tolist() == [2, NEVER, NEVER, NEVER, NEVER]


def test_tonnes_are_kilograms_rounded_to_the_safe_side():
    problem = prepare(chain([1.0], uses=[1.0001], high=2.9999))
    assert problem.use.dtype == problem.room.dtype == np.int64
    assert problem.use.tolist() == [[[1001]]]
    assert problem.room[0, 0] == 2999


def test_prices_choose_the_destination_that_the_list_prefers():
    mine = random_mine(1, blocks=4, destinations=2)
    money = np.array([[9.0, 8.0]] * 4)
    tonnes = np.array([[[5.0], [1.0]]] * 4)
    mine = Instance(
        **{
            **{name: getattr(mine, name) for name in mine.__dataclass_fields__},
            "destination_value": money,
            "destination_use": tonnes,
        }
    )
    assert (prepare(mine, True).preferred == 0).all()
    prices = np.array([[0.0, 0.5, 0.0]])
    assert prepare(mine, True, prices).preferred.tolist() == [[0, 1, 0]] * 4


@pytest.mark.parametrize(
    "changes",
    [
        {"low": np.array([[0.0, 1.0, 0.0]])},
        {
            "general": GeneralRows(
                *(np.zeros(1, np.int32),) * 4, np.ones(1), np.zeros(1), np.ones(1)
            )
        },
    ],
)
def test_what_list_scheduling_cannot_promise_is_refused(changes):
    with pytest.raises(ConfigError, match="has lower limits or general rows"):
        prepare(chain([1, 1], **changes), destinations=True)


def slow_pace(position, benches):
    """From each block to the lowest one of its column that lies so far above, or higher."""
    arcs = []
    for x, y, z in position.tolist():
        above = [
            (q, i)
            for i, (u, v, q) in enumerate(position.tolist())
            if (u, v) == (x, y) and q >= z + benches
        ]
        arcs.append([min(above)[1]] if above else [])
    return arcs


@pytest.mark.parametrize("benches", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_pace_asks_for_the_nearest_block_so_many_benches_above(seed, benches):
    rng = np.random.default_rng(seed)
    cells = np.argwhere(rng.random((3, 4, 7)) < 0.6).astype(np.int32)
    cells = cells[rng.permutation(len(cells))]
    graph = pace_of(cells, benches)
    found = [row.tolist() for row in np.split(graph.index, graph.pointer[1:-1])]
    assert found == slow_pace(cells, benches)


def test_no_pace_asks_for_nothing():
    assert pace_of(np.zeros((3, 3), np.int32), 0) is None


@pytest.mark.parametrize("seed", range(4))
def test_an_instance_that_is_cut_keeps_what_belongs_to_its_blocks(seed):
    mine = random_mine(seed, blocks=8, resources=2, destinations=2)
    keep = prepare(mine, True).inside
    cut = mine.restricted(keep)
    for name in ("position", "value", "use", "destination_value", "destination_use"):
        assert_array_equal(getattr(cut, name), getattr(mine, name)[keep], name)
    ids = np.flatnonzero(keep)
    for new, old in enumerate(ids):
        needed = mine.graph.index[mine.graph.pointer[old] : mine.graph.pointer[old + 1]]
        again = cut.graph.index[cut.graph.pointer[new] : cut.graph.pointer[new + 1]]
        assert ids[again].tolist() == needed.tolist()
    assert (cut.periods, cut.rate, cut.resources, cut.destinations) == (PERIODS, 0.1, 2, 2)


def test_a_graph_read_the_other_way_round_says_who_needs_a_block():
    graph = random_mine(2, blocks=10).graph
    arcs = [
        (b, int(p)) for b in range(10) for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]]
    ]
    back = graph.successors
    again = [
        (int(b), p) for p in range(10) for b in back.index[back.pointer[p] : back.pointer[p + 1]]
    ]
    assert sorted(again) == sorted(arcs)
    assert (back.blocks, back.arcs) == (10, len(arcs))


def test_an_order_puts_every_block_after_what_it_needs():
    graph = random_mine(5, blocks=12).graph
    place = np.empty(12, int)
    place[graph.order] = np.arange(12)
    for b in range(12):
        assert all(
            place[p] < place[b] for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]]
        )


def test_money_is_worth_less_by_the_rate_with_each_period():
    mine = chain([1.0, 1.0, 1.0], high=1.0)
    assert mine.discount.tolist() == [1.0, 0.5, 0.25]
    assert check_periods(mine, np.array([0, 1, 2])).value == 1.75
