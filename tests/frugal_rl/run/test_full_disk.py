"""A disk that is full at each write of a run in turn: nothing older is lost, all of it reads."""

import errno
import json
import os
import shutil
import time
import warnings
from dataclasses import replace

import pytest
import torch
from PIL import Image

from frugal_rl.errors import DiskError, FrugalError
from frugal_rl.report.comparison import ReportOptions, write_report
from frugal_rl.report.files import read_metrics
from frugal_rl.report.results import RunResult
from frugal_rl.run import cells, saves
from frugal_rl.run.cells import Cell, End, run_cell
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.disk import disk_in_words
from frugal_rl.run.finite import not_finite
from frugal_rl.run.keeping import newest_sound, verify_checkpoints
from frugal_rl.run.ledger import Ledger
from frugal_rl.run.preflight import Command, Job
from frugal_rl.run.replay_aside import compared
from frugal_rl.run.session import evaluate_saved
from frugal_rl.testing.faults import FullDisk, disk, file_sizes, small_disk
from frugal_rl.testing.quiet_runs import quiet_run

SMALL = (
    "tracking=disabled", "algo.num_envs=4", "algo.n_steps=8", "algo.total_steps=160",
    "hardware.threads=1", "hardware.device=cpu", "checkpoint_every_steps=32", "agent.actor=[4]",
)  # fmt: skip
ON_POLICY = ("env=toy", *SMALL, "algo.batch_size=16", "algo.n_epochs=1", "agent.critic=[4]")
OFTEN = ("evaluation.episodes=1", "evaluation.every_steps=32", "evaluation.num_envs=1")
PROBLEMS = {
    "ppo": (*ON_POLICY, "evaluation.episodes=0"),
    "best": (*ON_POLICY, *OFTEN),
    "replay": ("env=toy", "algo=dqn", *SMALL, *OFTEN, "algo.batch_size=8", "algo.buffer_size=200",
               "algo.total_steps=96", "algo.learning_starts=80", "keep_checkpoints=2"),
    "films": ("env=fighting", "env.obs=ram", "env.max_steps=6", "env.round_seconds=1",
              *ON_POLICY[1:], *OFTEN, "algo.total_steps=64", "evaluation.film=true",
              "keep_checkpoints=2"),
}  # fmt: skip


def whole_run(name, folder, resume=None):
    return quiet_run(PROBLEMS[name], folder, resume)


def looks_sound(folder, words, why=errno.ENOSPC):
    """What must hold of any run folder, whatever happened to its run."""
    assert not words or os.strerror(why) in words
    if (folder / "checkpoints").is_dir() and list((folder / "checkpoints").glob("*.pt")):
        assert not [v.problem for v in verify_checkpoints(folder, compared) if v.problem]
        assert not list(not_finite(newest_sound(folder).content["learner"]))
    if (folder / "run.json").is_file():
        steps = [m["step"] for m in read_metrics(folder)]
        assert steps == sorted(steps)
        RunResult.read(folder)
    assert not list(folder.rglob("*.part*"))
    for film in folder.rglob("*.gif"):
        with Image.open(film) as pages:
            pages.seek(pages.n_frames - 1)


def said_by(act, full=None):
    """The words of an error, perhaps while the disk is full; none if it went on."""
    with warnings.catch_warnings(), disk(full or FullDisk()):
        warnings.simplefilter("ignore")
        try:
            act()
        except FrugalError as error:
            return str(error)
    return ""


def full_at(name, folder, moment, until, why=errno.ENOSPC):
    """How a run ends whose disk is full from one call to another."""
    return said_by(lambda: whole_run(name, folder), FullDisk(moment, until, why))


def calls_of(act):
    """How often what is done reaches the disk; done once before, so that nothing is made anew."""
    act()
    count = FullDisk()
    with disk(count):
        act()
    return count.calls


def calls_of_a_run(name, folder):
    count = FullDisk()
    with disk(count):
        whole_run(name, folder)
    return count.calls


