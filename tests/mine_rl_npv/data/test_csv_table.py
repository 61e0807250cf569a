"""Tables of words as people export them, and what their columns mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frugal_rl.errors import DataError
from mine_rl_npv.data.block_model import read_csv
from mine_rl_npv.data.csv_table import read_table
from mine_rl_npv.data.units import Density, Grade, Length, Mass, Units

ROWS = [
    (x * 20, y * 20, z * 10, 1000.5, 0.25 * (x + 1)) for x in (0, 1) for y in (0, 1) for z in (0, 1)
]


HEAD = ("x", "y", "elevation", "ton", "cu")


def written(tmp_path, head, rows, divide=",", comma=False, encoding="utf-8"):
    lines = [divide.join(head)]
    for row in rows:
        words = [str(w) for w in row]
        lines.append(divide.join(w.replace(".", ",") if comma else w for w in words))
    path = tmp_path / "model.csv"
    path.write_bytes("\r\n".join(lines).encode(encoding))
    return path


@pytest.mark.parametrize("divide", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_any_delimiter_and_encoding_is_read(tmp_path, divide, encoding):
    path = written(tmp_path, HEAD, ROWS, divide, encoding=encoding)
    model = read_csv(path)
    assert_allclose(model.columns["ton"], 1000.5)
    assert model.block_size == (20.0, 20.0, 10.0)


def test_decimal_commas_are_read_where_they_divide_no_columns(tmp_path):
    path = written(tmp_path, HEAD, ROWS, ";", comma=True)
    assert_allclose(read_csv(path).columns["cu"], [row[4] for row in ROWS])


def test_a_point_beside_decimal_commas_is_no_decimal_sign(tmp_path):
    rows = [*ROWS * 63, (*ROWS[0][:3], "1.234", 0.5)]
    path = written(tmp_path, ("x", "y", "z", "ton", "cu"), rows, ";", comma=True)
    text = path.read_text().replace("1,234", "1.234")
    path.write_text(text)
    with pytest.raises(DataError, match=r"line 506: '1\.234' in column 'ton' is not a number"):
        read_csv(path)


def test_a_number_with_an_underscore_is_none(tmp_path):
    """Python takes 1_5 for 15: a point that was lost made a grade ten times as high."""
    path = written(tmp_path, ("x", "y", "z", "ton", "cu"), [*ROWS[:-1], (*ROWS[-1][:4], "0_5")])
    with pytest.raises(DataError, match=r"line 9: '0_5' in column 'cu' is not a number"):
        read_csv(path)


def test_names_are_guessed_shown_and_taken_as_the_user_says(tmp_path):
    path = written(tmp_path, ("Easting", "NORTHING", "RL", "Tonnes", "grade"), ROWS)
    model = read_csv(path, columns={"cu": "grade", "x": ""})
    assert_allclose(model.columns["cu"], [row[4] for row in ROWS])
    assert model.reading == "x=Easting, y=NORTHING, z=RL, ton=Tonnes, cu=grade"
    assert "cu" not in read_csv(path).columns
    assert read_csv(path).reading.endswith("carried through: grade")


def test_words_are_carried_through_and_refused_where_numbers_belong(tmp_path):
    rows = [(*row, "oxide" if i else "12b") for i, row in enumerate(ROWS)]
    path = written(tmp_path, (*HEAD, "rock"), rows)
    model = read_csv(path)
    assert_array_equal(model.text["rock"], ["12b"] + ["oxide"] * 7)
    assert "rock (text)" in model.reading
    with pytest.raises(DataError, match="line 2: '12b' in column 'rock' is not a number"):
        read_csv(path, columns={"cu": "rock"})


def test_a_density_stands_in_for_tonnes(tmp_path):
    path = written(tmp_path, (*HEAD[:3], "SG"), [row[:3] + (2.5,) for row in ROWS])
    assert_allclose(read_csv(path).columns["ton"], 2.5 * 20 * 20 * 10)


@pytest.mark.parametrize(("axis", "words"), [(0, "one x"), (2, "one elevation|one z")])
def test_a_density_without_a_length_is_refused(tmp_path, axis, words):
    """The length of another axis was taken: tonnes and money were those of other blocks."""
    rows = [row[:3] + (2.5,) for row in ROWS if row[axis] == 0]
    path = written(tmp_path, (*HEAD[:3], "SG"), rows)
    with pytest.raises(DataError, match=f"all blocks share ({words}),.*block_size"):
        read_csv(path)
    assert_allclose(read_csv(path, [20, 20, 10]).columns["ton"], 2.5 * 20 * 20 * 10)


def test_a_file_may_count_in_other_units(tmp_path):
    rows = [(*(v / 0.3048 for v in row[:3]), 168.555, row[4] * 1e4) for row in ROWS]
    path = written(tmp_path, (*HEAD[:3], "SG", "cu"), rows)
    units = Units(Length.ft, density=Density.lb_ft3, grade=Grade.ppm)
    model = read_csv(path, units=units)
    assert_allclose(model.block_size, (20, 20, 10))
    assert_allclose(model.columns["ton"], 2.7 * 20 * 20 * 10, rtol=1e-5)
    assert_allclose(model.columns["cu"], [row[4] for row in ROWS])
    path = written(tmp_path, HEAD, ROWS)
    with pytest.warns(UserWarning, match=r"weighs 0\.000113 t"):
        assert_allclose(
            read_csv(path, units=Units(mass=Mass.lb)).columns["ton"], 0.45381917, rtol=1e-6
        )


@pytest.mark.parametrize(
    ("head", "numbers", "words"),
    [
        ("SG", (2700.0, 0.5), r"weighs 2\.7e\+03 t; state .* units\.density=kg_m3"),
        ("ton", (11e6, 0.5), r"weighs 2\.75e\+03 t"),
        ("ton", (11e3, 0.005), r"copper is at most 0\.005 per cent; state units\.grade=share"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_no_rock_weighs_and_no_ore_holds_is_told(tmp_path, head, numbers, words):
    path = written(tmp_path, (*HEAD[:3], head, "cu"), [row[:3] + numbers for row in ROWS])
    with pytest.raises((DataError, UserWarning), match=words):
        read_csv(path)


def test_blocks_as_long_as_feet_are_told(tmp_path):
    rows = [(50 * x, 50 * y, z, *rest) for x, y, z, *rest in ROWS]
    with pytest.warns(UserWarning, match=r"1000 m long; state units\.length=ft"):
        read_csv(written(tmp_path, HEAD, rows))


@pytest.mark.parametrize(
    ("head", "columns", "words"),
    [
        (("x", "y", "z", "tonnes", "tonnage"), {}, "tonnes and tonnage could both be 'ton'"),
        (("x", "y", "z", "weight", "cu"), {}, r"missing column ton.*columns\.ton="),
        (("x", "y", "z", "ton", "cu"), {"cu": "gold"}, r"columns\.cu=gold: .* has x, y, z"),
        (("x", "y", "z", "ton", "cu"), {"gold": "cu"}, r"columns\.gold is no role"),
        (("x", "y", "z", "ton", "TON"), {}, "appears twice"),
    ],
)
def test_what_cannot_be_told_apart_is_refused_with_the_remedy(tmp_path, head, columns, words):
    with pytest.raises(DataError, match=words):
        read_csv(written(tmp_path, head, ROWS), columns=columns)


def test_parts_per_million_and_weightless_models_are_refused(tmp_path):
    rows = [(*row[:4], 2500.0) for row in ROWS]
    with pytest.raises(DataError, match="line 2: column 'cu' is 2500; it is read as per cent"):
        read_csv(written(tmp_path, HEAD, rows))
    rows = [(*row[:3], 0, 1) for row in ROWS]
    with pytest.raises(DataError, match="no block has any tonnage"):
        read_csv(written(tmp_path, HEAD, rows))


def test_a_table_keeps_its_lines_and_their_numbers(tmp_path):
    path = tmp_path / "model.csv"
    path.write_text('% made by hand\n\nx,"a, b",z\n1,"2, 3",4\n')
    table = read_table(path)
    assert table.names == ("x", "a, b", "z")
    assert table.place == [4]
    assert table.words == [["1", "2, 3", "4"]]


@pytest.mark.parametrize("line", [0, 1, 2, 3])
def test_a_cell_that_goes_on_in_the_next_line_is_refused_with_its_line(tmp_path, line):
    rows = ["x,y,z,ton,rock", '1,2,3,4,5" pipe"', "5,6,7,8,b", "9,8,7,6,c"]
    path = tmp_path / "model.csv"
    path.write_text("\n".join(rows))
    assert read_table(path).words[0][4] == '5" pipe"'
    head, _, last = rows[line].rpartition(",")
    rows[line] = f'{head},"{last}'.replace(' pipe"', "")
    rows[line] = rows[line].replace('5"', "5")
    path.write_text("\n".join(rows))
    with pytest.raises(DataError, match=f"line {line + 1}: a quotation mark opens a cell"):
        read_table(path)


@pytest.mark.parametrize("content", [b"", b"x,y,z,ton\n", b"\x00\x01\x02\x03", b"x\ny\n1,2\n"])
def test_what_is_no_table_is_refused_in_words(tmp_path, content):
    path = tmp_path / "model.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=str(path)):
        read_csv(path)
    with pytest.raises(DataError, match=r"cannot be read|does not exist"):
        read_csv(tmp_path)


def test_a_model_larger_than_doubles_can_hold_is_refused(tmp_path):
    rows = [(*row[:3], 1e308, 1.0) for row in ROWS]
    path = written(tmp_path, HEAD, rows)
    assert np.isfinite(read_csv(path).columns["ton"]).all()


@pytest.mark.parametrize(("word", "read"), [("0,600", 0.6), ("15,60", 15.6), ("1560,000", 1560.0)])
def test_a_comma_that_can_only_be_a_decimal_sign_is_one(tmp_path, word, read):
    (tmp_path / "t.csv").write_text(f"a;b\n{word};1\n")
    assert read_table(tmp_path / "t.csv").numbers(0).tolist() == [read]


def test_commas_that_may_divide_thousands_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n15,600;1\n16,000;2\n")
    with pytest.raises(DataError, match=r"15,600 may divide thousands or decimals"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("word", "absent"),
    [("-99", "-99"), ("-99.000", "-99"), ("", "blank"), ("NA", "na"), ("-", "-"), ("0.0", "-99")],
)
@pytest.mark.parametrize("divide", [",", ";"])
def test_a_missing_assay_is_waste_where_the_user_says_what_stands_for_it(
    tmp_path, word, absent, divide
):
    rows = [*ROWS[:-1], (*ROWS[-1][:4], word)]
    path = written(tmp_path, HEAD, rows, divide, comma=divide == ";")
    model = read_csv(path, columns={"absent": absent})
    assert model.columns["cu"].tolist() == [*(row[4] for row in ROWS[:-1]), 0.0]
    count = int(word != "0.0")
    assert f"; {count} assays ({absent}) are missing and read as 0" in model.reading
    if word != "0.0":
        with pytest.raises(DataError, match=rf"line 9: .*'cu'.*columns\.absent={word[:3] or 'b'}"):
            read_csv(path)


def test_what_makes_milling_dear_may_be_missing_in_waste_alone(tmp_path):
    rows = [(*row, 16.0) for row in ROWS]
    rows[2] = (*ROWS[2][:4], "-99", "-99")
    path = written(tmp_path, (*HEAD, "bwi"), rows)
    assert read_csv(path, columns={"absent": "-99"}).columns["bwi"][2] == 0
    rows[5] = (*ROWS[5], "-99")
    path = written(tmp_path, (*HEAD, "bwi"), rows)
    with pytest.raises(DataError, match=r"line 7: column 'bwi' is missing in a block of ore \(1 "):
        read_csv(path, columns={"absent": "-99"})


@pytest.mark.parametrize("column", range(4))
def test_a_missing_place_or_weight_is_refused_whatever_stands_for_it(tmp_path, column):
    row = list(ROWS[-1])
    row[column] = ""
    path = written(tmp_path, HEAD, [*ROWS[:-1], row])
    with pytest.raises(DataError, match="line 9: '' in column"):
        read_csv(path, columns={"absent": "blank"})


@pytest.mark.parametrize("word", ["#N/A", "#REF!", "#DIV/0!"])
def test_a_row_that_begins_with_a_spreadsheets_error_is_no_comment(tmp_path, word):
    """Its block was left out without a word."""
    path = written(tmp_path, HEAD, [*ROWS[:-1], (word, *ROWS[-1][1:])])
    with pytest.raises(DataError, match=rf"line 9: '{word}' in column 'x' is not a number"):
        read_csv(path)
    text = path.read_text().replace(word, "# left out")
    path.write_text(text)
    assert len(read_csv(path).cell) == len(ROWS) - 1


def test_what_spreadsheets_and_planning_packages_add_is_left_out(tmp_path):
    plain = read_csv(written(tmp_path, HEAD, ROWS, ";"))
    kinds = [f"Variable {word}:" + ";" * 4 for word in ("descriptions", "types", "defaults")]
    path = written(tmp_path, HEAD, ROWS, ";")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["sep=;", lines[0], *kinds, *lines[1:]]))
    found = read_csv(path)
    assert_array_equal(found.cell, plain.cell)
    assert found.table.place[0] == 6
