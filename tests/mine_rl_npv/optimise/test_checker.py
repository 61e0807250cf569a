"""The checker on a mine of four blocks: every rule broken once, and the sentence that says so."""

from dataclasses import replace

import numpy as np
import pytest

from mine_rl_npv.data.instance import NEVER, GeneralRows, Graph, Instance
from mine_rl_npv.optimise.check import check_periods, check_shares

POSITION = np.array([[0, 0, 1], [1, 0, 1], [0, 0, 0], [1, 0, 0]], np.int32)
"""Blocks 0 and 1 lie above 2 and 3; block 2 needs both of them, block 3 its own."""
GRAPH = Graph(np.array([0, 0, 0, 2, 3]), np.array([0, 1, 1], np.int32))
MINE = Instance(
    name="four",
    position=POSITION,
    graph=GRAPH,
    value=np.array([-1.0, 2.0, 8.0, 4.0]),
    periods=3,
    rate=1.0,
    use=np.array([[10.0], [10.0], [20.0], [10.0]]),
    low=np.zeros((1, 3)),
    high=np.full((1, 3), 30.0),
    destination_value=np.array([[-1.0, -2.0], [2.0, 3.0], [8.0, 6.0], [4.0, 5.0]]),
    destination_use=np.array([[[10.0], [0.0]], [[10.0], [0.0]], [[20.0], [5.0]], [[10.0], [1.0]]]),
)
GOOD = [0, 0, 1, 2]


def judged(period, **changes):
    return check_periods(replace(MINE, **changes), np.array(period))


def test_a_good_plan_is_worth_its_discounted_blocks():
    verdict = judged(GOOD)
    assert verdict.feasible
    assert verdict.value == -1 + 2 + 8 / 2 + 4 / 4


def test_nothing_dug_is_a_plan_worth_nothing():
    verdict = judged([NEVER] * 4)
    assert (verdict.feasible, verdict.value) == (True, 0.0)


@pytest.mark.parametrize(
    ("period", "words"),
    [
        ([1, 0, 0, NEVER], "block 2 is mined by period 0 before block 0, which it needs"),
        ([0, NEVER, 1, NEVER], "block 2 is mined by period 1 before block 1, which it needs"),
        ([NEVER, NEVER, NEVER, 2], "block 3 is mined by period 2 before block 1, which it needs"),
    ],
)
def test_a_block_before_one_that_it_needs_is_named(period, words):
    assert words in judged(period).faults


def test_a_block_in_the_same_period_as_what_it_needs_is_fine():
    assert judged([0, 0, 0, NEVER], high=np.full((1, 3), 40.0)).feasible


def test_a_limit_is_named_with_what_was_used_and_allowed():
    assert judged([0, 0, 0, 1]).faults == (
        "resource 0 uses 40.000000 t in period 0, allowed 30.000000",
    )


def test_a_limit_may_be_met_exactly():
    assert judged([0, 0, 1, 1], high=np.array([[20.0, 30.0, 0.0]])).feasible


def test_a_lower_limit_is_a_limit_too():
    faults = judged(GOOD, low=np.array([[0.0, 25.0, 0.0]])).faults
    assert faults == ("resource 0 uses 20.000000 t in period 1, at least 25.000000",)


@pytest.mark.parametrize(("period", "block"), [([3, 0, 0, 0], 0), ([0, 0, -2, 0], 2)])
def test_a_period_that_there_is_not_is_refused(period, block):
    verdict = judged(period)
    assert verdict.faults == (f"block {block} has no such period",)
    assert np.isnan(verdict.value)


def test_a_plan_of_another_length_is_refused():
    verdict = judged([0, 0, 0])
    assert verdict.faults == ("(3,) periods for 4 blocks",)
    assert np.isnan(verdict.value)


def shares(**parts):
    """(4, D, 3) shares by 'block_destination_period'."""
    share = np.zeros((4, 2, 3))
    for place, value in parts.items():
        share[tuple(int(n) for n in place[1:].split("_"))] = value
    return share


def test_with_destinations_the_money_is_that_of_the_destination():
    verdict = check_shares(MINE, shares(p0_0_0=1, p1_1_0=1, p2_1_1=1))
    assert verdict.feasible
    assert verdict.value == -1 + 3 + 6 / 2


