"""Which way is up: a model is read as it stands, refused, or read with the direction said aloud."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frugal_rl.errors import DataError
from mine_rl_npv.data.block_model import read_csv
from mine_rl_npv.data.vertical import Direction, says

CELL = np.argwhere(np.ones((6, 5, 4), bool))
FLOOR = 3000.0
LOW = 300.0
"""Where heights and depths are both possible, and heights likelier."""


def written(tmp_path, z, name="z", keep=None, **columns):
    """A file of 6 x 5 x 4 blocks of 20 x 20 x 15 m and 15,000 t, with any heights (N,)."""
    columns = {"ton": np.full(len(CELL), 15_000.0), **columns}
    table = [CELL[:, 0] * 20.0 + 10, CELL[:, 1] * 20.0 + 10, z, *columns.values()]
    rows = [",".join(map(str, row)) for row in zip(*(c.tolist() for c in table), strict=True)]
    rows = rows if keep is None else [row for row, k in zip(rows, keep, strict=True) if k]
    path = tmp_path / "model.csv"
    path.write_text("\n".join([",".join(["x", "y", name, *columns]), *rows]))
    return path


def elevation():
    return FLOOR + CELL[:, 2] * 15.0


def depth():
    return (3 - CELL[:, 2]) * 15.0 + 7.5


def read(path, direction=""):
    """The model and what was said about it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = read_csv(path, columns={"z_direction": direction})
    return model, [str(one.message) for one in told]


def test_heights_of_no_name_are_assumed_to_grow_upward_and_that_is_said(tmp_path):
    model, told = read(written(tmp_path, elevation() - FLOOR + LOW))
    assert_array_equal(model.cell, CELL)
    assert len(told) == 1
    for words in (
        "ASSUMED",
        "upward",
        "top bench is at 345",
        "bottom bench at 300",
        "z_direction=down",
    ):
        assert words in told[0], words
    assert model.vertical in told[0]


@pytest.mark.parametrize("lowest", [0.0, 7.5, 15.0, 30.0])
def test_heights_that_may_as_well_be_depths_are_refused(tmp_path, lowest):
    """The same numbers either way: whoever guesses wrong undercuts every wall."""
    path = written(tmp_path, elevation() - FLOOR + lowest)
    words = rf"top bench at {lowest + 45:g} m.*top bench at {lowest:g} m.*z_direction=up or =down"
    with pytest.raises(DataError, match=words) as refused:
        read_csv(path)
    assert "\n" not in str(refused.value)
    assert_array_equal(read(path, "up")[0].cell, CELL)
    assert_array_equal(read(path, "down")[0].cell[:, 2], 3 - CELL[:, 2])


def found(tmp_path, why, keep=None, name="z", **columns):
    """Heights from 0 of no name are read upward without a doubt, and the line says why."""
    model, told = read(written(tmp_path, elevation() - FLOOR, name, keep=keep, **columns))
    assert told == []
    assert "ASSUMED" not in model.vertical
    assert why in model.vertical


def test_what_could_not_be_if_they_were_depths_settles_the_direction(tmp_path):
    hidden = np.where(hill(), "ore", "Air")
    found(tmp_path, "25 of 30 columns have blocks of air", rock=hidden)
    found(tmp_path, "column 'rl' runs the other way", rl=elevation())
    found(tmp_path, "column 'depth' runs the other way", depth=depth())
    kind = np.where(CELL[:, 2] == 3, "Oxide", "sulphide")
    found(tmp_path, "'Oxide' below 'sulphide'", weathering=kind)
    found(tmp_path, "beside ZMORIG", ZMORIG=np.zeros(len(CELL)))
    found(tmp_path, "a single level", keep=CELL[:, 2] == 2)
    model, told = read(written(tmp_path, elevation()))
    assert "no pit begins at a depth of 3000 m" in model.vertical
    assert told == []


