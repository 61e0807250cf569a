"""A report of a stranger's runs: read, or refused in one line; nothing is written elsewhere."""

import json
import os

import pytest
from PIL import Image

from frugal_rl.errors import DataError
from frugal_rl.report import plots
from frugal_rl.report.comparison import ReportOptions, write_report
from frugal_rl.report.results import RunResult
from frugal_rl.testing.fuzz import Reading, mutations

RUN = {"config": {"env": {"name": "toy"}, "memory": {"profile": "lossless"}, "seed": 1,
                  "algo": {"total_steps": 64}}, "overrides": ["env=toy", "seed=1"]}  # fmt: skip
FILES = {
    "run.json": json.dumps(RUN),
    "plan.json": json.dumps({"ram_bytes": 5, "parts": [{"name": "a", "ram_bytes": 5}]}),
    "report.json": json.dumps({"num_steps": 64, "eval/return": 0.5, "memory/peak_bytes": 7}),
    "metrics.jsonl": "\n".join(json.dumps({"step": s, "eval/return": s / 9}) for s in range(9)),
}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    (folder / "pictures").mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def reported(run, **words):
    asked = ReportOptions(runs=(str(run),), out=str(run.parent / "out"), curves=(), **words)
    return write_report(asked)[0].read_text()


def fuzzed(name, run, count, monkeypatch):
    monkeypatch.setattr(plots, "memory_bars", lambda *_: None)
    reading = Reading(run / name, lambda path: reported(path.parent), name=" ")
    assert reading.problems(mutations(FILES[name].encode(), count, 1, text=True)) == []
    assert reading.accepted > 0


@pytest.mark.parametrize("name", FILES)
def test_changed_files_of_a_run_are_reported_or_refused_in_one_line(name, run, monkeypatch):
    fuzzed(name, run, 60, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_five_hundred_changed_files_of_a_run_are_reported_or_refused(name, run, monkeypatch):
    fuzzed(name, run, 500, monkeypatch)


ODD = [
    None,
    7,
    "x",
    [],
    {},
    True,
    1e308,
    -1,
    "9" * 400,
    [[]],
    {"name": {}},
    "../../../up",
    "\x1b[31m",
]


@pytest.mark.parametrize(
    "key", ["config", "overrides", "env", "memory", "algo", "tracking", "seed"]
)
@pytest.mark.parametrize("value", ODD, ids=str)
def test_odd_values_in_a_runs_configuration_are_reported_or_refused(key, value, run, monkeypatch):
    monkeypatch.setattr(plots, "memory_bars", lambda *_: None)
    asked = json.loads(FILES["run.json"])
    (asked if key in asked else asked["config"])[key] = value
    reading = Reading(run / "run.json", lambda path: reported(path.parent), name=" ")
    assert reading.problems([("", json.dumps(asked).encode())]) == []


def test_a_configuration_that_is_none_names_its_folder(run):
    (run / "run.json").write_text('{"config": 7}')
    with pytest.raises(DataError, match=r"run.json holds no configuration of a run"):
        RunResult.read(run)


def test_a_name_that_leads_elsewhere_leads_nowhere(run):
    asked = json.loads(FILES["run.json"])
    asked["config"]["env"]["name"] = "../../../up/<b>"
    (run / "run.json").write_text(json.dumps(asked))
    page = reported(run)
    assert not list(run.parent.parent.rglob("up*"))
    drawn = [p.name for p in (run.parent / "out" / "pictures").iterdir()]
    assert drawn == ["__.._.._up__b__memory.png"]
    assert "<b>" not in page


def test_links_and_files_that_are_no_pictures_are_not_copied(run):
    secret = run.parent / "secret.png"
    Image.new("L", (3, 3)).save(secret)
    pictures = run / "pictures"
    os.symlink(secret, pictures / "link.png")
    os.symlink("/dev/zero", pictures / "endless.png")
    os.mkfifo(pictures / "pipe.gif")
    (pictures / "text.png").write_text("no picture")
    Image.new("L", (3, 3)).save(pictures / "x)\x1b[31m<b>.png")
    page = reported(run)
    copied = [p.name for p in (run.parent / "out" / "pictures").iterdir() if "memory" not in p.name]
    assert copied == ["run_x___31m_b_.png"]
    assert "\x1b" not in page
    assert "<b>" not in page.replace("\\<b\\>", "")
