"""Small MineLib files written by hand: what each section means, what cannot be meant."""

import numpy as np
import pytest

from frugal_rl.errors import DataError
from mine_rl_npv.data.instance import MOST_PERIODS
from mine_rl_npv.data.minelib import read_instance
from mine_rl_npv.data.minelib_blocks import read_blocks
from mine_rl_npv.data.minelib_prec import read_precedence

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no line"),
    pytest.mark.filterwarnings("ignore:.*are not stated"),
]
BLOCKS = "0 0 0 1 5.5 ox\n1 0 0 0 6.5 sul\n2 1 0 0 7.5 ox\n"
PREC = "1 1 0\n"
UPIT = "TYPE: UPIT\nNBLOCKS: 3\nOBJECTIVE_FUNCTION:\n2 3\n0 -1\n1 2\n"
CPIT = """TYPE: CPIT
NBLOCKS: 3
NPERIODS: 2
NRESOURCE_SIDE_CONSTRAINTS: 2
DISCOUNT_RATE: 0.25
RESOURCE_CONSTRAINT_LIMITS:
0 0 L 10
0 1 I 1 11
1 0 G 2
OBJECTIVE_FUNCTION:
0 -1
1 2
2 3
RESOURCE_CONSTRAINT_COEFFICIENTS:
0 0 4
1 0 5
2 1 6
"""
PCPSP = """TYPE: PCPSP
NBLOCKS: 3
NPERIODS: 2
NDESTINATIONS: 2
NRESOURCE_SIDE_CONSTRAINTS: 2
NGENERAL_SIDE_CONSTRAINTS: 0
DISCOUNT_RATE: 0.25
RESOURCE_CONSTRAINT_LIMITS:
0 0 L 10
0 1 I 1 11
1 0 G 2
OBJECTIVE_FUNCTION:
0 -1 -2
1 2 5
2 3 1
RESOURCE_CONSTRAINT_COEFFICIENTS:
0 1 0 4
1 1 1 5
2 0 1 6
"""
GENERAL = """GENERAL_CONSTRAINT_COEFFICIENTS:
0 1 1 0 2.5
2 0 0 1 -1
GENERAL_CONSTRAINT_LIMITS:
0 L 4
1 I -1 3
"""


@pytest.fixture
def mine(tmp_path):
    """Writes files by ending; returns their prefix."""

    def write(blocks=BLOCKS, prec=PREC, **others):
        for ending, text in {"blocks": blocks, "prec": prec, **others}.items():
            (tmp_path / f"hill.{ending}").write_text(text)
        return tmp_path / "hill"

    return write


def test_blocks_are_cells_and_named_columns(mine):
    position, fields = read_blocks(mine().with_suffix(".blocks"))
    assert position.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert position.dtype == np.int32
    assert fields["field_4"].tolist() == [5.5, 6.5, 7.5]
    assert fields["field_5"].tolist() == ["ox", "sul", "ox"]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("id x y z cu rock\n", ["cu", "rock"]),
        ("id,x,y,z,cu,rock\n", ["cu", "rock"]),
        ("id x y z\n", ["field_4", "field_5"]),
    ],
)
def test_a_header_names_the_columns_if_it_names_all(mine, header, names):
    assert list(read_blocks(mine(header + BLOCKS).with_suffix(".blocks"))[1]) == names


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ("", "holds no blocks"),
        ("id x y z\n", "holds no blocks"),
        ("0 0 0\n", "line 1: a block needs 4 columns, found 3"),
        ("0 0 0 0 1\n1 0 0 1\n", "line 2: a block needs 5 columns, found 4"),
        ("0 0 0 0\n2 0 0 1\n", "line 2: block id 2 where 1 is due"),
        ("1 0 0 0\n", "line 1: block id 1 where 0 is due"),
        ("0 0 0 0\n1 0 1 0\n2 0 0 0\n", r"line 3: cell \(0, 0, 0\) already has a block"),
        ("0 0 x 0\n", "'x' in a block is not a number"),
    ],
)
def test_blocks_that_are_none_are_refused_with_their_line(mine, blocks, words):
    with pytest.raises(DataError, match=words):
        read_blocks(mine(blocks).with_suffix(".blocks"))


def needs(graph):
    rows = np.split(graph.index, graph.pointer[1:-1])
    return [row.tolist() for row in rows]


def test_a_block_without_a_line_needs_nothing(mine):
    graph = read_precedence(mine(prec="2 2 0 1\n1 1 0\n").with_suffix(".prec"), 4)
    assert needs(graph) == [[], [0], [0, 1], []]


