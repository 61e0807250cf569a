"""Every method on mines of a few blocks, against all plans there are and a reading of our own."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.instance import GeneralRows, Graph, Instance
from mine_rl_npv.optimise.tight_bound import falls_of_prices
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import BoundKind, Kind, Method, SolveConfig

FAST = (Method.toposort, Method.exact, Method.best)
BOUNDS = (Method.upit, Method.lp, Method.lp_direct)
LAZY = tuple(m for m in Method if m not in (*BOUNDS, Method.gradient))


def random_mine(seed, destinations, below, rows=False):
    """Five or six blocks, capacities of part of a block to all of them, prices of any sign."""
    rng = np.random.default_rng([seed, destinations, below])
    blocks, periods, resources = (
        int(rng.integers(4, 7)),
        int(rng.integers(1, 4)),
        rng.integers(1, 4),
    )
    needs = [np.flatnonzero(rng.random(b) < 0.35) for b in range(blocks)]
    pointer = np.concatenate(([0], np.cumsum([len(n) for n in needs]))).astype(np.int64)
    tonnes = rng.integers(0, 9, (blocks, destinations, resources)).astype(float)
    tonnes[:, :, 0] = rng.integers(1, 9, (blocks, 1))
    if destinations > 1 and rng.random() < 0.7:
        tonnes[:, 0, 1:] = 0.0
    money = rng.integers(-9, 15, (blocks, destinations)).astype(float)
    total = tonnes.max(axis=1).sum(axis=0)
    high = np.round(total[:, None] * rng.choice([0.05, 0.2, 0.4, 0.8], (resources, periods)), 3)
    high[rng.random(high.shape) < 0.1] = np.inf
    high[rng.random(high.shape) < 0.05] = 0.0
    low = np.zeros_like(high)
    if below:
        low[0] = np.where(rng.random(periods) < 0.6, np.minimum(high[0] * 0.5, total[0] / 4), 0.0)
    best = money.argmax(axis=1)
    ids = np.arange(blocks)
    return Instance(
        name=f"mine {seed}",
        position=np.column_stack((ids, np.zeros((blocks, 2)))).astype(np.int32),
        graph=Graph(pointer, np.concatenate(needs).astype(np.int32)),
        value=money[ids, best],
        periods=periods,
        rate=float(rng.choice([0.0, 0.1, 0.5, -0.1])),
        use=tonnes[ids, best],
        low=low,
        high=high,
        destination_value=money,
        destination_use=tonnes,
        general=blend_of(rng, blocks, periods, destinations) if rows else None,
    )


def blend_of(rng, blocks, periods, destinations):
    """Rows that bound a mean of what goes to the last destination, one per period."""
    excess = rng.normal(0.0, 1.0, blocks).round(2)
    each = np.arange(periods)
    below = bool(rng.random() < 0.5)
    return GeneralRows(
        row=np.repeat(each, blocks).astype(np.int32),
        block=np.tile(np.arange(blocks), periods).astype(np.int32),
        destination=np.full(blocks * periods, destinations - 1, np.int32),
        period=np.repeat(each, blocks).astype(np.int32),
        value=np.tile(excess, periods),
        low=np.full(periods, 0.0 if below else -np.inf),
        high=np.full(periods, np.inf if below else 0.0),
    )


def best_of_all(mine, choice):
    """The greatest value of all plans by enumeration, None without any; destinations by an LP."""

    @cache
    def worth(t, dug):
        return best_of_period(mine, choice, t, list(dug))

    best = None
    for period in itertools.product(range(mine.periods + 1), repeat=mine.blocks):
        if not all(period[p] <= period[b] for b in range(mine.blocks) for p in needs(mine, b)):
            continue
        dug = [tuple(b for b, t in enumerate(period) if t == now) for now in range(mine.periods)]
        money = [worth(t, ids) for t, ids in enumerate(dug)]
        if None not in money:
            value = sum(m / (1 + mine.rate) ** t for t, m in enumerate(money))
            best = value if best is None else max(best, value)
    return best


def in_turns(cases):
    """Each case with one destination or two, the next one with the other; the rest is slow."""
    every = enumerate(itertools.product(cases, (1, 2)))
    rest = (1, 2)  # of four
    return [
        pytest.param(*case, destinations, marks=[pytest.mark.slow] if at % 4 in rest else [])
        for at, (case, destinations) in every
    ]


def needs(mine, b):
    return mine.graph.index[mine.graph.pointer[b] : mine.graph.pointer[b + 1]].tolist()


def best_of_period(mine, choice, t, ids):
    """Undiscounted money of blocks dug in a period, None where they cannot be."""
    high, low = mine.high[:, t], mine.low[:, t]
    if not choice or not ids:
        used = mine.use[ids].sum(axis=0)
        fits = np.all(used <= high + 1e-9) and np.all(used >= low - 1e-9)
        return mine.value[ids].sum() if fits else None
    use = mine.destination_use[ids].reshape(-1, mine.resources).T
    sides = [(use[r], low[r], high[r]) for r in range(mine.resources)]
    if mine.general is not None:
        g = mine.general
        for row in np.unique(g.row[g.period == t]):
            flat = np.zeros((len(ids), mine.destinations))
            for b, d, v in zip(g.block, g.destination, g.value * (g.row == row), strict=True):
                if b in ids:
                    flat[ids.index(b), d] += v
            sides.append((flat.ravel(), g.low[row], g.high[row]))
    above = [(a, h) for a, _, h in sides if np.isfinite(h)]
    above += [(-a, -least) for a, least, _ in sides if np.isfinite(least)]
    found = linprog(
        -mine.destination_value[ids].ravel(),
        A_ub=np.array([a for a, _ in above]) if above else None,
        b_ub=[b for _, b in above] if above else None,
        A_eq=np.kron(np.eye(len(ids)), np.ones(mine.destinations)),
        b_eq=np.ones(len(ids)),
        bounds=(0, 1),
    )
    return -found.fun if found.status == 0 else None


def read(mine, shares, choice):
    """Value of shares by loops, and whether they keep every rule."""
    money = mine.destination_value if choice else mine.value[:, None]
    tonnes = mine.destination_use if choice else mine.use[:, None]
    value, good, tiny = 0.0, bool(np.all(shares >= 0)), 1e-6
    gone = shares.sum(axis=1).cumsum(axis=1)
    for b in range(mine.blocks):
        good &= gone[b, -1] < tiny or any(abs(s - 1) < tiny for s in shares[b].sum(axis=0))
        good &= all(np.all(gone[b] <= gone[p] + tiny) for p in needs(mine, b))
    for t in range(mine.periods):
        used = sum((tonnes[b].T @ shares[b, :, t] for b in range(mine.blocks)), np.zeros(1))
        good &= bool(
            np.all(used <= mine.high[:, t] + tiny) and np.all(used >= mine.low[:, t] - tiny)
        )
        value += sum(money[b] @ shares[b, :, t] for b in range(mine.blocks)) / (1 + mine.rate) ** t
    if choice and mine.general is not None:
        g, total = mine.general, np.zeros(len(mine.general.low))
        for row, b, d, t, v in zip(g.row, g.block, g.destination, g.period, g.value, strict=True):
            total[row] += v * shares[b, d, t]
        good &= bool(np.all(total <= g.high + tiny) and np.all(total >= g.low - tiny))
    return value, good


def judge(mine, choice, methods, bounds=(BoundKind.auto,)):
    """Each method's plan and bound held against all plans; what it made of the mine."""
    best = best_of_all(mine, choice)
    values = {}
    for method, bound in itertools.product(methods, bounds):
        kind = Kind.pcpsp if choice else Kind.cpit
        counted = 40 if method in (Method.best, Method.evolution) else 0
        config = SolveConfig(
            method=method,
            problem=kind,
            decodes=counted,
            seconds=5.0,
            threads=1,
            bound=bound,
            bound_decisions=20 if bound is BoundKind.cuts else 0,
        )
        found = solve(mine, config)
        what = f"{mine.name} {kind.value} {method.value} {bound.value}: {found.report()}"
        value, good = read(mine, found.shares, choice)
        assert found.verdict.feasible, what
        assert good, what
        assert value == pytest.approx(found.verdict.value, abs=1e-7), what
        assert best is not None, what
        assert value <= best + 1e-6, (what, best)
        assert found.upper >= best - 1e-6, (what, best)
        if method is Method.exact:
            assert value == pytest.approx(best, abs=1e-5), what
        values[method] = value
    return best, values


