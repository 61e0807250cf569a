"""Finished runs are compared in one page that needs no other file."""

import os
import re
import shutil
import subprocess

import pytest
from PIL import Image

from frugal_rl.errors import DataError
from frugal_rl.report.comparison import Format, ReportOptions, write_report
from frugal_rl.report.document import Document, Heading, PictureBlock, TableBlock
from frugal_rl.report.files import write_json, write_text
from frugal_rl.report.results import (
    RunResult,
    State,
    compare,
    find_runs,
    short_names,
    spread,
)
from frugal_rl.run.lock import locked


def finished(folder, words, seed, predicted=100, measured=110, success=0.5):
    """A run folder as training leaves it behind."""
    config = {"env": {"name": "toy"}, "memory": {"profile": "lossless"}, "seed": seed}
    write_json(folder / "run.json", {"config": config, "overrides": [*words, f"seed={seed}"]})
    write_json(
        folder / "plan.json",
        {"label": "lossless", "ram_bytes": predicted, "bytes_per_transition": 12.5},
    )
    summary = {"num_steps": 2, "memory/peak_bytes": measured, "eval/success": success}
    write_json(folder / "report.json", summary)
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
    assert "2 runs of 1 environment." in text
    assert text.count("data:image/png;base64,") == 2
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "memory=&lt;b&gt;" in text
    assert "Title &amp; more" in text


def test_runs_that_go_on_or_were_killed_are_told_apart_and_in_no_mean(tmp_path):
    for name in ("a", "b", "c"):
        finished(tmp_path / name, ["memory=lossless"], 0)
    for name in ("a", "b"):
        (tmp_path / name / "report.json").unlink()
    with locked(tmp_path / "b"):
        markdown, _ = write_report(ReportOptions((str(tmp_path),), str(tmp_path / "out")))

    text = markdown.read_text()
    assert "Still running: b." in text
    assert "Killed, or ended by an error: a." in text
    assert [state_of(text, name) for name in "abc"] == ["killed", "running", "complete"]
    assert RunResult.read(tmp_path / "a").number("eval/success") == 0.5


def state_of(markdown, name):
    """What the table of runs says."""
    (row,) = re.findall(rf"^\| \S*\b{name} \| (\w+) \|", markdown, re.MULTILINE)
    return row


def test_places_without_runs_are_refused_in_words(tmp_path):
    with pytest.raises(DataError, match="No run lies below"):
        find_runs([tmp_path])
    with pytest.raises(DataError, match="is no folder"):
        find_runs([tmp_path / "missing"])


def test_a_table_keeps_its_columns_where_a_cell_holds_a_bar(tmp_path):
    document = Document("x", [TableBlock(("a|b",), [("c|d",)])])

    assert "| a\\|b |\n| --- |\n| c\\|d |" in document.markdown(tmp_path)


def test_the_title_of_a_column_of_numbers_stands_above_them():
    page = Document("x", [TableBlock(("run", "steps"), [("3a", "12"), ("b", "-")])]).page()

    assert '<th>run</th><th class="number">steps</th>' in page


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


def test_the_newest_film_of_a_run_is_in_the_report(tmp_path):
    films = tmp_path / "runs" / "a" / "films"
    finished(tmp_path / "runs" / "a", ["evaluation.film=true"], 0)
    films.mkdir()
    for age, name in enumerate(("90000.gif", "100000.gif")):
        (films / name).write_bytes(b"GIF89a")
        os.utime(films / name, (age + 1, age + 1))
    markdown, _ = write_report(ReportOptions((str(tmp_path / "runs"),), str(tmp_path / "out")))

    text = markdown.read_text()
    assert "film at step 100000" in text
    assert "film at step 90000" not in text


def test_the_machine_is_named_once_or_beside_each_run(tmp_path):
    for name, machine in (("a", "2 cores of X"), ("b", "2 cores of X"), ("c", "4 cores of Y")):
        finished(tmp_path / name, [], 0)
        asked = {"config": {"env": {"name": "toy"}}, "overrides": [], "machine": machine}
        write_json(tmp_path / name / "run.json", asked)
    alike, different = (
        write_report(ReportOptions(tuple(str(tmp_path / n) for n in names), str(tmp_path / names)))
        for names in ("ab", "abc")
    )

    assert "Machine: 2 cores of X." in alike[0].read_text()
    assert "Machine:" not in different[0].read_text()
    assert "| 4 cores of Y |" in different[0].read_text()


def test_a_run_and_the_one_that_went_on_from_it_are_one_variant(tmp_path):
    finished(tmp_path / "a", ["env=toy"], 0)
    write_json(tmp_path / "a" / "report.json", {"num_steps": 1, "interrupted": True})
    finished(tmp_path / "b", ["env=toy", "resume=runs/a"], 0)

    (row,) = compare(find_runs([tmp_path]))

    assert (row.seeds, row.incomplete) == (1, 1)


def test_the_order_of_words_makes_no_variant(tmp_path):
    finished(tmp_path / "a", ["algo.n_steps=8", "env=toy", "memory=sparse"], 0)
    finished(tmp_path / "b", ["memory=lossless", "env=toy", "memory=sparse", "algo.n_steps=8"], 1)

    (row,) = compare(find_runs([tmp_path]))

    assert (row.variant, row.seeds) == ("env=toy memory=sparse algo.n_steps=8", 2)