def test_a_block_without_a_line_is_told(mine):
    path = mine(prec="2 2 0 1\n1 1 0\n").with_suffix(".prec")
    with pytest.warns(UserWarning, match=r"2 of 4 blocks have no line \(the first: 0\)"):
        read_precedence(path, 4)


def test_a_file_of_precedences_that_was_cut_off_is_refused(mine):
    path = mine(prec="0 0\n1 1 0\n").with_suffix(".prec")
    with pytest.raises(DataError, match=r"1 of 3 blocks have no line .*State `2 0` for a block"):
        read_precedence(path, 3)


def test_limits_that_no_line_states_are_told(mine):
    told = r"1 of 4 limits are not stated \(the first: resource 1 in period 1\)"
    with pytest.warns(UserWarning, match=told):
        read_instance(mine(cpit=CPIT))


@pytest.mark.parametrize(
    ("prec", "words"),
    [
        ("0\n", "line 1: expected `block count predecessor"),
        ("0 -1\n", "line 1: expected"),
        ("0 1 1.0\n", "line 1: expected"),
        ("0 0\n1 1 12345678901\n", "line 2: expected"),
        ("3 0\n", "line 1: block 3 is unknown; known are 0 to 2"),
        ("1 2 0\n", "block 1 announces 2 predecessors and names 1"),
        ("1 0 0\n", "block 1 announces 0 predecessors and names 1"),
        ("1 0\n1 0\n", "line 2: block 1 has a second line"),
        ("0 0\n1 1 7\n", "block 1 needs the unknown block 7"),
        ("0 1 0\n", "cycle"),
        ("0 1 1\n1 1 2\n2 1 0\n", "cycle: block 0 needs 1 needs 2 needs 0"),
    ],
)
def test_precedences_that_are_none_are_refused(mine, prec, words):
    with pytest.raises(DataError, match=words):
        read_precedence(mine(prec=prec).with_suffix(".prec"), 3)


def test_a_cpit_file_says_values_limits_and_uses(mine):
    found = read_instance(mine(cpit=CPIT))
    assert found.value.tolist() == [-1, 2, 3]
    assert (found.periods, found.rate, found.name) == (2, 0.25, "hill")
    assert found.high.tolist() == [[10, 11], [np.inf, np.inf]]
    assert found.low.tolist() == [[0, 1], [2, 0]]
    assert found.use.tolist() == [[4, 0], [5, 0], [0, 6]]
    assert found.destination_value.tolist() == [[-1], [2], [3]]
    assert found.general is None


def test_a_pcpsp_file_says_values_by_destination_and_the_best_one_is_the_blocks(mine):
    found = read_instance(mine(pcpsp=PCPSP))
    assert found.destination_value.tolist() == [[-1, -2], [2, 5], [3, 1]]
    assert found.value.tolist() == [-1, 5, 3]
    assert found.use.tolist() == [[0, 0], [0, 5], [0, 6]]
    assert found.destination_use[0].tolist() == [[0, 0], [4, 0]]


def test_where_both_are_there_the_block_is_that_of_the_cpit_file(mine):
    found = read_instance(mine(cpit=CPIT, pcpsp=PCPSP, upit=UPIT))
    assert found.value.tolist() == [-1, 2, 3]
    assert found.use.tolist() == [[4, 0], [5, 0], [0, 6]]
    assert found.destination_value.tolist() == [[-1, -2], [2, 5], [3, 1]]


def test_an_upit_file_alone_is_a_pit_without_periods(mine):
    prefix = mine(upit=UPIT)
    with pytest.raises(DataError, match=r"hill\.cpit does not exist.* method=upit"):
        read_instance(prefix)
    found = read_instance(prefix, pit_only=True)
    assert found.value.tolist() == [-1, 2, 3]
    assert (found.periods, found.resources) == (1, 0)


def test_no_problem_at_all_is_refused(mine):
    with pytest.raises(DataError, match=r"none of \.upit, \.cpit and \.pcpsp exists"):
        read_instance(mine())


