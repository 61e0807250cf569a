"""Block models, instances and schedules, changed at random, are read or refused in one line."""

import re

import numpy as np
import pytest

from frugal_rl.errors import DataError
from frugal_rl.testing.fuzz import Reading, mutations
from mine_rl_npv.data import read_instance, read_solution, write_instance, write_schedule
from mine_rl_npv.data.block_model import read_csv, write_csv
from mine_rl_npv.data.bundled import open_instance
from mine_rl_npv.data.solutions import read_pit, write_pit
from mine_rl_npv.data.synthetic import Deposit, block_model, varied_instance

KINDS = ("blocks", "prec", "upit", "cpit", "pcpsp", "sol", "pit", "csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All files of one small mine."""
    folder = tmp_path_factory.mktemp("hill")
    instance = varied_instance(5, 3, 4)
    write_instance(instance, folder / "hill")
    write_schedule(np.zeros(instance.blocks, int), folder / "hill.sol")
    write_pit(np.ones(instance.blocks, bool), folder / "hill.pit")
    write_csv(block_model(Deposit(3, 3, 4, seed=1, richness=0.7)), folder / "hill.csv")
    return folder


def reader(kind, instance):
    """What a user does with a file of that kind."""
    readers = {
        "csv": lambda path: (read_csv(path), open_instance(str(path))),
        "sol": lambda path: read_solution(path, instance),
        "pit": lambda path: read_pit(path, instance.blocks),
    }
    return readers.get(kind, lambda path: read_instance(path.with_suffix("")))


def fuzzed(folder, kind, count):
    path = folder / f"hill.{kind}"
    raw = path.read_bytes()
    reading = Reading(path, reader(kind, varied_instance(5, 3, 4)), name="hill.")
    try:
        assert reading.problems(mutations(raw, count, 1, text=True)) == []
    finally:
        path.write_bytes(raw)
    assert reading.refused > 0
    return reading


@pytest.mark.parametrize("kind", KINDS)
def test_changed_files_are_read_or_refused_in_one_line(folder, kind):
    fuzzed(folder, kind, 25)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_changed_files_are_read_or_refused_in_one_line(folder, kind):
    fuzzed(folder, kind, 500)


COUNTS = ("NBLOCKS", "NPERIODS", "NDESTINATIONS", "NRESOURCE_SIDE_CONSTRAINTS",
          "NGENERAL_SIDE_CONSTRAINTS", "DISCOUNT_RATE")  # fmt: skip


@pytest.mark.parametrize("number", ["-1", "99999999", "9" * 25, "nan", "1e300", "inf"])
@pytest.mark.parametrize("keyword", COUNTS)
def test_counts_that_the_file_does_not_bear_out_take_no_memory(folder, keyword, number):
    path = folder / "hill.pcpsp"
    raw = path.read_bytes()
    changed = re.sub(rf"({keyword}): \S+", rf"\1: {number}", raw.decode()).encode()
    assert changed != raw
    reading = Reading(path, reader("pcpsp", None), name="hill.")
    try:
        assert reading.problems(iter([("", changed)])) == []
    finally:
        path.write_bytes(raw)
    assert reading.refused == 1 or (keyword, number) == ("DISCOUNT_RATE", "99999999")


def test_a_control_character_is_named_and_never_printed(folder, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes((folder / "hill.csv").read_bytes().replace(b"\n", b"\n\x1b[31m", 1))
    with pytest.raises(DataError, match=r"a\.csv, line 2: a control character \(0x1b\)"):
        read_csv(path)