def test_ragged_ends_and_missing_tonnes_do_not_settle_it(tmp_path):
    """Ground, or the floor of a pit; air, or depths that nobody estimated."""
    heights = elevation() - FLOOR
    weightless = np.where(hill(), 15_000.0, 0.0)
    for path in (
        written(tmp_path, heights, keep=hill()),
        written(tmp_path, heights, ton=weightless),
    ):
        with pytest.raises(DataError, match="z_direction=up or =down"):
            read_csv(path)


@pytest.mark.parametrize("name", ["z", "elevation"])
def test_a_northing_is_no_height(tmp_path, name):
    with pytest.raises(DataError, match=r"holds 7230045 m, which is no height.*columns\.z="):
        read(written(tmp_path, elevation() - FLOOR + 7_230_000, name), "up")
    read(written(tmp_path, elevation() - FLOOR + 10_000, name), "up")


@pytest.mark.parametrize("name", ["elevation", "RL", "ELEV_M", "zelev", "z_up"])
def test_names_of_elevations_are_taken_at_their_word(tmp_path, name):
    path = written(tmp_path, elevation(), name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = read_csv(path, columns={"z": name})
    assert_array_equal(model.cell, CELL)
    assert "its name says so" in model.vertical


@pytest.mark.parametrize("name", ["depth", "DEPTH", "z_down", "Depth_m"])
def test_depths_are_read_as_depths(tmp_path, name):
    model, told = read(written(tmp_path, depth(), name))
    assert_array_equal(model.cell, CELL)
    assert told == []
    assert "downward (its name says so): the top bench is at 7.5, the bottom bench at 52.5" in (
        model.vertical
    )


def test_depths_below_zero_grow_upward_and_depths_of_both_signs_are_asked_about(tmp_path):
    model, told = read(written(tmp_path, -depth(), "depth"))
    assert_array_equal(model.cell, CELL)
    assert told == []
    with pytest.raises(DataError, match=r"positive and negative.*z_direction=down"):
        read(written(tmp_path, depth() - 30, "depth"))
    turned, _ = read(written(tmp_path, depth() - 30, "depth"), "down")
    assert_array_equal(turned.cell, CELL)


def test_the_setting_turns_a_model_over_and_is_said(tmp_path):
    path = written(tmp_path, -elevation() + 2900)
    model, told = read(path, "down")
    assert_array_equal(model.cell, CELL)
    assert told == []
    assert "columns.z_direction says so" in model.vertical
    upside_down, told = read(path)
    assert_array_equal(upside_down.cell[:, 2], 3 - CELL[:, 2])
    assert "z_direction=down turns" in told[0]


def against(tmp_path, z, words, name="z", **columns):
    """The file is refused with these words, and read either way once the user says which."""
    path = written(tmp_path, z, name, **columns)
    with pytest.raises(DataError, match=f"{words}.*z_direction=(up|down)") as refused:
        read_csv(path)
    assert "\n" not in str(refused.value)
    for direction in ("up", "down"):
        read(path, direction)


def hill():
    return CELL[:, 2] <= 3 - np.abs(CELL[:, 0] - 2)


def test_a_hillside_upside_down_is_refused(tmp_path):
    against(tmp_path, depth(), "columns end above its bottom", keep=hill())
    model, _ = read(written(tmp_path, elevation(), keep=hill()))
    assert_array_equal(model.cell, CELL[hill()])


def test_air_below_the_rock_is_refused_whatever_the_name(tmp_path):
    tonnes = np.where(hill(), 15_000.0, 0.0)
    against(tmp_path, depth(), "blocks of air", ton=tonnes)
    against(tmp_path, depth(), "blocks of air", "elevation", ton=tonnes)
    against(tmp_path, elevation() - 2990, "blocks of air", "depth", ton=tonnes)
    called = np.where(hill(), "ore", "AIR")
    against(tmp_path, depth(), "blocks of air", rock=called)
    assert_array_equal(read(written(tmp_path, elevation(), ton=tonnes))[0].cell, CELL)
    assert_array_equal(read(written(tmp_path, elevation(), rock=called))[0].cell, CELL)


def test_another_column_that_runs_the_other_way_is_believed(tmp_path):
    against(tmp_path, depth(), "column 'rl' runs the other way", rl=elevation())
    against(tmp_path, depth(), "column 'depth' runs the other way", depth=depth() + 100)
    read(written(tmp_path, elevation(), depth=depth()))
    read(written(tmp_path, elevation(), depth=-depth()))


def test_fresh_rock_above_oxides_is_refused(tmp_path):
    kind = np.where(CELL[:, 2] == 3, "Oxide", np.where(CELL[:, 2] == 2, "mixed", "sulphide"))
    against(tmp_path, depth(), "'Oxide' below 'sulphide'", weathering=kind)
    read(written(tmp_path, elevation(), weathering=kind))


def test_a_mine_that_would_begin_kilometres_below_zero_is_refused(tmp_path):
    against(tmp_path, -elevation(), "lie 3000 m below zero")
    against(tmp_path, elevation(), "lie 3000 m below zero", "depth")


def test_few_voids_at_the_bottom_are_no_hillside(tmp_path):
    keep = np.ones(len(CELL), bool)
    keep[[0, 40]] = False
    assert len(read(written(tmp_path, elevation(), keep=keep))[0].cell) == len(CELL) - 2


def test_no_other_direction_is_taken(tmp_path):
    with pytest.raises(DataError, match="z_direction=sideways: choose up or down"):
        read(written(tmp_path, elevation()), "sideways")


@pytest.mark.parametrize(
    ("name", "direction"),
    [("z", None), ("ZC", None), ("level", None), ("bench", None), ("RL", Direction.up),
     ("world", None), ("Elevation (m)", Direction.up), ("DEPTH_M", Direction.down),
     ("z_down", Direction.down), ("mid-z-up", Direction.up), ("1", None)],
)  # fmt: skip
def test_what_names_say(name, direction):
    assert says(name) is direction


def test_blocks_that_are_counted_need_their_size(tmp_path):
    path = tmp_path / "counted.csv"
    rows = [f"{x},{y},{z},15000" for x, y, z in CELL.tolist()]
    path.write_text("\n".join(["x,y,elevation,ton", *rows]))
    with pytest.raises(DataError, match=r"x, y, z seem to count blocks.*block_size"):
        read_csv(path)
    model = read_csv(path, [20.0, 20.0, 15.0])
    assert_array_equal(model.cell, CELL)
    assert model.block_size == (20.0, 20.0, 15.0)
    benches = written(tmp_path, CELL[:, 2], "elevation")
    with pytest.raises(DataError, match="z seem to count blocks"):
        read_csv(benches)
    assert_allclose(read_csv(benches, [20.0, 20.0, 15.0]).block_size, [20, 20, 15])
    dense = tmp_path / "dense.csv"
    dense.write_text(path.read_text().replace("ton", "density").replace("15000", "2.5"))
    with pytest.raises(DataError, match="seem to count blocks"):
        read_csv(dense)


def test_feet_in_names_are_believed(tmp_path):
    path = written(tmp_path, elevation(), "elev_ft")
    with pytest.raises(DataError, match="elev_ft says feet, and the other coordinates do not"):
        read_csv(path, columns={"z": "elev_ft"})
    path.write_text(path.read_text().replace("x,y,elev_ft", "x_ft,y_ft,elev_ft"))
    with pytest.raises(DataError, match=r"state units\.length=ft"):
        read_csv(path, columns={"x": "x_ft", "y": "y_ft", "z": "elev_ft"})


def test_points_that_may_divide_thousands_are_refused(tmp_path):
    path = tmp_path / "points.csv"
    rows = [f"{x * 20};{y * 20};3.0{15 + z * 15};15.000" for x, y, z in CELL.tolist()]
    path.write_text("\n".join(["x;y;elevation;ton", *rows]))
    with pytest.raises(DataError, match=r"points of numbers such as 3\.015 may divide thousands"):
        read_csv(path)