def test_general_rows_name_block_destination_period_and_row(mine):
    text = PCPSP.replace("GENERAL_SIDE_CONSTRAINTS: 0", "GENERAL_SIDE_CONSTRAINTS: 2") + GENERAL
    rows = read_instance(mine(pcpsp=text)).general
    assert rows.block.tolist() == [0, 2]
    assert rows.destination.tolist() == [1, 0]
    assert rows.period.tolist() == [1, 0]
    assert rows.row.tolist() == [0, 1]
    assert rows.value.tolist() == [2.5, -1]
    assert (rows.low.tolist(), rows.high.tolist()) == ([-np.inf, -1], [4, 3])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0 L 4", "0 Q 4", "expected `row L|G value` or `row I low high`"),
        ("0 L 4", "0 L 4 5", "expected `row L|G value`"),
        ("1 I -1 3", "1 I -1", "expected `row L|G value`"),
        ("1 I -1 3", "2 I -1 3", "row 2 is unknown; known are 0 to 1"),
        ("0 1 1 0 2.5", "0 1 1 2 2.5", "row 2 is unknown"),
        ("0 1 1 0 2.5", "0 2 1 0 2.5", "destination 2 is unknown"),
        ("0 1 1 0 2.5", "0 1 2 0 2.5", "period 2 is unknown"),
        ("0 1 1 0 2.5", "3 1 1 0 2.5", "block 3 is unknown"),
        ("0 1 1 0 2.5", "0 1 1 0 nan", "a coefficient is not finite"),
        ("2 0 0 1 -1", "2 0 0 1 -1\n2 0 0 1 -1", "has such a coefficient in the row already"),
        ("0 L 4", "0 L 4\n0 L 9", "row 0 has a limit already"),
        ("0 L 4\n", "", "general row 0 has no limit|only 3 lines"),
        ("0 L 4", "0 L nan", "a limit is not a number"),
        ("1 I -1 3", "1 I 3 -1", "the lower limit 3 is above -1"),
        ("0 L 4", "0 L -inf", "no amount keeps this limit"),
        ("0 1 1 0 2.5", "0 1 1 0", "a general coefficient needs 5 numbers, found 4"),
        ("CONSTRAINTS: 2\nDIS", "CONSTRAINTS: 5\nDIS", "only 4 lines speak of general constraint"),
        ("CONSTRAINTS: 2\nDIS", "CONSTRAINTS: -1\nDIS", "only 4 lines speak of general constraint"),
        ("CONSTRAINTS: 2\nDIS", "CONSTRAINTS: 0\nDIS", "is 0, but 4 lines speak of general"),
    ],
)
def test_general_rows_that_are_none_are_refused(mine, old, new, words):
    text = PCPSP.replace("GENERAL_SIDE_CONSTRAINTS: 0", "GENERAL_SIDE_CONSTRAINTS: 2") + GENERAL
    assert old in text
    with pytest.raises(DataError, match=words):
        read_instance(mine(pcpsp=text.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("NPERIODS: 2", "NPERIODS: 0", "NPERIODS is 0"),
        ("NPERIODS: 2", f"NPERIODS: {MOST_PERIODS + 1}", "impossible"),
        ("RATE: 0.25", "RATE: -1", "DISCOUNT_RATE -1.0; impossible"),
        ("RATE: 0.25", "RATE: 1e999", "DISCOUNT_RATE inf; impossible"),
        ("RATE: 0.25", "RATE: -inf", "impossible"),
        ("NBLOCKS: 3", "NBLOCKS: 4", r"NBLOCKS is 4, the \.blocks file has 3"),
        ("CONSTRAINTS: 2", "CONSTRAINTS: 7", "is 7, but only 6 lines speak of resource"),
        ("CONSTRAINTS: 2", "CONSTRAINTS: -1", "is -1, but only 6 lines"),
        ("CONSTRAINTS: 2", "CONSTRAINTS: 0", "is 0, but 6 lines speak of resource"),
        ("0 0 L 10", "0 0 X 10", "expected `resource period L|G value`"),
        ("0 0 L 10", "0 0 L", "expected `resource period L|G value`"),
        ("0 1 I 1 11", "0 1 I 11", "expected `resource period"),
        ("0 1 I 1 11", "0 1 I 12 11", "the lower limit 12 is above 11"),
        ("0 0 L 10", "0 0 L 10\n0 0 L 12", "resource 0 in period 0 has such a limit already"),
        ("0 1 I 1 11", "0 1 I 1 11\n0 1 G 2", "resource 0 in period 1 has such a limit already"),
        ("0 0 L 10", "0 0 L nan", "a limit is not a number"),
        ("0 0 L 10", "0 0 L -5", "the lower limit 0 is above -5"),
        ("1 0 G 2", "1 0 G inf", "no amount keeps this limit"),
        ("1 0 5", "x 1 0 5", "line [0-9]+: no section of a MineLib file is called x; put % before"),
        ("2 1 6", "2 1 6\n2 1 7", "block 2 and resource 1 have such a line already"),
        ("0 0 L 10", "2 0 L 10", "resource 2 is unknown"),
        ("0 0 L 10", "0 2 L 10", "period 2 is unknown"),
        ("0 0 L 10", "0 0 L ten", "'ten' in a limit is not a number"),
        ("2 1 6", "2 2 6", "resource 2 is unknown"),
        ("2 1 6", "3 1 6", "block 3 is unknown"),
        ("2 1 6", "2 1 -6", "block 2 uses -6 tonnes; it must be 0 or more"),
        ("2 1 6", "2 1 nan", "block 2 uses nan tonnes"),
        ("2 1 6", "2 1 inf", "block 2 uses inf tonnes"),
        ("0 -1\n", "0 inf\n", "a value is not finite"),
        ("0 -1\n", "1 -1\n", "has 3 rows for 2 blocks; each of the 3 blocks needs exactly one"),
        ("OBJECTIVE_FUNCTION", "OBJECTIVE", "no section of a MineLib file is called OBJECTIVE"),
        ("CONSTRAINT_COEFF", "CONSTRAINT_CEOFF", "is called RESOURCE_CONSTRAINT_CEOFF"),
        ("TYPE: CPIT", "TYPE: PCPSP", r"this is a PCPSP file, named \.cpit"),
    ],
)
def test_a_cpit_file_that_cannot_be_meant_is_refused(mine, old, new, words):
    assert old in CPIT
    with pytest.raises(DataError, match=words):
        read_instance(mine(cpit=CPIT.replace(old, new, 1)))


