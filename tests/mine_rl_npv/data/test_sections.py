"""Lines, sections, numbers and ids of MineLib's text files, each rule on a file of a few lines."""

import numpy as np
import pytest

from frugal_rl.errors import DataError
from mine_rl_npv.data.sections import Lines, read_lines, read_sections, scalar, table, whole

KNOWN = frozenset(
    "NAME TYPE NPERIODS ROWS LAST RESOURCE_CONSTRAINT_LIMITS DISCOUNT_RATE A B".split()
)


@pytest.fixture
def file(tmp_path):
    """Writes a file of these bytes or words."""

    def write(content):
        path = tmp_path / "mine.cpit"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_comments_and_blank_lines_count_as_lines_and_say_nothing(file):
    lines = read_lines(file("% head\n\n1 2\n   % more\n  3\t4  \n"))
    assert (lines.text, lines.number) == (["1 2", "3 4"], [3, 5])
    assert len(lines) == 2


def test_what_stands_after_the_end_is_not_read(file):
    assert read_lines(file("1\nEOF\n2\n")).text == ["1"]


def test_a_word_that_begins_as_the_end_does_is_no_end(file):
    assert read_lines(file("EOF 1\n2\n")).text == ["EOF 1", "2"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", " \r\n"])
def test_lines_may_end_as_on_any_system(file, ending):
    assert read_lines(file(ending.join(["a: 1", "b: 2"]))).text == ["a  1", "b  2"]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone\.prec does not exist"):
        read_lines(tmp_path / "gone.prec")


def test_the_first_byte_that_is_no_ascii_is_named(file):
    with pytest.raises(DataError, match=r"not ASCII text \(byte 2\)"):
        read_lines(file(b"1\n\xff\n"))


@pytest.mark.parametrize("code", [0x00, 0x07, 0x1B, 0x7F])
def test_a_control_character_is_named_with_its_line(file, code):
    with pytest.raises(DataError, match=rf"line 2: a control character \(0x{code:02x}\)"):
        read_lines(file(b"1\n2 " + bytes([code]) + b"\n"))


def test_an_error_names_the_line_of_its_entry(file):
    lines = read_lines(file("\n1\n\n2\n"))
    assert str(lines.error(1, "is wrong.")).endswith("mine.cpit, line 4: is wrong.")


def test_sections_hold_their_rows_or_their_value(file):
    found = read_sections(file("NAME: a hill\nNPERIODS: 3\nROWS:\n1 2\n3 4\nLAST: 9\n"), KNOWN)
    assert list(found) == ["NAME", "NPERIODS", "ROWS", "LAST"]
    assert found["NAME"].text == ["a hill"]
    assert found["NPERIODS"].text == ["3"]
    assert (found["ROWS"].text, found["ROWS"].number) == (["1 2", "3 4"], [4, 5])


def test_blanks_inside_a_keyword_are_underscores(file):
    found = read_sections(file("RESOURCE CONSTRAINT LIMITS:\n1\nDISCOUNT RATE: 0.1\n"), KNOWN)
    assert list(found) == ["RESOURCE_CONSTRAINT_LIMITS", "DISCOUNT_RATE"]
    assert found["DISCOUNT_RATE"].text == ["0.1"]


@pytest.mark.parametrize("keyword", ["NAME", "TYPE"])
def test_a_name_may_be_several_words(file, keyword):
    assert read_sections(file(f"{keyword}: my old mine\n"), KNOWN)[keyword].text == ["my old mine"]


def test_a_section_that_stands_twice_is_refused_with_its_line(file):
    with pytest.raises(DataError, match="line 3: section A appears twice"):
        read_sections(file("A: 1\nB: 2\nA: 3\n"), KNOWN)


def test_rows_before_any_section_are_refused(file):
    with pytest.raises(DataError, match="line 1: a row stands before the first section"):
        read_sections(file("1 2\nA: 1\n"), KNOWN)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("3", int, 3), ("-4", int, -4), ("0.5", float, 0.5), ("2", float, 2)],
)
def test_a_single_number_is_read(file, text, kind, value):
    path = file(f"A: {text}\n")
    found = scalar(read_sections(path, KNOWN), "A", path, kind)
    assert found == value
    assert type(found) is kind


@pytest.mark.parametrize("text", ["1 2", "-x", "1.5", "1e3"])
def test_what_is_no_single_whole_number_is_refused_with_its_line(file, text):
    path = file(f"\nA: 1\nB:\n{text}\n")
    with pytest.raises(DataError, match="line 4: B must be one int"):
        scalar(read_sections(path, KNOWN), "B", path)


@pytest.mark.parametrize("content", ["B: 1\n", "A:\nB: 1\n"])
def test_a_number_that_is_missing_is_named(file, content):
    path = file(content)
    with pytest.raises(DataError, match="section A is missing or empty"):
        scalar(read_sections(path, KNOWN), "A", path)


def rows_of(*text):
    return Lines("mine.cpit", [10 + i for i in range(len(text))], list(text))


def test_a_table_is_numbers_in_rows():
    found = table(rows_of("1 2", "3 -4.5e1"), 2, "a row")
    assert found.dtype == np.float64
    assert found.tolist() == [[1, 2], [3, -45]]


def test_an_empty_table_has_no_rows():
    assert table(rows_of(), 3, "a row").shape == (0, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (("1 2", "3"), "line 11: a row needs 2 numbers, found 1"),
        (("1 2 3", "4"), "line 10: a row needs 2 numbers, found 3"),
        (("1 2", "3 x"), "line 11: 'x' in a row is not a number"),
        (("1 0x10",), "'0x10' in a row is not a number"),
        (("1 1_5",), "'1_5' in a row is not a number"),
    ],
)
def test_a_row_that_is_none_is_named_with_its_line(text, words):
    with pytest.raises(DataError, match=words):
        table(rows_of(*text), 2, "a row")


def test_ids_are_whole_numbers_below_a_bound():
    found = whole(rows_of("0", "2", "1"), np.array([0.0, 2.0, 1.0]), 3, "block")
    assert found.dtype == np.int32
    assert found.tolist() == [0, 2, 1]


@pytest.mark.parametrize("wrong", [-1.0, 3.0, 0.5, np.inf, -np.inf, np.nan])
def test_the_first_id_that_is_none_is_named(wrong):
    lines = rows_of("0", "?", "?")
    with pytest.raises(DataError, match=r"line 11: block .* is unknown; known are 0 to 2"):
        whole(lines, np.array([0.0, wrong, wrong]), 3, "block")


def test_a_word_that_opens_no_section_is_refused_with_its_line(file):
    with pytest.raises(DataError, match=r"line 2: .* is called ROW; ROWS is meant\?"):
        read_sections(file("ROWS:\nROW 1 2\n3 4\n"), KNOWN)
    with pytest.raises(DataError, match=r"line 2: .* is called zzz; put % before a comment"):
        read_sections(file("ROWS:\nzzz 1 2\n3 4\n"), KNOWN)
