"""Mutated block models: each is scheduled right by the audit, or refused in one line."""

import warnings

import numpy as np
import pytest

from frugal_rl.errors import FrugalError
from mine_rl_npv.data.economics import MinePlan
from mine_rl_npv.data.lattice import turn
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.tools.planner import open_mine
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Method, SolveConfig
from mine_rl_npv.verify import slopes

HEAD = ["x", "y", "elevation", "ton", "cu"]


def table(rng):
    """Rows (N, 5) of a small deposit, as floats."""
    model = block_model(Deposit(6, 5, 4, seed=int(rng.integers(50)), richness=0.8))
    return np.column_stack((model.centre, model.columns["ton"], model.columns["cu"]))


def shuffled(rng, rows):
    return rng.permutation(rows)


def one_moved(rng, rows):
    rows[rng.integers(len(rows)), rng.integers(3)] += rng.choice([0.1, 2.0, 5.0, 7.5, 9.0, 20.0])
    return rows


def many_moved(rng, rows):
    rows[:, :3] += rng.normal(0, rng.choice([0.05, 0.5, 3.0]), (len(rows), 3))
    return rows


def voids(rng, rows):
    return rows[rng.random(len(rows)) < rng.choice([0.95, 0.7, 0.4])]


def twice(rng, rows):
    return np.vstack((rows, rows[rng.integers(len(rows))]))


def negative(rng, rows):
    rows[rng.integers(len(rows)), rng.choice([3, 4])] *= -1
    return rows


def rotated(rng, rows):
    rows[:, :3] = turn(rows[:, :3], float(rng.uniform(1, 89)))
    return rows


def other_units(rng, rows):
    rows[:, :3] *= rng.choice([0.001, 3.28084, 100.0])
    rows[:, 4] *= rng.choice([1.0, 10_000.0])
    return rows


def stretched(rng, rows):
    rows[:, :3] *= rng.uniform(0.2, 3.0, 3)
    return rows


def missing_numbers(rng, rows):
    rows[rng.integers(len(rows)), rng.integers(5)] = rng.choice([np.nan, np.inf])
    return rows


def uneven_benches(rng, rows):
    """The upper benches stand on higher ones, as where benches grow with depth."""
    tops = np.unique(rows[:, 2])
    rows[rows[:, 2] > rng.choice(tops), 2] += rng.choice([3.0, 7.5, 15.0])
    return rows


def one_layer_or_column(rng, rows):
    axis = rng.integers(3)
    rows = rows[rows[:, axis] == rng.choice(rows[:, axis])]
    return rows[:1] if rng.random() < 0.2 else rows


def rounded(rng, rows):
    """Coordinates far from the origin with few digits, as old programs write them."""
    rows[:, :2] += rng.choice([0.0, 6_543_210.0])
    rows[:, :3] = rows[:, :3].astype(np.float32) if rng.random() < 0.5 else rows[:, :3].round(1)
    return rows


MUTATIONS = (
    shuffled,
    one_moved,
    many_moved,
    voids,
    twice,
    negative,
    rotated,
    other_units,
    stretched,
    missing_numbers,
    uneven_benches,
    one_layer_or_column,
    rounded,
)


def split_blocks(rng, rows):
    """Some blocks as eight of half the edge, and the edges (N, 3) of all: a sub-blocked model."""
    edge = np.tile([20.0, 20.0, 15.0], (len(rows), 1))
    some = rng.random(len(rows)) < 0.2
    corners = np.array(np.meshgrid(*[[-0.25, 0.25]] * 3)).reshape(3, -1).T
    parts = np.repeat(rows[some], 8, axis=0)
    parts[:, :3] += (corners * edge[0] * np.ones((some.sum(), 1, 1))).reshape(-1, 3)
    parts[:, 3] /= 8
    rows = np.vstack((rows[~some], parts))
    return rows, np.vstack((edge[~some], np.tile(edge[0] / 2, (len(parts), 1))))


def some_sectors(rng):
    """Slopes of two sectors of azimuths that do not meet, one of them over north at times."""
    first = int(rng.integers(360))
    ends = [(first + step) % 360 for step in (0, 80, 120, 200)]
    steep = rng.integers(25, 65, 2)
    return tuple(f"{ends[2 * i]}-{ends[2 * i + 1] or 360}:{steep[i]}" for i in range(2))


def with_a_word(rng, lines, divide):
    """A word in place of one number."""
    row = int(rng.integers(1, len(lines)))
    words = lines[row].split(divide)
    words[rng.integers(len(words))] = str(rng.choice(["abc", "12 t", "1e", "--3", "0x1F"]))
    return [*lines[:row], divide.join(words), *lines[row + 1 :]]


def verdict(seed, tmp_path):
    """None where the model is refused in one line; else the audited solution, checked again."""
    rng = np.random.default_rng([seed, 24])
    rows = table(rng)
    for mutate in rng.choice(len(MUTATIONS), rng.integers(1, 3), replace=False):
        rows = MUTATIONS[mutate](rng, rows)
    divide, head = str(rng.choice([",", ";", "\t"])), HEAD
    sectors = some_sectors(rng) if rng.random() < 0.3 else ()
    written = rows
    if rng.random() < 0.2:
        rows, edge = split_blocks(rng, rows)
        written, head = np.hstack((rows, edge)), [*HEAD, "dx", "dy", "dz"]
    point = "," if divide != "," and rng.random() < 0.3 else "."
    numbers = [[repr(number).replace(".", point) for number in row] for row in written.tolist()]
    lines = [divide.join(head), *map(divide.join, numbers)]
    spoilt = rng.random() < 0.15
    if spoilt:
        lines = with_a_word(rng, lines, divide)
    path = tmp_path / f"{seed}.csv"
    path.write_text("\n".join(lines))
    solution, refusal = solved(path, MinePlan(slope_levels=0, slope_sectors=sectors))
    if solution is None:
        assert str(path) in refusal
        assert "\n" not in refusal
        return None
    assert not spoilt, (seed, "a word among numbers was scheduled")
    assert solution.verdict.feasible, (seed, solution.report())
    judged(solution, rows, tmp_path / "judged.csv", sectors)
    return solution


def solved(path, plan):
    """A solution and no words, or none and the words of the refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            instance, _ = open_mine(SolveConfig(model=str(path), plan=plan))
            return solve(instance, SolveConfig(method=Method.toposort)), ""
    except FrugalError as error:
        return None, str(error)


def judged(solution, rows, path, sectors):
    """The independent program looks at the coordinates of the file itself."""
    gone = solution.shares.sum(axis=1)
    period = np.where(gone.max(axis=1) > 0.5, gone.argmax(axis=1) + 1, 0)
    lines = [
        f"{x!r},{y!r},{z!r},{t or ''}"
        for (x, y, z), t in zip(rows[:, :3].tolist(), period.tolist(), strict=True)
    ]
    path.write_text("\n".join(["x,y,z,period", *lines]))
    _, faults, _ = slopes.judge(str(path), 45.0, {}, [1e-9, 1e-9, 1.0], 0, sectors)
    assert not faults, faults


@pytest.mark.parametrize("seed", [*range(24), 203, 286, 5051])
def test_a_mutated_model_is_right_or_refused(tmp_path, seed):
    verdict(seed, tmp_path)


@pytest.mark.slow
def test_200_mutated_models_are_right_or_refused(tmp_path):
    found = [verdict(seed, tmp_path) for seed in range(5000, 5200)]
    refused = sum(one is None for one in found)
    print(f"{len(found) - refused} right by the audit, {refused} refused in one line")
    assert 20 < refused < 180