def test_side_rows_of_a_cpit_file_are_not_ignored(mine):
    with pytest.raises(DataError, match="side rows would be ignored"):
        read_instance(mine(cpit=CPIT + GENERAL))


@pytest.mark.parametrize(
    ("old", "new"), [("RATE: 0.25", "RATE: 0.3"), ("0 0 L 10", "0 0 L 9"), ("0 0 L 10\n", "")]
)
def test_two_files_that_contradict_each_other_are_refused(mine, old, new):
    with pytest.raises(DataError, match="disagree about periods, rate or limits"):
        read_instance(mine(cpit=CPIT, pcpsp=PCPSP.replace(old, new, 1)))


def test_two_values_of_a_block_are_refused(mine):
    with pytest.raises(DataError, match="give block 2 two values"):
        read_instance(mine(cpit=CPIT, upit=UPIT.replace("2 3", "2 4")))


def test_a_mine_without_limits_needs_no_sections_for_them(mine):
    head, _, rest = CPIT.partition("RESOURCE_CONSTRAINT_LIMITS")
    values = rest[rest.index("OBJECTIVE") : rest.index("RESOURCE_CONSTRAINT_COEFF")]
    text = head.replace("CONSTRAINTS: 2", "CONSTRAINTS: 0") + values
    found = read_instance(mine(cpit=text))
    assert (found.resources, found.use.shape) == (0, (3, 0))


def test_a_rate_below_nought_makes_later_money_worth_more(mine):
    found = read_instance(mine(cpit=CPIT.replace("RATE: 0.25", "RATE: -0.5")))
    assert found.discount.tolist() == [1.0, 2.0]


def test_a_file_that_was_cut_off_does_not_pass_for_one_of_weightless_blocks(mine):
    """Blocks without tonnes fit any capacity; EOF says that they are meant."""
    cut = CPIT.removesuffix("2 1 6\n")
    with pytest.raises(DataError, match="last coefficients are those of block 1 of 0 to 2"):
        read_instance(mine(cpit=cut))
    assert read_instance(mine(cpit=cut + "EOF\n")).use[2].tolist() == [0, 0]
    assert read_instance(mine(cpit=CPIT)).use[2].tolist() == [0, 6]


def test_a_limit_that_no_block_counts_against_is_told(mine):
    idle = CPIT.replace("2 1 6", "2 0 6")
    with pytest.warns(UserWarning, match="no block uses resource 1"):
        read_instance(mine(cpit=idle))


@pytest.mark.parametrize(
    ("blocks", "cells"),
    [
        ("0 5.5 9 3e9\n1 5.5 9 -2.5\n2 7 9 -2.5\n", [[0, 0, 1], [0, 0, 0], [1, 0, 0]]),
        ("0 -5 9 3\n1 5 9 2\n2 7 9 2\n", [[-5, 9, 3], [5, 9, 2], [7, 9, 2]]),
    ],
)
def test_places_in_metres_are_ranked_on_each_axis(mine, blocks, cells):
    """5.5 was cut to 5, and 3e9 to what a number of 32 bits makes of it."""
    blocks = blocks.replace("\n", " 1\n")
    assert read_blocks(mine(blocks).with_suffix(".blocks"))[0].tolist() == cells


def test_a_block_that_is_nowhere_is_refused(mine):
    with pytest.raises(DataError, match="line 1: the block is nowhere"):
        read_blocks(mine(BLOCKS.replace("0 0 0 1", "0 0 0 nan")).with_suffix(".blocks"))
