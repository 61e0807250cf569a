"""What open mines share, and that sharing changes no number."""

from dataclasses import replace

import numpy as np
import pytest

from mine_rl_npv.data.economics import model_instance
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.rules import features
from mine_rl_npv.rules.mines import MineSource, open_mines
from mine_rl_npv.spec import mine_table, table_room

LEVEL = Deposit(8, 9, 5)
HILLS = replace(LEVEL, relief=40.0)


@pytest.mark.parametrize("deposit", [LEVEL, HILLS])
def test_mines_that_lie_alike_share_slopes_and_differ_in_nothing_from_mines_alone(deposit):
    source = MineSource("synthetic", deposit, deposits=4)
    for layout, seed in zip(open_mines(source).layouts, range(4), strict=True):
        model = block_model(replace(deposit, seed=deposit.seed + seed))
        alone = model_instance(model, source.economics, source.plan)

        assert np.array_equal(layout.instance.position, alone.position)
        assert np.array_equal(layout.instance.graph.pointer, alone.graph.pointer)
        assert np.array_equal(layout.instance.graph.index, alone.graph.index)
        assert np.array_equal(layout.instance.slopes.centre, alone.slopes.centre)
        assert np.array_equal(layout.instance.high, alone.high)


def test_deposits_on_one_lattice_hold_its_slopes_once_and_hills_each_their_own():
    level = open_mines(MineSource("synthetic", LEVEL, deposits=4)).layouts
    hills = open_mines(MineSource("synthetic", HILLS, deposits=4)).layouts

    assert len({id(layout.instance.graph.index) for layout in level}) == 1
    assert len({len(layout.instance.position) for layout in hills}) > 1


def test_the_table_of_mines_has_room_for_them_and_no_more():
    mines = open_mines(MineSource("synthetic", HILLS, deposits=4))
    blocks, arcs = zip(*((len(m.block), m.graph.arcs) for m in mines.layouts), strict=True)
    foreseen = mine_table(mines.shapes, blocks, arcs).allocated_with(*table_room(blocks, arcs))

    assert len(mines.table) == 4
    assert mines.table.nbytes == mines.table.used_bytes == foreseen


def test_room_for_more_mines_than_any_machine_holds_is_told_and_not_taken():
    shapes = open_mines(MineSource("synthetic", LEVEL)).shapes
    many = [100_000] * 10**6

    assert mine_table(shapes, many, many).allocated_with(*table_room(many, many)) > 2**42


def test_cones_summed_by_threads_are_those_summed_by_one(monkeypatch):
    layout = open_mines(MineSource("synthetic", LEVEL)).layouts[0]
    alone = features.block_views(layout)
    monkeypatch.setattr(features, "WORTH_A_THREAD", 7)

    assert np.array_equal(features.block_views(layout), alone)