def test_stopped_and_killed_runs_are_in_no_mean(tmp_path):
    for seed, success in enumerate((0.4, 0.6, 0.9)):
        finished(tmp_path / f"seed{seed}", ["memory=lossless"], seed, success=success)
    stopped = {"num_steps": 1, "memory/peak_bytes": 999, "eval/success": 0.9, "interrupted": True}
    write_json(tmp_path / "seed2" / "report.json", stopped)
    finished(tmp_path / "seed3", ["memory=lossless"], 3, success=0.9)
    (tmp_path / "seed3" / "report.json").unlink()

    (row,) = compare(find_runs([tmp_path]))

    assert (row.seeds, row.incomplete) == (2, 2)
    assert row.success == pytest.approx(0.5)
    assert row.measured_bytes == 110


def test_a_run_that_ended_by_an_error_is_not_complete_though_its_memory_was_noted(tmp_path):
    finished(tmp_path / "a", [], 0)
    write_json(tmp_path / "a" / "report.json", {"memory/peak_bytes": 110})

    assert RunResult.read(tmp_path / "a").state is State.killed


def test_a_run_that_did_fewer_steps_than_asked_is_not_complete(tmp_path):
    finished(tmp_path / "a", [], 0)
    asked = {"config": {"algo": {"total_steps": 66_000}}, "overrides": []}
    write_json(tmp_path / "a" / "run.json", asked)
    write_json(tmp_path / "a" / "report.json", {"num_steps": 20_480})

    assert RunResult.read(tmp_path / "a").state is State.stopped


@pytest.mark.parametrize(
    ("values", "half"), [([0.4, 0.6], 12.71 * 0.1), ([1.0, 2.0, 3.0], 4.30 / 3**0.5)]
)
def test_the_spread_is_half_of_student_s_interval(values, half):
    assert spread(values) == pytest.approx(half)
    assert spread(values[:1]) is None


def test_only_the_words_that_differ_name_a_variant(tmp_path):
    finished(tmp_path / "a", ["env=toy", "memory=lossless"], 0)
    finished(tmp_path / "b", ["env=toy", "memory=baseline"], 0)
    finished(tmp_path / "c", ["env=toy"], 0)

    names, shared = short_names(find_runs([tmp_path]))

    assert shared == ["env=toy"]
    assert sorted(names.values()) == ["memory=baseline", "memory=lossless", "nothing else"]


def test_each_environment_has_a_section_of_its_own(tmp_path):
    for env in ("toy", "nclone"):
        finished(tmp_path / "runs" / env, [], 0)
        config = {"config": {"env": {"name": env}}, "overrides": []}
        write_json(tmp_path / "runs" / env / "run.json", config)
    runs, out = str(tmp_path / "runs"), str(tmp_path / "out")
    (markdown,) = write_report(ReportOptions((runs,), out, format=Format.markdown))

    text = markdown.read_text()
    assert "2 runs of 2 environments." in text
    assert text.index("## nclone") < text.index("## toy") < text.index("## Runs")
    assert not (tmp_path / "out" / "report.html").exists()


def test_words_of_a_stranger_s_run_are_no_markdown(tmp_path):
    document = Document("x", [Heading("[a](http://b)"), TableBlock(("c",), [("<img src=d>",)])])

    text = document.markdown(tmp_path)
    assert not re.search(r"(?<!\\)[\[<]", text)


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def browsed(folder, *words):
    """What the browser prints, headless."""
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [CHROMIUM, *flags.split(), profile, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt install chromium)")
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_charts_are_as_dark_as_the_page(tmp_path, scheme):
    chart, shot = tmp_path / "chart.png", tmp_path / "shot.png"
    Image.new("RGB", (600, 300), "white").save(chart)
    page = Document("Shown", [PictureBlock(chart, "all white", "memory")]).write(tmp_path)[1]
    number = ["dark", "light"].index(scheme)
    wanted = f"--blink-settings=preferredColorScheme={number}"

    browsed(tmp_path, wanted, "--window-size=700,500", f"--screenshot={shot}", page.as_uri())

    with Image.open(shot) as seen:
        outside, inside = (seen.convert("L").getpixel(at) for at in ((3, 250), (300, 250)))
    assert abs(outside - inside) < 12
    assert (inside < 60) == (scheme == "dark")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt install chromium)")
@pytest.mark.parametrize("width", [500, 1280])
def test_the_page_fits_a_phone_and_a_desktop(tmp_path, width):
    finished(tmp_path / "runs" / "a", ["memory=lossless", "word=" + "long" * 60], 0)
    finished(tmp_path / "runs" / "b", ["memory=baseline"], 0)
    _, page = write_report(ReportOptions((str(tmp_path / "runs"),), str(tmp_path / "out")))
    measure = (
        "<script>addEventListener('load', () => {"
        "const right = [...document.images].map(i => Math.ceil(i.getBoundingClientRect().right));"
        "const wide = Math.max(document.documentElement.scrollWidth, ...right);"
        "document.body.id = 'wide' + wide + 'of' + right.length + 'images'})</script>"
    )
    page.write_text(page.read_text().replace("</body>", measure + "</body>"))
    size = f"--window-size={width},800"

    dom = browsed(tmp_path, size, "--dump-dom", page.as_uri())

    wide, charts = map(int, re.search(r'id="wide(\d+)of(\d+)images"', dom).groups())
    assert wide <= width
    assert charts > 0  # and none of them is cut
