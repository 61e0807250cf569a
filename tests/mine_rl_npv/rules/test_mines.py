"""What open mines share, and that sharing changes no number."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from frugal_rl import remembered
from mine_rl_npv.data import instance
from mine_rl_npv.data.economics import MinePlan, model_instance
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.rules import features, mines
from mine_rl_npv.rules.choices import Kind
from mine_rl_npv.rules.layout import lay_out
from mine_rl_npv.rules.mines import MineSource, name_of, open_mines
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


@pytest.fixture
def keeping(monkeypatch, tmp_path):
    """Mines of any size are kept, in a folder of their own, and opened anew when asked for."""
    monkeypatch.setattr(mines, "WORTH_KEEPING", 1)
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    open_mines.cache_clear()
    yield tmp_path / "arrays"
    open_mines.cache_clear()


def everything(value):
    """All that a value of dataclasses holds, arrays as dtype, strides and bytes."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.strides, value.tobytes())
    if is_dataclass(value):
        return [(f.name, everything(getattr(value, f.name))) for f in fields(value)]
    if isinstance(value, dict):
        return [(name, everything(item)) for name, item in value.items()]
    return list(map(everything, value)) if isinstance(value, (list, tuple)) else repr(value)


def opened_again(source):
    """The mines as the next process opens them."""
    open_mines.cache_clear()
    return open_mines(source)


SOURCES = [
    MineSource("synthetic", HILLS, deposits=3, eval_deposits=1),
    MineSource("synthetic", LEVEL, deposits=2, kind=Kind.pcpsp),
    MineSource("porphyry_tiny", kind=Kind.cpit, per_block=True),
]


@pytest.mark.parametrize("source", SOURCES, ids=["daily", "pcpsp", "blocks"])
def test_mines_that_were_kept_are_those_that_were_opened(source, keeping, monkeypatch):
    found = open_mines(source)
    table, arena = found.table, found.arena()
    monkeypatch.setattr(mines, "_opened", lambda source: pytest.fail("opened again"))
    monkeypatch.setattr(mines, "mine_rows", lambda *_: pytest.fail("features found again"))
    again = opened_again(source)

    assert everything(again) == everything(found)
    assert again.nbytes == found.nbytes
    assert all(map(np.array_equal, again.arena(), arena))
    assert again.table.keys == table.keys
    assert again.table.used_bytes == table.used_bytes
    assert all(map(np.array_equal, again.table.arrays, table.arrays))


@pytest.mark.parametrize("which", ["*_table.arrays", "*[0-9a-f].arrays"])
def test_mines_of_damaged_files_are_opened_again(which, keeping):
    source = SOURCES[1]
    found = open_mines(source)
    whole = [found.table.arrays, everything(found)]
    for file in keeping.glob(which):
        raw = bytearray(file.read_bytes())
        raw[-1] ^= 1
        file.write_bytes(raw)
    again = opened_again(source)

    assert everything(again) == whole[1]
    assert all(map(np.array_equal, again.table.arrays, whole[0]))


def test_other_values_contents_and_code_are_other_mines(tmp_path, monkeypatch):
    file = tmp_path / "model.csv"
    file.write_text("x,y,z,ton,cu\n0,0,0,1,1\n")
    sources = [MineSource(str(file)), MineSource(str(file), plan=MinePlan(slope_degrees=50.0))]
    names = {name_of(source) for source in sources}
    file.write_text("x,y,z,ton,cu\n0,0,0,1,2\n")
    names.add(name_of(sources[0]))
    monkeypatch.setattr(remembered, "code_digest", lambda *_: "other code")
    names.add(name_of(sources[0]))

    assert len(names) == 4
    assert name_of(replace(sources[0], kept=False)) in names


def test_nothing_is_kept_where_that_is_asked_or_not_worth_it(keeping, monkeypatch):
    assert open_mines(replace(SOURCES[1], kept=False)).table
    monkeypatch.setattr(mines, "WORTH_KEEPING", 10**9)
    assert opened_again(SOURCES[1]).table

    assert not keeping.exists()


def test_the_pit_of_a_block_model_is_found_once(monkeypatch):
    opened = model_instance(block_model(HILLS))
    monkeypatch.setattr(instance, "max_closure", lambda *_: pytest.fail("found again"))

    assert np.array_equal(np.sort(lay_out(opened).block), np.flatnonzero(opened.pit))
    monkeypatch.undo()
    assert np.array_equal(replace(opened).pit, opened.pit)
    assert not replace(opened, value=-np.ones(opened.blocks)).pit.any()
