"""A search asks, trains, tells and remembers; what is behind is ended early."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

optuna = pytest.importorskip("optuna", reason="optuna is an extra: pip install -e '.[hpo]'")

from optuna.trial import TrialState  # noqa: E402

from frugal_rl.errors import ConfigError, DataError  # noqa: E402
from frugal_rl.report import search as search_module  # noqa: E402
from frugal_rl.report.files import write_json  # noqa: E402
from frugal_rl.report.search import (  # noqa: E402
    Searcher,
    SearchOptions,
    Storage,
    again,
    drawn,
    open_study,
    search,
)
from frugal_rl.run.compose import compose_run  # noqa: E402

SPACE = ("algo.learning_rate=log(1e-4,1e-2)", "algo.n_epochs=range(1,8)")


@pytest.fixture
def run():
    words = ["env=toy", "tracking=disabled", "trials=3", "space=[]"]
    return compose_run(words, "search")


@pytest.fixture
def trained(monkeypatch):
    """Trials that end at once, and the folders that they ran in."""
    folders = []

    def train(self, trial, at):
        folders.append(at.name)
        return TrialState.COMPLETE, [
            trial.params["algo.n_epochs"],
            1e6 * trial.params["algo.n_epochs"],
        ]

    monkeypatch.setattr(Searcher, "train", train)
    return folders


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=log(1e-4, 1e-2)", "FloatDistribution(high=0.01, log=True, low=0.0001"),
        ("a.b=range(1,8)", "IntDistribution(high=8, log=False, low=1"),
        ("a.b=choice(half,dense)", "CategoricalDistribution(choices=('half', 'dense')"),
        ("a.b=choice([64],[256, 256])", "CategoricalDistribution(choices=('[64]', '[256,256]')"),
    ],
)
def test_a_space_is_read_from_words(text, expected):
    key, distribution = drawn(text)

    assert key == "a.b"
    assert repr(distribution).startswith(expected)


@pytest.mark.parametrize("text", ["a.b=1", "a.b=log(0,1)", "a.b=range(2,1)", "a.b=range(1)", ""])
def test_what_is_no_space_is_refused(text):
    with pytest.raises(ConfigError, match=r"space: "):
        drawn(text)


def test_what_a_trial_draws_takes_the_place_of_what_was_typed(run, tmp_path):
    searcher = object.__new__(Searcher)
    searcher.run_config = replace(run, overrides=("env=toy", "agent=mlp", "trials=3"))
    trial = SimpleNamespace(params={"agent": "cnn"})

    words = searcher.command(trial, tmp_path)[2:]
    assert words[:2] == ["env=toy", "agent=cnn"]


def test_an_empty_space_is_refused_with_an_example(run, tmp_path):
    with pytest.raises(ConfigError, match=r"space is empty; .*log\(1e-4,1e-2\)"):
        search(run, SearchOptions(out=str(tmp_path)))


@pytest.mark.parametrize("storage", Storage)
def test_a_search_runs_what_is_missing_and_draws_the_front(run, tmp_path, trained, storage):
    options = SearchOptions(3, 2, str(tmp_path), storage, space=SPACE)
    search(run, options)

    done = search(run, replace(options, trials=5))

    assert sorted(trained) == ["0", "1", "2", "3", "4"]
    study = open_study(tmp_path, storage, 0)
    assert len({t.params["algo.learning_rate"] for t in study.trials}) == 5
    page = Path(done.files[0]).read_text()
    assert (done.status, done.values["finished"]) == (0, 5)
    assert "5 trials finished, 0 were ended early" in page
    assert "trials=3" not in page  # commands train; they do not search
    assert (tmp_path / "pareto.png").stat().st_size > 5000


def test_the_trial_of_a_search_that_was_killed_goes_on_in_its_folder(run, tmp_path, trained):
    options = SearchOptions(2, 1, str(tmp_path), space=SPACE)
    study = open_study(tmp_path, Storage.sqlite, 0)
    lost = Searcher(run, options, study, dict(drawn(text) for text in SPACE))
    lost.options = replace(options, trials=9)
    with_values = lost_trial(lost)

    search(run, options)

    assert trained[0] == "0"
    done = [t for t in open_study(tmp_path, Storage.sqlite, 0).trials if t.state.name == "COMPLETE"]
    assert len(done) == 2
    assert done[0].params == with_values


def lost_trial(searcher):
    """Ask for a trial that nobody ever tells of."""
    searcher.going = type("Going", (), {"done": 0})()
    return dict(searcher.ask().params)


def test_a_trial_is_ended_early_only_behind_those_that_hold_no_more(run, tmp_path):
    study = open_study(tmp_path, Storage.journal, 0)
    space = dict(drawn(text) for text in SPACE)
    for reached in range(6):
        trial = study.ask(space)
        trial.set_user_attr("returns", {"640": float(reached)})
        study.tell(trial, [float(reached), 5e8])
    searcher = Searcher(run, SearchOptions(9, 1, str(tmp_path)), study, space)

    assert searcher.hopeless(wrote(tmp_path / "behind", 1.0, 6e8))
    assert not searcher.hopeless(wrote(tmp_path / "ahead", 4.0, 6e8))
    assert not searcher.hopeless(wrote(tmp_path / "smaller", 1.0, 4e8))
    assert not searcher.hopeless(wrote(tmp_path / "other", 1.0, 6e8, step=128))
    assert not searcher.hopeless(tmp_path / "none")


def wrote(at, reached, held, step=640):
    """A run folder after one evaluation."""
    at.mkdir()
    values = {"step": step, "eval/return": reached, "memory/held_bytes": held}
    write_json(at / "line.json", values)
    line = " ".join((at / "line.json").read_text().split())
    (at / "metrics.jsonl").write_text(line + "\n")
    return at


def test_again_takes_only_what_was_running(tmp_path):
    study = open_study(tmp_path, Storage.journal, 0)
    space = dict(drawn(text) for text in SPACE)
    study.tell(study.ask(space), [1.0, 2.0])
    running = study.ask(space)

    again(study)

    states = [t.state for t in study.trials]
    assert states == [TrialState.COMPLETE, TrialState.FAIL, TrialState.WAITING]
    assert study.ask(space).params == running.params


@pytest.mark.parametrize("storage", Storage)
@pytest.mark.parametrize("spoil", [lambda f: f.write_bytes(b"\x1b[2J\xff garbage\n" * 99),
                                   lambda f: f.write_bytes(f.read_bytes()[:2000] + b"[\n" * 9),
                                   lambda f: (f.unlink(), f.mkdir()),
                                   lambda f: (f.unlink(), os.mkfifo(f))])  # fmt: skip
def test_a_file_that_is_no_study_is_refused_in_one_line(spoil, storage, tmp_path):
    study = open_study(tmp_path, storage, 0)
    study.tell(study.ask(dict(drawn(text) for text in SPACE)), [1.0, 2.0])
    (file,) = (f for f in tmp_path.iterdir() if f.suffix in (".db", ".log"))
    spoil(file)
    with pytest.raises(DataError, match=rf"{file.name} cannot be read") as refused:
        open_study(tmp_path, storage, 0)
    assert str(refused.value).isprintable()


def test_a_search_that_was_killed_inside_a_line_goes_on(tmp_path):
    study = open_study(tmp_path, Storage.journal, 0)
    space = dict(drawn(text) for text in SPACE)
    for _ in range(2):
        study.tell(study.ask(space), [1.0, 2.0])
    log = tmp_path / "study.log"
    log.write_bytes(log.read_bytes()[:-7])
    study = open_study(tmp_path, Storage.journal, 0)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE, TrialState.RUNNING]
    study.tell(study.ask(space), [3.0, 4.0])
    assert len(open_study(tmp_path, Storage.journal, 0).trials) == 3


CROWDED = """
import pathlib, sys
tries = pathlib.Path(sys.argv[1], "tries")
tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
words = "CrowdedError: Start fewer at once." if len(tries.read_text()) < 3 else "ValueError: no."
sys.exit(words)
"""


def test_a_trial_that_found_no_room_beside_others_tries_again(run, tmp_path, monkeypatch, capsys):
    """It counted as refused."""
    crowd = lambda self, trial, at: [sys.executable, "-c", CROWDED, str(at)]  # noqa: E731
    monkeypatch.setattr(Searcher, "command", crowd)
    monkeypatch.setattr(search_module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(search_module, "AGAIN_SECONDS", 0.0)

    done = search(run, SearchOptions(out=str(tmp_path), space=SPACE, trials=1))

    assert done.status == 1  # no trial finished; it was 0
    assert "1 of them: ValueError: no." in Path(done.files[0]).read_text()
    assert "failed: ValueError: no." in capsys.readouterr().out
    assert (tmp_path / "trials" / "0" / "tries").read_text() == "xxx"
    (trial,) = open_study(tmp_path, Storage.sqlite, 0).trials
    assert trial.user_attrs["refused"] == "ValueError: no."


SLOW = """
import pathlib, signal, sys, threading
asked = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: asked.set())
pathlib.Path(sys.argv[1], "begun").touch()
asked.wait(60)
pathlib.Path(sys.argv[1], "saved").touch()
"""


def test_a_search_that_is_asked_to_stop_lets_its_trial_save_and_begins_no_other(
    run, tmp_path, monkeypatch
):
    """It went on with the next trial before, and SIGTERM left the trial behind."""
    slow = lambda self, trial, at: [sys.executable, "-c", SLOW, str(at)]  # noqa: E731
    monkeypatch.setattr(Searcher, "command", slow)
    monkeypatch.setattr(search_module, "LOOK_SECONDS", 0.05)
    options = SearchOptions(out=str(tmp_path), space=SPACE, trials=3, jobs=1)

    def ask():
        while not (tmp_path / "trials" / "0" / "begun").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=ask).start()
    with pytest.raises(KeyboardInterrupt, match="SIGTERM") as stopped:
        search(run, options)
    assert "go on with its trials" in stopped.value.__notes__[0]
    assert (tmp_path / "trials" / "0" / "saved").exists()
    assert [p.name for p in (tmp_path / "trials").iterdir()] == ["0"]
    states = [t.state for t in open_study(tmp_path, options.storage, 0).trials]
    assert states == [TrialState.RUNNING]