def disk_full_at(name, moments, tmp_path, why=errno.ENOSPC):
    """How often a run went on, and how often it ended in words."""
    went_on = ended_in_words = 0
    for moment in moments:
        for length in (1, 10**9):
            folder = tmp_path / "run"
            words = full_at(name, folder, moment, moment + length, why)
            looks_sound(folder, words, why)
            shutil.rmtree(folder, ignore_errors=True)
            went_on, ended_in_words = went_on + (not words), ended_in_words + bool(words)
    return went_on, ended_in_words


@pytest.mark.parametrize(("name", "moments"), [("ppo", 5), ("replay", 2)])
def test_a_disk_that_is_full_at_any_write_loses_nothing_older(name, moments, tmp_path):
    calls = calls_of_a_run(name, tmp_path / "count")
    assert calls > 60
    assert min(disk_full_at(name, range(0, calls, calls // moments), tmp_path)) > 0


@pytest.mark.parametrize("why", [errno.EIO, errno.EDQUOT])
def test_a_disk_that_fails_or_a_quota_that_is_used_up_loses_nothing_older(why, tmp_path):
    calls = calls_of_a_run("ppo", tmp_path / "count")
    assert min(disk_full_at("ppo", [calls * 2 // 3], tmp_path, why)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("why", [errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", ["best", "replay"])
def test_a_disk_that_fails_at_each_write_in_turn_loses_nothing_older(
    name, part, why, tmp_path, capsys
):
    calls = calls_of_a_run(name, tmp_path / "count")
    moments = range(calls * part // 4, calls * (part + 1) // 4)
    ends = disk_full_at(name, moments, tmp_path, why)
    with capsys.disabled():
        print(f"\n{name}, {errno.errorcode[why]}: {moments} of {calls}: went on, in words: {ends}")
    assert min(ends) > 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_disk_that_is_full_at_each_write_in_turn_loses_nothing_older(name, part, small, capsys):
    whole_run(name, small.folder / "warm")
    calls = calls_of_a_run(name, small.folder / "count")
    for done in ("warm", "count"):
        shutil.rmtree(small.folder / done)  # else the next run would find the disk full by them
    moments = range(calls * part // 4, calls * (part + 1) // 4)  # one command takes minutes
    went_on, ended_in_words = disk_full_at(name, told_on_the_way(moments, capsys), small.folder)
    tried = f"{name}: writes {moments.start} to {moments.stop - 1} of {calls}"
    with capsys.disabled():
        print(f"\n{tried}, each full once and from then on: {went_on} runs went on,"
              f" {ended_in_words} ended in words")  # fmt: skip


def report_again(folder):
    """Write a report over an older one; what it did not say in words stays as it was."""
    asked = ReportOptions(runs=(str(folder / "run"),), out=str(folder / "out"))

    def act():
        with disk_in_words():
            write_report(asked)

    if not (folder / "run").is_dir():
        whole_run("ppo", folder / "run")
    act()
    whole = file_sizes(folder / "out")
    return act, lambda words: file_sizes(folder / "out") == whole


def enter_ledger(folder):
    """Enter a run and leave; others read on."""
    ledger = Ledger(folder / "ledger" / "ledger.json", 1 << 40, "a test")
    folder.mkdir(exist_ok=True)

    def act():
        with ledger.entered("A run", 1):
            pass

    def sound(words):
        with ledger.entered("Another", 1):
            held = json.loads(ledger.path.read_text())
        return "Another" in [entry["what"] for entry in held]

    return act, sound


def work_off_job(folder):
    """A job of a sweep: whatever the disk takes of it, its command ends well."""
    at = folder / "job"
    at.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text("print('the end')")
    words = {"sweep": {"ledger": "", "budget_gib": None, "skip_impossible": False}}
    job = Job(0, False, Command("train", words, {}, at, {}), ("env=toy",))

    def act():
        for path in at.iterdir():
            path.unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cells, "folder", lambda name: folder)
            assert run_cell(job).status == 0

    def sound(words):
        act()
        return not words and Cell.read(at).end is End.finished

    return act, sound


def save_evaluation(folder):
    """Try a saved policy out and write the result."""
    if not (folder / "run").is_dir():
        whole_run("ppo", folder / "run")
    words = ["env=toy", "evaluation.episodes=1", "evaluation.num_envs=1", "checkpoint=x"]
    asked = replace(compose_run(words, "evaluate"), run_dir=str(folder / "tried"))

    def act():
        shutil.rmtree(folder / "tried", ignore_errors=True)
        evaluate_saved(str(folder / "run"), asked)

    def sound(words):
        written = folder / "tried" / "evaluation.json"
        return bool(words) or {"policy", "random"} < json.loads(written.read_text()).keys()

    return act, sound


DEEDS = {"report": report_again, "ledger": enter_ledger, "job": work_off_job,
         "evaluation": save_evaluation}  # fmt: skip


def deed_on_a_full_disk(deed, moments, folder):
    """Calls of a deed, how often it went on, and how often it ended in words."""
    act, sound = DEEDS[deed](folder)
    calls = calls_of(act)
    went_on = ended_in_words = 0
    for moment in moments or range(calls):
        for length in (1, 10**9):
            words = said_by(act, FullDisk(moment, moment + length))
            assert not words or "No space left" in words
            assert sound(words), (moment, length, words)
            went_on, ended_in_words = went_on + (not words), ended_in_words + bool(words)
    return calls, went_on, ended_in_words


@pytest.mark.parametrize("deed", ["ledger", "evaluation"])
def test_what_else_is_written_ends_in_words_too(deed, tmp_path):
    assert deed_on_a_full_disk(deed, [0, 3], tmp_path)[0] > 3


@pytest.mark.slow
@pytest.mark.parametrize("deed", DEEDS)
def test_each_write_of_what_is_no_run_ends_in_words_too(deed, tmp_path, capsys):
    calls, went_on, ended_in_words = deed_on_a_full_disk(deed, None, tmp_path)
    with capsys.disabled():
        print(f"\n{deed}: {calls} writes, each full once and from then on: {went_on} went on,"
              f" {ended_in_words} ended in words")  # fmt: skip


def told_on_the_way(moments, capsys):
    """The moments, and a line every few seconds."""
    said = time.monotonic()
    for moment in moments:
        if time.monotonic() - said > 5:
            said = time.monotonic()
            with capsys.disabled():
                print(f"\n  write {moment} of {moments.start} to {moments.stop - 1}", end="")
        yield moment


@pytest.fixture
def small(tmp_path):
    """A disk of its own."""
    try:
        with small_disk(tmp_path / "small", 16384) as mounted:
            yield mounted
    except PermissionError as error:
        pytest.skip(str(error))


def filled(small, name, step_kib):
    """Runs on a disk with ever more room, until all goes well.

    Returns KiB that were enough, how many went on with warnings, and how many ended in words.
    """
    folder = small.folder / "run"
    whole_run(name, folder)
    whole, left, went_on, ended_in_words = file_sizes(folder).keys(), set(), 0, 0
    kib = 0
    while left != whole:
        shutil.rmtree(folder)
        small.leave(kib)
        words = said_by(lambda: whole_run(name, folder))
        small.empty()
        looks_sound(folder, words)
        left = file_sizes(folder).keys()
        went_on, ended_in_words = went_on + (not words), ended_in_words + bool(words)
        folder.mkdir(exist_ok=True)
        kib += step_kib
    return kib, went_on, ended_in_words


def test_a_disk_that_fills_up_for_real_loses_nothing_older(small):
    assert min(filled(small, "ppo", 40)[1:]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_disk_that_fills_up_page_by_page_loses_nothing_older(name, small, capsys):
    kib, went_on, ended_in_words = filled(small, name, 16 if name == "films" else 4)
    with capsys.disabled():
        print(f"\n{name}: 0 to {kib} KiB free: {went_on} went on, {ended_in_words} ended in words")


def test_a_report_on_a_full_disk_ends_in_words_and_leaves_the_older_one(small, tmp_path):
    whole_run("ppo", tmp_path / "a")
    asked = ReportOptions(runs=(str(tmp_path / "a"),), out=str(small.folder / "out"))
    whole = file_sizes(write_report(asked)[0].parent)
    for kib in (0, 4, 12, 40):
        small.leave(kib)
        with pytest.raises(DiskError, match="No space left"), disk_in_words():
            write_report(asked)
        assert file_sizes(small.folder / "out") == whole


def test_a_full_disk_beside_a_job_of_a_sweep_neither_ends_it_nor_the_others(
    small, tmp_path, monkeypatch, capsys
):
    (tmp_path / "train.py").write_text("print('x' * 9000, flush=True)\nprint('the end')")
    monkeypatch.setattr(cells, "folder", lambda name: tmp_path)
    at = small.folder / "job"
    at.mkdir()
    words = {"sweep": {"ledger": "", "budget_gib": None, "skip_impossible": False}}
    job = Job(0, False, Command("train", words, {}, at, {}), ("env=toy",))
    small.leave(0)
    assert run_cell(job).status == 0
    said = capsys.readouterr().out
    assert "the end" in said
    assert f"{at / 'output.log'} ends here (No space left on device)" in said
    assert f"{at / 'cell.json'} is not written (No space left on device)" in said
    small.empty()
    assert run_cell(job).status == 0
    assert Cell.read(at).end is End.finished


def test_a_ledger_on_a_full_disk_refuses_to_start_and_never_ends_a_run(small):
    ledger = Ledger(small.folder / "ledger.json", 1 << 40, "a test")
    small.leave(0)
    with pytest.raises(DiskError, match="cannot be written to"), ledger.entered("A run", 1):
        pass
    small.empty()
    with ledger.entered("A run", 1):
        small.leave(0)
        assert json.loads((small.folder / "ledger.json").read_text())[0]["what"] == "A run"
    assert not (small.folder / "ledger.json").exists()  # leaving takes no room
    small.empty()
    with ledger.entered("Another", 1):
        assert len(json.loads((small.folder / "ledger.json").read_text())) == 1


def test_a_run_that_was_refused_at_the_last_moment_holds_nothing(tmp_path):
    ledger = Ledger(tmp_path / "ledger.json", 1 << 40, "a test")
    act = enter_ledger(tmp_path)[0]
    moments = calls_of(act) // 2  # of entering, the others of leaving
    with disk(FullDisk(moments - 1)), pytest.raises(DiskError), ledger.entered("A run", 1):
        pass
    with ledger.entered("Another", 1):
        assert len(json.loads(ledger.path.read_text())) == 1


def test_a_best_that_was_not_written_is_not_remembered(tmp_path, monkeypatch):
    left = iter([OSError(errno.ENOSPC, "No space left on device")])
    real = saves.save_checkpoint

    def refusing_once(path, content):
        for error in left:
            raise error
        return real(path, content)

    monkeypatch.setattr(saves, "save_checkpoint", refusing_once)
    whole_run("best", tmp_path / "a")
    best = load_checkpoint(tmp_path / "a" / "checkpoints" / "best.pt")["best"]
    assert best == load_checkpoint(tmp_path / "a")["best"]


def test_after_the_first_checkpoint_a_full_disk_ends_with_the_way_to_continue(tmp_path):
    calls = calls_of_a_run("ppo", tmp_path / "count")
    words = full_at("ppo", tmp_path / "a", calls // 2, 10**9)
    found = newest_sound(tmp_path / "a")
    assert f"resume={found.file}" in words
    whole_run("ppo", tmp_path / "b", resume=str(tmp_path / "a"))
    assert same_weights(tmp_path / "b", tmp_path / "count")


def same_weights(a, b):
    ours, theirs = (load_checkpoint(f)["learner"]["policy"] for f in (a, b))
    return all(torch.equal(v, theirs[k]) for k, v in ours.items())
