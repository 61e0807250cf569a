"""The page of all faults names only tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reliability.md").read_text()


def defined():
    """Names of all tests of the project."""
    files = (ROOT / "tests").rglob("test_*.py")
    return {
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }


def rows():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    return [line for line in lines if not line.startswith(("| fault", "| file"))]


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 40
    assert named <= defined()


def test_every_file_that_the_page_names_exists():
    files = re.findall(r"`((?:\w+/)+test_\w+\.py)`", PAGE)
    assert len(files) > 15
    assert not [
        f for f in files if not any((p / f).is_file() for p in (ROOT, ROOT / "tests/frugal_rl"))
    ]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[2:40])
def test_every_fault_has_its_promise_and_its_test(row):
    fault, happens, test = (cell.strip() for cell in row.strip("| ").split(" | "))
    assert fault
    assert happens
    assert "test_" in test