@pytest.mark.parametrize("destinations", [1, 2, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_plan_beats_all_plans_and_no_bound_lies_below_them(seed, destinations):
    best, found = judge(random_mine(seed, destinations, False), destinations > 1, FAST)
    assert 0 <= found[Method.best] <= best + 1e-6


@pytest.mark.parametrize("seed", [70000, 70013, 70035, 70037])
def test_the_bound_beside_least_tonnages_holds_for_plans_that_share_blocks(seed):
    """method=exact sends each block whole to one destination there; plans that share earn more."""
    mine = random_mine(seed, 2, True)
    best = best_of_all(mine, True)
    found = solve(mine, SolveConfig(method=Method.exact, problem=Kind.pcpsp, seconds=5.0))
    assert found.verdict.value <= best + 1e-6
    assert found.upper == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("choice", [False, True])
def test_waste_dug_early_is_paid_for_by_ore_dug_late_where_money_gains(choice):
    """Ore of 9 below waste of 10: no pit pays, but 9 / 0.7 after a period does."""
    money = np.array([[-10.0], [9.0]])
    mine = replace(
        random_mine(1, 1, False),
        position=np.array([[0, 0, 1], [0, 0, 0]], np.int32),
        graph=Graph(np.array([0, 0, 1]), np.array([0], np.int32)),
        value=money[:, 0],
        periods=2,
        rate=-0.3,
        use=np.ones((2, 1)),
        low=np.zeros((1, 2)),
        high=np.ones((1, 2)),
        destination_value=money,
        destination_use=np.ones((2, 1, 1)),
    )
    best, found = judge(mine, choice, [Method.toposort, Method.exact, Method.best])
    assert best == pytest.approx(9 / 0.7 - 10)
    assert found[Method.exact] == pytest.approx(best)
    assert found[Method.best] == pytest.approx(best)


@pytest.mark.parametrize("seed", [115, 120, 131])
def test_a_price_that_rises_with_time_leaves_the_tightened_bound_one(seed):
    judge(random_mine(seed, 1, False), False, [Method.toposort], [BoundKind.cuts])


def test_cumulated_limits_take_over_what_all_earlier_periods_charge():
    prices = np.array([[5.0, 2.0, 3.0, 1.0], [0.0, 4.0, 0.0, 0.0], [-1.0, 2.0, 0.0, 0.0]])
    falls = [[3.0, 0.0, 1.0, 1.0], [0.0] * 4, [0.0] * 4]
    assert falls_of_prices(prices).tolist() == falls


def test_one_destination_that_side_rows_know_is_left_to_the_whole_model():
    mine = random_mine(3, 1, False, rows=True)
    with pytest.raises(ConfigError, match="general side constraints"):
        solve(mine, SolveConfig(method=Method.toposort, problem=Kind.pcpsp))
    judge(mine, True, [Method.exact])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("destinations", [1, 2])
def test_least_tonnages_are_kept_or_no_plan_is_there(seed, destinations):
    mine = random_mine(seed, destinations, True)
    if best_of_all(mine, destinations > 1) is None:
        with pytest.raises(ConfigError, match="No schedule"):
            judge(mine, destinations > 1, [Method.exact])
    else:
        judge(mine, destinations > 1, [Method.exact])


@pytest.mark.parametrize("seed", range(2))
def test_side_rows_are_kept_by_every_road(seed):
    judge(random_mine(seed, 2, False, rows=True), True, (Method.toposort, Method.exact))


def test_a_mill_smaller_than_a_block_takes_parts_of_it():
    mine = replace(
        random_mine(1, 2, False),
        graph=Graph(np.array([0, 0, 1]), np.array([0], np.int32)),
        position=np.array([[0, 0, 1], [0, 0, 0]], np.int32),
        value=np.array([-1.0, 50.0]),
        periods=1,
        use=np.array([[10.0, 0.0], [10.0, 10.0]]),
        low=np.zeros((2, 1)),
        high=np.array([[30.0], [4.0]]),
        destination_value=np.array([[-1.0, -9.0], [-1.0, 50.0]]),
        destination_use=np.array([[[10.0, 0.0], [10.0, 10.0]]] * 2),
    )
    best, found = judge(mine, True, LAZY)
    assert best == pytest.approx(-1 + 0.4 * 50 - 0.6)
    assert min(found.values()) == pytest.approx(best)
    nothing = solve(mine, SolveConfig(method=Method.toposort))
    assert nothing.verdict.value == 0
    assert "takes 10 of limit 2, and no period has more than 4" in nothing.report()
    assert "problem=pcpsp" in nothing.report()


def scaled(mine, money=1.0, tonnes=1.0):
    """The same mine with money and tonnes in other units."""
    return replace(
        mine,
        value=mine.value * money,
        destination_value=mine.destination_value * money,
        use=mine.use * tonnes,
        destination_use=mine.destination_use * tonnes,
        high=mine.high * tonnes,
    )


@pytest.mark.parametrize(
    ("money", "tonnes", "destinations"),
    in_turns([(1e9, 1.0), (1e-6, 1.0), (1.0, 1e7), (1.0, 1e-5), (1e7, 1e-3)]),
)
def test_plans_do_not_depend_on_units(money, tonnes, destinations):
    mine = random_mine(2, destinations, False)
    choice = destinations > 1
    best = best_of_all(mine, choice)
    other = scaled(mine, money, tonnes)
    for method in FAST:
        values = []
        for one in (mine, other):
            counted = 40 if method is Method.best else 0
            kind = Kind.pcpsp if choice else Kind.cpit
            found = solve(one, SolveConfig(method=method, problem=kind, decodes=counted, threads=1))
            assert found.verdict.feasible, found.report()
            values.append(found.verdict.value)
            assert found.upper >= best * (money if one is other else 1) * (1 - 1e-6)
        assert values[1] == pytest.approx(values[0] * money, rel=1e-5)
        assert values[0] <= best + 1e-6


def strange(mine, kind):
    """The mine with something that nobody means, or everybody forgets."""
    same = mine.destination_value[:, :1]
    shut = mine.high.copy()
    shut[:, -1] = 0.0
    return {
        "equal destinations": replace(
            mine, value=same[:, 0], destination_value=np.tile(same, (1, mine.destinations))
        ),
        "weightless blocks": replace(
            mine, use=mine.use * 0, destination_use=mine.destination_use * 0
        ),
        "last period shut": replace(mine, high=shut),
        "nothing to gain": replace(
            mine,
            value=-np.abs(mine.value),
            destination_value=-np.abs(mine.destination_value),
        ),
        "worth nothing": replace(
            mine, value=mine.value * 0, destination_value=mine.destination_value * 0
        ),
        "falling prices of money": replace(mine, rate=-0.5),
        "limits of 1e30": replace(mine, high=np.full_like(mine.high, 1e30)),
    }[kind]


STRANGE = (
    "equal destinations",
    "weightless blocks",
    "last period shut",
    "nothing to gain",
    "worth nothing",
    "falling prices of money",
    "limits of 1e30",
)


@pytest.mark.parametrize(("kind", "destinations"), in_turns([(kind,) for kind in STRANGE]))
def test_strange_numbers_have_the_plan_that_they_have(kind, destinations):
    mine = strange(random_mine(4, destinations, False), kind)
    judge(mine, destinations > 1, FAST)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seed", [205, 218])
def test_orders_stay_finite_where_later_money_is_worth_more(seed):
    for destinations in (1, 2):
        mine = strange(random_mine(seed, destinations, False), "falling prices of money")
        judge(mine, destinations > 1, (Method.filling, Method.best))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_strange_numbers_on_many_mines(seed):
    for kind in STRANGE:
        for destinations in (1, 2, 3):
            judge(strange(random_mine(seed, destinations, False), kind), destinations > 1, FAST)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_every_method_on_many_mines(seed):
    for destinations in (1, 2, 3):
        mine = random_mine(seed, destinations, False)
        judge(mine, destinations > 1, LAZY)
    judge(random_mine(seed, 1, False), False, [Method.toposort], [BoundKind.cuts])
    judge(random_mine(seed, 2, False, rows=True), True, (Method.toposort, Method.exact))


def test_side_rows_cost_a_proven_plan_nothing():
    """What was kept free of each row, 1e-7 of its largest coefficient, took 2.3e-5 of 30."""
    mine = random_mine(70036, 3, False, True)
    found = solve(mine, SolveConfig(method=Method.exact, problem=Kind.pcpsp, seconds=5.0))
    assert "proven optimal" in found.notes
    assert found.verdict.value == pytest.approx(best_of_all(mine, True), abs=1e-6)
