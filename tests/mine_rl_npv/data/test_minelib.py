"""MineLib files: what is read back, what is tolerated, what is refused in words."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frugal_rl.errors import DataError
from mine_rl_npv.data import read_instance, read_solution, write_instance, write_schedule
from mine_rl_npv.data.instance import GeneralRows
from mine_rl_npv.data.solutions import period_of, read_pit, write_pit
from mine_rl_npv.data.synthetic import varied_instance


@pytest.fixture
def prefix(tmp_path):
    write_instance(varied_instance(5, 4, 5), tmp_path / "hill")
    return tmp_path / "hill"


def edit(prefix, suffix, change):
    path = prefix.with_name(prefix.name + suffix)
    path.write_text(change(path.read_text()))
    return path


def refusal(prefix):
    with pytest.raises(DataError) as error:
        read_instance(prefix)
    return str(error.value)


def assert_same(a, b):
    for name in ("position", "value", "use", "low", "high", "destination_value", "destination_use"):
        assert_array_equal(getattr(a, name), getattr(b, name), name)
    assert_array_equal(a.graph.index, b.graph.index)
    assert_array_equal(a.graph.pointer, b.graph.pointer)
    assert (a.periods, a.rate) == (b.periods, b.rate)


def test_an_instance_is_read_back_in_full_precision(prefix):
    assert_same(read_instance(prefix), varied_instance(5, 4, 5))


def test_block_columns_are_read_back_by_name(prefix):
    original = varied_instance(5, 4, 5)
    again = read_instance(prefix)
    assert list(again.fields) == list(original.fields)
    assert_array_equal(again.fields["cu"], original.fields["cu"])


def test_interval_limits_and_general_rows_survive_writing(tmp_path):
    original = varied_instance(5, 4, 5)
    low = original.low.copy()
    low[1, 0] = 10.0
    rows = GeneralRows(
        np.array([0, 0, 1], np.int32),
        np.array([0, 3, 2], np.int32),
        np.array([1, 0, 1], np.int32),
        np.array([0, 1, 2], np.int32),
        np.array([1.5, -2.0, 1.0]),
        np.array([-np.inf, 0.5]),
        np.array([4.0, 9.0]),
    )
    changed = replace(original, low=low, general=rows)
    write_instance(changed, tmp_path / "x")
    again = read_instance(tmp_path / "x")
    assert_array_equal(again.low, low)
    for name in ("row", "block", "destination", "period", "value", "low", "high"):
        assert_array_equal(getattr(again.general, name), getattr(rows, name), name)


def test_sections_come_in_any_order_with_crlf_comments_colons_and_eof(prefix):
    def scramble(text):
        head, rest = text.split("RESOURCE_CONSTRAINT_LIMITS:\n")
        limits, rest = rest.split("OBJECTIVE_FUNCTION:\n")
        values, uses = rest.split("RESOURCE_CONSTRAINT_COEFFICIENTS:\n")
        uses = uses.replace("EOF\n", "").replace(" ", "\t:")
        scrambled = (
            "% a comment\n"
            + head
            + "RESOURCE CONSTRAINT COEFFICIENTS:\n"
            + uses
            + "OBJECTIVE FUNCTION:\n"
            + values
            + "RESOURCE_CONSTRAINT_LIMITS:\n"
            + limits
            + "EOF\n"
        )
        return scrambled.replace("\n", "\r\n") + "after the end\r\n"

    edit(prefix, ".cpit", scramble)
    assert_same(read_instance(prefix), varied_instance(5, 4, 5))


def test_a_header_line_in_blocks_is_optional(prefix):
    edit(prefix, ".blocks", lambda text: text.split("\n", 1)[1])
    again = read_instance(prefix)
    assert_array_equal(again.position, varied_instance(5, 4, 5).position)
    assert "field_4" in again.fields


def test_text_columns_are_kept_as_text(prefix):
    edit(
        prefix,
        ".blocks",
        lambda text: "\n".join(
            line + (" type" if i == 0 else " OXOR") for i, line in enumerate(text.splitlines())
        ),
    )
    assert set(read_instance(prefix).fields["type"]) == {"OXOR"}


def test_sentinels_are_kept_as_money_and_clipped_as_features(prefix):
    from mine_rl_npv.rules.layout import lay_out
    from mine_rl_npv.spec import geology

    edit(prefix, ".pcpsp", lambda text: re.sub(r"(FUNCTION:\n0 \S+) \S+", r"\1 -5.7e19", text))
    instance = read_instance(prefix)
    assert instance.destination_value[0, 1] == -5.7e19
    planes = geology(lay_out(instance), ("value", "cu"))
    assert np.abs(planes).max() <= 3.0


@pytest.mark.parametrize(
    ("suffix", "change", "words"),
    [
        (
            ".prec",
            lambda t: "0 1 1\n1 1 0\n" + "\n".join(t.splitlines()[2:]) + "\n",
            [".prec", "cycle", "block 0 needs 1 needs 0"],
        ),
        (".prec", lambda t: "0 2 1\n" + t.split("\n", 1)[1], ["line 1", "announces 2", "names 1"]),
        (".prec", lambda t: "0 1 99999\n" + t.split("\n", 1)[1], ["unknown block 99999"]),
        (".prec", lambda t: "0 0\n" + t, ["line 2", "second line"]),
        (".prec", lambda t: "99999 0\n" + t, ["line 1", "block 99999 is unknown"]),
        (".prec", lambda t: "zero 0\n" + t, ["line 1", "whole numbers"]),
        (".cpit", lambda t: t.replace("NBLOCKS: ", "NBLOCKS: 1"), ["NBLOCKS", ".blocks"]),
        (".cpit", lambda t: t.replace("DISCOUNT_RATE", "DISCOUNT"), ["DISCOUNT_RATE is meant"]),
        (".cpit", lambda t: re.sub("DISCOUNT_RATE.*", "", t), ["DISCOUNT_RATE", "missing"]),
        (".cpit", lambda t: t.replace("NPERIODS: ", "NPERIODS: 0."), ["NPERIODS", "one int"]),
        (".cpit", lambda t: t.replace("\n0 0 L", "\n0 99 L", 1), ["period 99 is unknown"]),
        (".cpit", lambda t: t.replace("\n0 0 L", "\n0 0 Q", 1), ["resource period L|G"]),
        (
            ".cpit",
            lambda t: t.replace("COEFFICIENTS:\n0 0 ", "COEFFICIENTS:\n0 0 -", 1),
            ["block 0 uses -", "0 or more"],
        ),
        (
            ".cpit",
            lambda t: t.replace("OBJECTIVE_FUNCTION:\n0 ", "OBJECTIVE_FUNCTION:\n1 ", 1),
            ["OBJECTIVE_FUNCTION", "exactly one"],
        ),
        (
            ".cpit",
            lambda t: t.replace("OBJECTIVE_FUNCTION:\n0 ", "OBJECTIVE_FUNCTION:\n0 x", 1),
            ["is not a number"],
        ),
        (".cpit", lambda t: t.replace("TYPE: CPIT", "TYPE: UPIT"), ["this is a UPIT file"]),
        (".cpit", lambda t: t.replace("DISCOUNT_RATE: 0.", "DISCOUNT_RATE: 0.0"), ["disagree"]),
        (".cpit", lambda t: t.replace("DISCOUNT_RATE: ", "DISCOUNT_RATE: 1"), ["impossible"]),
        (".upit", lambda t: re.sub(r"(FUNCTION:\n0) \S+", r"\1 7", t), ["two values"]),
        (".blocks", lambda t: t + "99999 1 1 1\n", ["columns, found 4"]),
        (".blocks", lambda t: t.replace("\n0 ", "\n7 ", 1), ["line 2", "block id 7"]),
        (".blocks", lambda t: "é" + t, ["not ASCII"]),
    ],
)
def test_bad_files_are_refused_by_name_and_place(prefix, suffix, change, words):
    edit(prefix, suffix, change)
    message = refusal(prefix)
    for word in [f"hill{suffix}", *words]:
        assert word in message


def test_a_missing_file_is_named(prefix):
    prefix.with_name("hill.prec").unlink()
    assert "hill.prec does not exist" in refusal(prefix)


def test_two_blocks_in_one_cell_are_refused(prefix):
    def twice(text):
        lines = text.splitlines()
        cell = lines[1].split()[1:4]
        lines[2] = " ".join(["1", *cell, *lines[2].split()[4:]])
        return "\n".join(lines)

    edit(prefix, ".blocks", twice)
    assert "already has a block" in refusal(prefix)


def test_schedules_and_pits_are_read_back(tmp_path):
    instance = varied_instance(5, 4, 5)
    period = np.random.default_rng(0).integers(-1, instance.periods, instance.blocks)
    write_schedule(period, tmp_path / "a.sol")
    assert_array_equal(period_of(read_solution(tmp_path / "a.sol", instance)), period)
    write_pit(period >= 0, tmp_path / "pit.sol")
    assert_array_equal(read_pit(tmp_path / "pit.sol", instance.blocks), period >= 0)


def test_a_rate_in_per_cent_is_refused(prefix):
    for suffix in (".cpit", ".pcpsp"):
        edit(prefix, suffix, lambda text: re.sub(r"(DISCOUNT_RATE:?) .*", r"\1 8", text))
    assert "a rate of 8 % is 0.08" in refusal(prefix)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0 0 0 1.5", "outside"),
        ("0 0 99 1", "period 99"),
        ("99999 0 0 1", "block 99999"),
        ("0 9 0 1", "destination 9"),
        ("0 0 0", "4 numbers"),
    ],
)
def test_bad_solutions_are_refused(tmp_path, line, words):
    (tmp_path / "bad.sol").write_text(line + "\n")
    with pytest.raises(DataError, match=words):
        read_solution(tmp_path / "bad.sol", varied_instance(5, 4, 5))


def test_nothing_half_written_remains(tmp_path, monkeypatch):
    import mine_rl_npv.data.whole_files as writer

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr(writer.os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_instance(varied_instance(5, 4, 5), tmp_path / "x")
    assert not (tmp_path / "x.blocks").exists()
