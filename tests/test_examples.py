"""What a stranger copies from runs as it stands, in an empty folder."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
MOST_EXAMPLES, MOST_LINES = 8, 60


def test_examples_are_few_and_short():
    assert 0 < len(EXAMPLES) <= MOST_EXAMPLES
    for path in EXAMPLES:
        assert len(path.read_text().splitlines()) <= MOST_LINES, path.name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_runs_and_says_something(path, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    runpy.run_path(str(path), run_name="__main__")

    assert capfd.readouterr().out.strip()
