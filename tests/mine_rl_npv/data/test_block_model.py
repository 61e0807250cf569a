"""CSV block models and the money made of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frugal_rl.errors import DataError
from mine_rl_npv.data.block_model import read_csv, write_csv
from mine_rl_npv.data.bundled import open_instance
from mine_rl_npv.data.economics import MILL, WASTE, Economics, block_values, model_instance
from mine_rl_npv.data.lattice import turn
from mine_rl_npv.data.synthetic import Deposit, block_model, varied_instance
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Method, SolveConfig

SMALL = Deposit(5, 4, 3, seed=2)


@pytest.fixture
def path(tmp_path):
    write_csv(block_model(SMALL), tmp_path / "mine.csv")
    return tmp_path / "mine.csv"


def rewrite(path, change):
    path.write_text(change(path.read_text().splitlines()))


def test_a_block_model_is_read_back_in_full_precision(path):
    model, original = read_csv(path), block_model(SMALL)
    assert_array_equal(model.cell, original.cell)
    assert model.block_size == original.block_size
    for name, column in original.columns.items():
        assert_array_equal(model.columns[name], column, name)


def test_columns_may_come_in_any_order_with_crlf_blank_lines_and_comments(path):
    def shuffle(lines):
        words = [line.split(",")[::-1] for line in lines]
        return "% made by hand\r\n\r\n" + "\r\n".join(",".join(w) for w in words) + "\r\n"

    original = read_csv(path)
    rewrite(path, shuffle)
    assert_array_equal(read_csv(path).cell, original.cell)
    assert_array_equal(read_csv(path).columns["cu"], original.columns["cu"])


def test_absent_rows_are_air_and_gaps_are_reported(path):
    middle = next(i for i, c in enumerate(block_model(SMALL).cell.tolist()) if c == [2, 2, 1])
    rewrite(path, lambda lines: "\n".join(lines[: middle + 1] + lines[middle + 2 :]))
    with pytest.warns(UserWarning, match="1 cells are missing"):
        model = read_csv(path)
    assert model.gaps == 1
    assert not model.solid()[2, 2, 1]
    assert model.solid().sum() == 5 * 4 * 3 - 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda ls: "\n".join([ls[0].replace("ton", "weight"), *ls[1:]]), "missing column ton"),
        (lambda ls: "\n".join([*ls[:2], ls[2].rsplit(",", 1)[0] + ",-5"]), "line 3.*'ton'"),
        (lambda ls: "\n".join([*ls, ls[1]]), "line 62.*already has the block of line 2"),
        (lambda ls: "\n".join([*ls[:4], ls[4] + ",1", *ls[5:]]), "line 5: 17 values for 16"),
        (lambda ls: "\n".join([*ls[:1], ls[1].replace(",", ",x", 1), *ls[2:]]), "line 2.*'x"),
        (lambda ls: "\n".join([*ls[:1], ls[1].rsplit(",", 1)[0] + ",nan"]), "line 2.*'nan'"),
        (lambda ls: ls[0], "at least one block"),
        (lambda ls: "\n".join([ls[0].replace("mo", "cu", 1), *ls[1:]]), "appears twice"),
    ],
)
def test_bad_rows_are_refused_by_line(path, change, words):
    rewrite(path, change)
    with pytest.raises(DataError, match=words):
        read_csv(path)


def moved(lines, line, metres):
    """The lines with one block's x changed; `line` counts from 1, the header's."""
    words = lines[line - 1].split(",")
    words[0] = repr(float(words[0]) + metres)
    return [*lines[: line - 1], ",".join(words), *lines[line:]]


def test_a_moved_centroid_is_named_and_changes_no_slope(path):
    straight = model_instance(read_csv(path))
    rewrite(path, lambda lines: "\n".join(moved(lines, 7, 5.0)))
    with pytest.warns(UserWarning, match="1 centroids lie off.*line 7 by 5 m"):
        model = read_csv(path)
    assert model.block_size == (20.0, 20.0, 15.0)
    instance = model_instance(model)
    assert closure(instance.graph)[closure(straight.graph)].all()
    plan = solve(instance, SolveConfig(method=Method.greedy))
    assert plan.verdict.feasible
    assert_allclose(instance.slopes.stated[5] - instance.slopes.centre[5], [5.0, 0, 0], atol=1e-9)


def closure(graph):
    """(n, n) bool: row needs column, directly or not."""
    reach = np.eye(graph.blocks, dtype=bool)
    for b in graph.order:
        reach[b] |= reach[graph.index[graph.pointer[b] : graph.pointer[b + 1]]].any(axis=0)
    return reach


def test_a_centroid_between_two_cells_is_refused_by_line(path):
    rewrite(path, lambda lines: "\n".join(moved(lines, 7, 9.0)))
    with pytest.raises(DataError, match="line 7: the centroid is 9 m off the lattice"):
        read_csv(path)


def test_a_centroid_moved_into_another_block_s_cell_is_refused_by_line(path):
    rewrite(path, lambda lines: "\n".join(moved(lines, 7, 12.0)))
    with pytest.raises(DataError, match="line 7: the centroid is 8 m off the lattice"):
        read_csv(path)


def test_coordinates_of_which_six_digits_are_left_are_refused(tmp_path):
    places = np.argwhere(np.ones((5, 7, 3))) * (12.5, 12.5, 15.0) + (1000.0, 7654321.0, 300.0)
    file = tmp_path / "rounded.csv"

    def write(form):
        rows = ["{},{},{},6000,0.4".format(*(form % n for n in row)) for row in places.tolist()]
        file.write_text("\n".join(["x,y,elevation,ton,cu", *rows]))

    write("%g")  # blocks of 12.5 m seem to be 10 m long, with empty planes between them
    with pytest.raises(DataError, match=r"numbers of y have six digits.*10 to 20 m apart"):
        read_csv(file)
    with pytest.raises(DataError, match="the centroid is 5 m off the lattice"):
        read_csv(file, [12.5, 12.5, 15.0])
    write("%.9g")
    assert read_csv(file).block_size == (12.5, 12.5, 15.0)


def test_unequal_blocks_are_read_with_their_edges_and_refused_without(tmp_path):
    parents = np.argwhere(np.ones((3, 3, 3))) * 20.0 + 10.0
    split = parents[13]
    children = split + np.argwhere(np.ones((2, 2, 2))) * 10.0 - 5.0
    rows = [(*c, 20, 20, 20, 1e4, 1.0) for c in np.delete(parents, 13, axis=0)]
    rows += [(*c, 10, 10, 10, 1e3, 1.0) for c in children]
    file = tmp_path / "sub.csv"
    text = "\n".join(",".join(map(str, row)) for row in rows)
    file.write_text("x,y,z_up,dx,dy,dz,ton,cu\n" + text)
    instance = model_instance(read_csv(file))
    plan = solve(instance, SolveConfig(method=Method.greedy))
    assert plan.verdict.feasible
    assert plan.verdict.slopes.blocks > 0
    file.write_text(file.read_text().replace("dx,dy,dz", "a,b,c"))
    with pytest.raises(DataError, match=r"no block size|off the lattice"):
        read_csv(file)


def test_a_rotated_model_of_unequal_blocks_is_turned_back(tmp_path):
    parents = np.argwhere(np.ones((4, 3, 3))) * 20.0 + 10.0
    children = parents[13] + np.argwhere(np.ones((2, 2, 2))) * 10.0 - 5.0
    centre = np.vstack((np.delete(parents, 13, axis=0), children))
    edge = np.repeat([20.0, 10.0], [len(parents) - 1, len(children)])
    models = []
    for bearing in (0.0, 30.0):
        rows = np.column_stack((turn(centre, -bearing), edge, edge, edge, edge**3 * 2.5))
        text = "\n".join(",".join(map(repr, row)) for row in rows.tolist())
        (tmp_path / "sub.csv").write_text("x,y,z_up,dx,dy,dz,ton\n" + text)
        models.append(read_csv(tmp_path / "sub.csv"))
    straight, turned = models
    assert turned.bearing == pytest.approx(30.0, abs=0.001)
    assert_array_equal(turned.cell, straight.cell)
    assert_allclose(turned.centre, straight.centre, atol=0.01)


def test_a_missing_file_is_refused_in_words(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_csv(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="no bundled deposit"):
        open_instance("nothing")


def test_money_follows_the_formula_of_the_specification():
    raw = {"ton": 1000.0, "cu": 1.0, "mo": 0.1, "rec": 90.0, "bwi": 17.0, "clays": 5.0}
    columns = {name: np.array([value]) for name, value in raw.items()}
    waste, mill = block_values(columns, Economics())[0]
    revenue = 1000 * 2204.62 * 0.9 * (0.01 * 3.80 + 0.001 * 15.0)
    cost = 1000 * (2.5 + 8.0 + 1.2) + 1000 * 0.1 * 2 + 1000 * 0.5 * 2
    assert_allclose(waste, -2500.0)
    assert_allclose(mill, revenue - cost)


def test_money_is_made_of_raw_grades_and_waste_may_stay_unmilled():
    instance = model_instance(block_model(SMALL), Economics(copper_price=1.0))
    assert_array_equal(instance.value, instance.destination_value.max(axis=1))
    assert (instance.value >= instance.destination_value[:, WASTE]).all()
    assert (instance.destination_use[:, WASTE, 1] == 0).all()
    assert (instance.destination_use[:, MILL, 1] > 0).all()


def test_a_seed_grows_the_same_deposit_everywhere():
    one, other = block_model(SMALL), block_model(SMALL)
    assert_array_equal(one.columns["cu"], other.columns["cu"])
    assert not np.array_equal(
        block_model(Deposit(5, 4, 3, seed=3)).columns["cu"], one.columns["cu"]
    )
    assert varied_instance(9).name == "varied_9"


def small(tmp_path, rows):
    """A file of blocks of 20 x 20 x 15 m, and these rows."""
    cells = np.argwhere(np.ones((3, 3, 4))) * [20.0, 20.0, 15.0] + [0.0, 0.0, 600.0]
    lines = [f"{x},{y},{z},15000,1.0" for x, y, z in [*cells.tolist(), *rows]]
    (tmp_path / "m.csv").write_text("\n".join(["x,y,elevation,ton,cu", *lines]))
    return tmp_path / "m.csv"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((0.0, 0.0, -999.0), r"lies 1599 m from all others along z"),
        ((-9999.0, 20.0, 615.0), r"lies 9999 m from all others along x"),
        ((0.0, 20.0, 1000.0), r"lies 355 m from all others along z"),
    ],
)
def test_a_coordinate_that_stands_for_a_missing_one_is_refused(tmp_path, row, words):
    with pytest.raises(DataError, match=f"line 38: .*({words}|no block size)"):
        read_csv(small(tmp_path, [row]), [20, 20, 15])


def test_a_row_that_is_there_twice_makes_no_block_thinner(tmp_path):
    """A bench of 0.01 m weighed next to nothing, and all the others with it."""
    twice = [(20.0 * x, 20.0, 15.0 * z + 0.01) for x, z in ((0, 40), (1, 41))]
    with pytest.raises(DataError, match=r"line 3[89]"):
        read_csv(small(tmp_path, twice))
    cells = np.argwhere(np.ones((2, 2, 5))) + 0.5
    lines = [f"{x},{y},{z},2.5,1.0" for x, y, z in [*cells.tolist(), (1.5, 0.5, 3.51)]]
    (tmp_path / "tiny.csv").write_text("\n".join(["x,y,elevation,ton,cu", *lines]))
    with pytest.raises(DataError, match=r"line 15: .* lies 0\.01 m from that of line 22,"):
        read_csv(tmp_path / "tiny.csv")
