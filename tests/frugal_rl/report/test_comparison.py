"""Finished runs are compared in one page that needs no other file."""

import re

import pytest

from frugal_rl.errors import DataError
from frugal_rl.report.comparison import ReportOptions, write_report
from frugal_rl.report.document import Document, TableBlock
from frugal_rl.report.files import write_json, write_text
from frugal_rl.report.results import RunResult, compare, find_runs


def finished(folder, words, seed, predicted=100, measured=110, success=0.5):
    """A run folder as training leaves it behind."""
    config = {"env": {"name": "toy"}, "memory": {"profile": "lossless"}, "seed": seed}
    write_json(folder / "run.json", {"config": config, "overrides": [*words, f"seed={seed}"]})
    write_json(
        folder / "plan.json",
        {"label": "lossless", "ram_bytes": predicted, "bytes_per_transition": 12.5},
    )
    write_json(folder / "report.json", {"memory/peak_bytes": measured, "eval/success": success})
    lines = [f'{{"step": {s}, "train/loss": {1 / s}, "eval/success": {success}}}' for s in (1, 2)]
    write_text(folder / "metrics.jsonl", "\n".join(lines) + "\n")


def test_repetitions_are_one_row_with_their_mean(tmp_path):
    finished(tmp_path / "a", ["memory=lossless"], 0, measured=100, success=0.4)
    finished(tmp_path / "b", ["memory=lossless"], 1, measured=120, success=0.6)
    finished(tmp_path / "c", ["memory=baseline"], 0, measured=200)
    first, second = compare(find_runs([tmp_path]))

    assert (first.variant, first.seeds, first.measured_bytes) == ("memory=lossless", 2, 110)
    assert first.success == pytest.approx(0.5)
    assert first.error == pytest.approx(100 / 110 - 1)
    assert second.variant == "memory=baseline"


def test_the_page_holds_its_pictures_and_the_table(tmp_path):
    finished(tmp_path / "runs" / "a", ["memory=lossless"], 0)
    finished(tmp_path / "runs" / "b", ["memory=<b>"], 0)
    options = ReportOptions((str(tmp_path / "runs"),), str(tmp_path / "out"), "Title & more")
    markdown, page = write_report(options)
    text = page.read_text()

    assert "| memory=lossless | lossless | 1 | - | 12 | 100 B | 110 B | -9.1% |" in (
        markdown.read_text()
    )
    assert text.count("data:image/png;base64,") == 2
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "memory=&lt;b&gt;" in text
    assert "Title &amp; more" in text


def test_a_run_that_was_killed_is_in_the_report_and_said_to_be_unfinished(tmp_path):
    finished(tmp_path / "a", ["memory=lossless"], 0)
    (tmp_path / "a" / "report.json").unlink()
    markdown, _ = write_report(ReportOptions((str(tmp_path),), str(tmp_path / "out")))

    assert "still running, or killed): a" in markdown.read_text()
    assert RunResult.read(tmp_path / "a").number("eval/success") == 0.5


def test_places_without_runs_are_refused_in_words(tmp_path):
    with pytest.raises(DataError, match="No run lies below"):
        find_runs([tmp_path])
    with pytest.raises(DataError, match="is no folder"):
        find_runs([tmp_path / "missing"])


def test_a_table_keeps_its_columns_where_a_cell_holds_a_bar(tmp_path):
    document = Document("x", [TableBlock(("a|b",), [("c|d",)])])

    assert "| a\\|b |\n| --- |\n| c\\|d |" in document.markdown(tmp_path)


def test_what_a_run_drew_is_copied_into_the_report(tmp_path):
    finished(tmp_path / "runs" / "a", ["visualization=true"], 0)
    drawn = tmp_path / "runs" / "a" / "pictures"
    drawn.mkdir()
    (drawn / "life.gif").write_bytes(b"GIF89a")
    (drawn / "notes.txt").write_text("no picture")
    markdown, page = write_report(ReportOptions((str(tmp_path / "runs"),), str(tmp_path / "out")))

    assert "pictures/a_life.gif" in markdown.read_text()
    assert "data:image/gif;base64,R0lGODlh" in page.read_text()
    assert (tmp_path / "out" / "pictures" / "a_life.gif").is_file()
