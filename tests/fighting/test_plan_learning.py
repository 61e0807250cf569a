"""How Duel's plans are learned: what a draw brought, who is met, what is written."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from fighting.opponents.lines import ACTIONS, FAR, WHEN, line
from fighting.rom import FOLDER
from fighting.tools.arena import Arena, Reflexes
from fighting.tools.mixed import (
    BLOW,
    CHOICES,
    FADES,
    PLANS,
    ROWS,
    SCRIPTS,
    SITUATIONS,
    Brought,
    MixedArena,
    credit,
    first_plan,
)
from fighting.tools.plan_learning import (
    KEPT_RIVALS,
    REFLEXES,
    Learner,
    Rival,
    Rivals,
    changed,
    combined,
    eighths,
    random_shares,
    shares_of,
    written,
)

GUARD = (line(0, FAR, "always", "guard low"),)
RISE = (line(0, 36, "he stands or walks", "rising"), *GUARD)


@pytest.fixture(scope="module")
def arena():
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return MixedArena()


@pytest.mark.slow  # compiles the rounds, some 15 s
def test_a_table_with_one_script_in_each_place_is_played_as_the_cartridge_plays_it(arena):
    rng = np.random.default_rng(3)
    table = np.repeat(rng.integers(0, SCRIPTS, (ROWS, 1)), CHOICES, axis=1).astype(np.uint8)
    plain = Arena()
    plans = first_plan()
    plain.rom[plans : plans + table.size] = table.ravel()
    for how in (Reflexes(2), Reflexes(6, late=16)):
        expected = plain.points([RISE], 7, 24, how, seed=8)[0]
        zeros = np.zeros(24), np.zeros(ROWS)
        found = arena.brought(shares_of(table), [RISE] * 24, [how] * 24, *zeros, seed=8)
        assert found.points.sum() == expected
        assert 0 < expected < 24
        assert found.drawn[np.arange(ROWS), table[:, 0]].sum() == found.drawn.sum() > 1000


@pytest.mark.slow
def test_scripts_are_drawn_as_often_as_their_shares_say(arena):
    shares = random_shares(np.random.default_rng(0))
    zeros = np.zeros(200), np.zeros(ROWS)
    drawn = arena.brought(shares, [RISE] * 200, [Reflexes()] * 200, *zeros, seed=1).drawn
    row = drawn.sum(axis=1).argmax()
    count = drawn[row].sum()
    assert count > 1000
    assert np.abs(drawn[row] / count - shares[row]).max() < 4 * np.sqrt(0.25 / count)


def test_a_draw_is_credited_with_what_follows_it():
    rng = np.random.default_rng(5)
    note = np.zeros((6, 4), np.int32)
    note[:, 0], note[:, 1] = rng.integers(0, 9, 6), rng.integers(0, SCRIPTS, 6)
    note[:, 2], note[:, 3] = rng.integers(-50, 50, 6), np.cumsum(rng.integers(1, 60, 6))
    usual, last, end = rng.normal(size=ROWS), -7.0, 0.8
    gain, drawn = np.zeros((ROWS, SCRIPTS)), np.zeros((ROWS, SCRIPTS))
    credit.py_func(note, 6, last, end, usual, gain, drawn)
    leads = [*note[:, 2].astype(float), last]
    for n in range(6):
        later = sum(
            (leads[k + 1] - leads[k]) / BLOW * FADES ** (note[k, 3] - note[n, 3])
            for k in range(n, 6)
        )
        gain[note[n, 0], note[n, 1]] -= later + end - usual[note[n, 0]]
        drawn[note[n, 0], note[n, 1]] -= 1
    np.testing.assert_allclose(gain, 0, atol=1e-12)
    assert not drawn.any()


def test_changed_scripts_have_one_to_three_lines_of_what_there_is():
    rng = np.random.default_rng(1)
    script, lengths = RISE, set()
    for _ in range(500):
        before, script = script, changed(script, [GUARD, RISE, ()], rng)
        assert 1 <= len(script) <= 3
        assert sum(old != new for old, new in zip(before, script, strict=False)) <= 3
        for near, far, when, action in script:
            assert near < far
            assert 0 <= when < len(WHEN)
            assert 0 < action < len(ACTIONS)
        lengths.add(len(script))
    assert lengths == {1, 2, 3}
    assert len(changed((), [GUARD], rng)) == 1


def test_combined_scripts_end_with_a_line_that_always_holds():
    rng = np.random.default_rng(1)
    made = {combined([RISE], rng) for _ in range(200)}
    assert {len(script) for script in made} == {2, 3}
    assert all(script[-1][:3] == GUARD[0][:3] for script in made)
    assert any(RISE[0] in script for script in made)


def rivals(count):
    scripts = [(line(0, 21 + n, "always", "light"),) for n in range(count)]
    return Rivals.of([Rival(s, how) for how in REFLEXES for s in scripts])


def test_who_wins_more_is_met_more_and_everybody_at_times():
    some = rivals(4)
    some.met(np.array([2, 2, 2, 3]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert some.won[2] > 0.6 > some.won[3]
    some.won[3] = 0
    chances = some.chances()
    assert chances.sum() == pytest.approx(1)
    assert chances[2] == chances.max()
    assert chances[3] == chances[:4].min() >= 0.1 / len(some.all)


def test_of_each_kind_the_best_stay():
    some = rivals(KEPT_RIVALS)
    worst = some.alike(REFLEXES[1])[-1]
    some.won[worst] = 0.1
    lost = some.all[worst]
    new = Rival(GUARD, REFLEXES[1])
    some.joined([new], np.array([0.9]))
    assert new in some.all
    assert lost not in some.all
    assert len(some.all) == len(some.won) == len(REFLEXES) * KEPT_RIVALS


class Favours:
    """An arena in which one script of one row brings more than the others."""

    def brought(self, shares, scripts, reflexes, expected, usual, seed):
        drawn = 1000 * shares
        gain = np.zeros_like(shares)
        gain[5, 3] = drawn[5, 3]
        return Brought(np.full(len(scripts), 0.5), gain, drawn)


def test_shares_move_towards_what_brought_more():
    learner = Learner(random_shares(np.random.default_rng(2)), rivals(2), np.random.default_rng(0))
    before = learner.shares.copy()
    for _ in range(20):
        learner.meet(Favours(), 12, 1.5)
    assert before[5, 3] < 0.5 < 0.9 < learner.shares[5, 3]
    np.testing.assert_allclose(learner.shares.sum(axis=1), 1)
    np.testing.assert_allclose(learner.shares[6], before[6], atol=0.02)
    assert before[5, 3] < learner.mean[5, 3] < learner.shares[5, 3]


class Beaten:
    """An arena in which only who throws wins."""

    def brought(self, shares, scripts, reflexes, expected, usual, seed):
        throws = list(ACTIONS).index("throw")
        points = [float(any(one[3] == throws for one in script)) for script in scripts]
        return Brought(np.array(points), np.zeros_like(shares), np.ones_like(shares))


def test_changed_scripts_that_win_join():
    learner = Learner(random_shares(np.random.default_rng(2)), rivals(3), np.random.default_rng(4))
    for _ in range(4):
        learner.try_others(Beaten(), 40)
    for how in REFLEXES:
        best = learner.rivals.all[learner.rivals.alike(how)[0]]
        assert any(one[3] == list(ACTIONS).index("throw") for one in best.script), how


def test_eight_places_come_nearest_to_shares_and_read_back():
    shares = random_shares(np.random.default_rng(7))
    table = eighths(shares)
    assert table.shape == (ROWS, CHOICES)
    assert np.abs(shares_of(table) - shares).max() < 1 / CHOICES
    np.testing.assert_array_equal(eighths(shares_of(table)), table)
    shares[0] = 0
    shares[0, [2, 5, 9]] = 0.5, 0.3, 0.2
    assert eighths(shares)[0].tolist() == [2, 2, 2, 2, 5, 5, 9, 9]


def test_the_rows_written_are_those_of_the_source():
    source = (FOLDER / "plans.inc").read_text(encoding="utf-8")
    found = source[source.index("; Plan 1.") :]
    rows = [text for text in found.splitlines() if text.startswith(" db")]
    assert len(rows) == PLANS * SITUATIONS
    names = [text.split()[1] for text in source.splitlines() if text.startswith("DEF")]
    places = [[names.index(n) for n in r[4:].partition(" ;")[0].split(", ")] for r in rows]
    titles = [row.split("; ")[1].partition(" ")[2] for row in rows[:SITUATIONS]]
    assert written(np.array(places), names, titles) == found


def test_rivals_with_other_reflexes_are_others():
    assert Rival(GUARD, Reflexes(2)) != Rival(GUARD, replace(Reflexes(2), late=16))