def test_with_destinations_the_tonnes_are_those_of_the_destination():
    tight = replace(MINE, high=np.array([[10.0, 5.0, 0.0]]))
    assert check_shares(tight, shares(p0_0_0=1, p1_1_0=1, p2_1_1=1)).feasible
    assert not check_shares(tight, shares(p0_0_0=1, p1_0_0=1)).feasible


def test_half_a_block_may_follow_half_of_what_it_needs():
    half = shares(p1_0_0=0.5, p3_0_0=0.5)
    assert check_shares(MINE, half).feasible
    assert not check_shares(MINE, shares(p1_0_0=0.5, p3_0_0=0.6)).feasible


def test_shares_of_different_periods_add_up():
    assert check_shares(MINE, shares(p1_0_0=0.5, p1_0_1=0.5, p3_0_1=1)).feasible


@pytest.mark.parametrize("wrong", [-0.1, 1.1])
def test_a_share_outside_nought_to_one_is_named(wrong):
    assert "block 1 has a share outside [0, 1]" in check_shares(MINE, shares(p1_0_0=wrong)).faults


def test_a_block_that_is_dug_twice_is_named():
    faults = check_shares(MINE, shares(p1_0_0=1, p1_1_2=0.5)).faults
    assert faults == ("block 1 is mined more than once",)


def test_a_slack_forgives_what_a_published_file_rounded():
    rounded = shares(p1_0_0=1 + 1e-6, p3_0_1=1)
    assert not check_shares(MINE, rounded).feasible
    assert check_shares(MINE, rounded, slack=1e-5).feasible


def rows(low, high):
    whole = np.array([0, 0], np.int32)
    return GeneralRows(
        row=whole,
        block=np.array([1, 3], np.int32),
        destination=np.array([0, 0], np.int32),
        period=np.array([0, 1], np.int32),
        value=np.array([2.0, 3.0]),
        low=np.array([low]),
        high=np.array([high]),
    )


@pytest.mark.parametrize(("low", "high", "fine"), [(5, 5, True), (-9, 4, False), (6, 9, False)])
def test_general_rows_hold_between_their_limits(low, high, fine):
    mine = replace(MINE, general=rows(float(low), float(high)))
    verdict = check_shares(mine, shares(p1_0_0=1, p3_0_1=1))
    assert verdict.feasible == fine
    assert fine or verdict.faults == ("general row 0 sums to 5.000000",)


def test_general_rows_are_none_of_a_plan_without_destinations():
    assert check_periods(replace(MINE, general=rows(99.0, 99.0)), np.array(GOOD)).feasible


@pytest.mark.parametrize(("benches", "fine"), [(0, True), (1, False), (2, True)])
def test_a_column_sinks_by_so_many_benches_in_a_period(benches, fine):
    verdict = judged([NEVER, 0, NEVER, 0], bench_advance=benches)
    assert verdict.feasible == fine
    words = "1 columns are deepened by more than 1 benches in period 0"
    assert (words in verdict.faults) != fine


def test_benches_that_are_too_far_apart_are_found_where_only_those_two_are_dug():
    tall = replace(MINE, position=np.array([[0, 0, 2], [1, 0, 5], [0, 0, 0], [1, 0, 0]], np.int32))
    verdict = check_periods(replace(tall, bench_advance=3), np.array([0, 0, NEVER, 0]))
    assert verdict.faults == ("1 columns are deepened by more than 3 benches in period 0",)


def test_no_more_than_ten_sentences_are_said():
    use = np.concatenate([MINE.use, MINE.use], axis=1)  # two resources, three periods, two limits
    many = replace(MINE, use=use, high=np.full((2, 3), -1.0), low=np.full((2, 3), 99.0))
    found = check_shares(many, np.full((4, 1, 3), 1.0)).faults
    assert len(found) == len(set(found)) == 10


def test_a_worth_is_the_exactly_rounded_sum():
    values = np.array([1e16, 1.0, -1e16, 1.0])
    mine = replace(MINE, value=values, graph=Graph(np.zeros(5, np.int64), np.zeros(0, np.int32)))
    assert check_periods(replace(mine, high=np.full((1, 3), 99.0)), np.zeros(4, int)).value == 2.0
