"""Jobs of a sweep have processes of their own, and what became of them is kept."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from frugal_rl.errors import CrowdedError, FolderInUseError
from frugal_rl.report.files import write_json
from frugal_rl.run import cells, signals
from frugal_rl.run.cells import CELL, Cell, End, cells_in, run_cell
from frugal_rl.run.command import Script
from frugal_rl.run.ledger import Ledger, Reservation
from frugal_rl.run.lock import SWEEP_LOCK, locked
from frugal_rl.run.preflight import Command, Job
from frugal_rl.run.sweep_table import sum_up

ROOT = Path(__file__).resolve().parents[3]
SWEEP = {"ledger": "", "budget_gib": None, "skip_impossible": False}
TRAIN = """
import os, signal, sys, time
from pathlib import Path
follows = sys.argv.pop()
words = dict(w.split("=", 1) for w in sys.argv[1:])
print("trains", " ".join(sys.argv[1:]), flush=True)
if words["seed"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
if words["seed"] == "2":
    sys.exit("MemoryBudgetError: It needs 100 TB.")
if words["seed"] == "3":
    sys.exit("ValueError: a mistake")
if words["seed"] == "5" and not Path("tried").exists():
    Path("tried").touch()
    sys.exit("CrowdedError: Start fewer at once.")
if words["seed"] == "6":
    sys.stdout.buffer.write(b"\\xff\\xfe from a library\\n")
if words["seed"] == "7":
    Path(words["hydra.run.dir"], "job.sh").touch()
if words["seed"] == "9":
    print(follows, os.getppid())
if words["seed"] == "8":
    print(Path(words["hydra.run.dir"], "cell.json").read_text())
if words.get("gamma") == "0.5" and "resume" in words:
    sys.exit("CheckpointError: It was trained with gamma=0.99.")
if words["seed"] == "4":
    os.kill(os.getppid(), signal.SIGINT)  # and listens to nothing yet
    time.sleep(60)
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Makes a job whose training is a few lines."""
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.setattr(cells, "folder", lambda name: tmp_path)

    def make(seed, **sweep):
        at = tmp_path / "sweep" / f"{seed}_toy"
        at.mkdir(parents=True, exist_ok=True)
        command = Command("train", {"sweep": SWEEP | sweep}, {}, at, {})
        return Job(seed, False, command, ("env=toy", f"seed={seed}"))

    return make


@pytest.mark.parametrize(
    ("seed", "end", "reason"),
    [
        (0, End.finished, ""),
        (1, End.failed, "ended by SIGKILL"),
        (2, End.refused, "MemoryBudgetError: It needs 100 TB."),
        (3, End.failed, "ValueError: a mistake"),
        (6, End.finished, ""),
    ],
)
def test_the_end_of_each_job_is_told_and_kept(job, seed, end, reason):
    made = job(seed)

    outcome = run_cell(made)

    cell = Cell.read(made.command.folder)
    assert (cell.words, cell.end, cell.reason) == (made.words, end, reason)
    assert outcome.status == int(end is not End.finished)


def test_a_job_is_told_to_stop_with_its_sweep(job, capsys):
    run_cell(job(9))

    followed, parent = capsys.readouterr().out.splitlines()[-1].split()
    assert (followed, parent) == (f"--stops-with={os.getpid()}", str(os.getpid()))


def test_a_job_of_a_worker_is_told_to_stop_with_the_sweep_too(monkeypatch):
    monkeypatch.setattr(signals, "parent_process", lambda: SimpleNamespace(pid=7))

    assert signals.stops_with_this() == [f"--stops-with={os.getpid()}", "--stops-with=7"]


def test_a_second_sweep_in_one_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train", "-m", f"hydra.sweep.dir={tmp_path / 'sweep'}"])
    sweep = Script("train", lambda cfg: None, in_sweep=run_cell)
    sweep.sweep = True

    with (
        locked(tmp_path / "sweep", SWEEP_LOCK),
        pytest.raises(FolderInUseError, match=r"hydra\.sweep\.dir="),
        sweep.concluded(),
    ):
        pytest.fail("the other one writes there")
    with sweep.concluded():
        assert (tmp_path / "sweep" / SWEEP_LOCK).is_file()
    assert not (tmp_path / "sweep").exists()  # nothing was begun


def test_a_job_that_was_asked_to_stop_before_it_listened_is_stopped(job):
    outcome = run_cell(job(4))

    assert outcome.values["interrupted"]
    assert Cell.read(job(4).command.folder).end is End.stopped


def test_a_job_that_finds_no_place_to_start_takes_no_other_with_it(job, tmp_path):
    ledger = str(tmp_path / "ledger.json")

    outcome = run_cell(job(0, ledger=ledger, budget_gib=0.01))

    assert outcome.status == 1
    cell = Cell.read(job(0).command.folder)
    assert (cell.end, "sweep.budget_gib=0.01" in cell.reason) == (End.refused, True)


def test_a_job_that_tries_again_keeps_no_room_meanwhile(job, tmp_path, monkeypatch):
    file, kept = tmp_path / "ledger.json", []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        cells.time, "sleep", lambda s: kept.append(json.loads(file.read_text())[0]["coming"])
    )

    outcome = run_cell(job(5, ledger=str(file), budget_gib=8))

    assert (outcome.status, kept) == (0, [0])


def test_a_job_without_an_end_is_in_the_table(job, tmp_path, capsys):
    run_cell(job(0))
    lost = tmp_path / "sweep" / "9_toy"
    (lost / ".hydra").mkdir(parents=True)
    (lost / ".hydra" / "overrides.yaml").write_text("- env=toy\n- seed=9\n")

    outcome = sum_up(tmp_path / "sweep")

    assert "1 finished, 1 failed" in capsys.readouterr().out
    assert "seed=9" in (tmp_path / "sweep" / "sweep.md").read_text()
    assert outcome.status == 1


def test_what_the_table_says_to_type_can_be_pasted(job, tmp_path, capsys):
    run_cell(job(1))
    at = (tmp_path / "sweep").rename(tmp_path / "my [odd], sweep")

    sum_up(at)

    lines = capsys.readouterr().out.splitlines()
    on, report = (next(x for x in lines if x.startswith(w)) for w in ("The same", "report:"))
    assert f"hydra.sweep.dir='{at}'" in shlex.split(on)
    assert shlex.split(report)[-1] == f"runs=['{at}']"


def test_impossible_combinations_may_be_passed_over(job):
    assert run_cell(job(2, skip_impossible=True)).status == 0
    assert run_cell(job(3, skip_impossible=True)).status == 1


def test_what_is_finished_is_not_repeated(job, capsys):
    run_cell(job(0))
    capsys.readouterr()

    assert run_cell(job(0)).status == 0

    assert "Finished already" in capsys.readouterr().out


def test_a_job_that_was_lost_goes_on_from_its_checkpoint(job, capsys):
    made = job(1)
    run_cell(made)
    (made.command.folder / "checkpoints").mkdir()
    (made.command.folder / "checkpoints" / "last.pt").touch()

    run_cell(made)

    assert f"resume={made.command.folder}" in capsys.readouterr().out


def test_a_folder_of_other_words_is_told_as_such(job):
    made = job(0)
    run_cell(made)
    (made.command.folder / "checkpoints").mkdir()
    (made.command.folder / "checkpoints" / "last.pt").touch()

    assert run_cell(replace(made, words=(*made.words, "gamma=0.5"))).status == 1
    assert run_cell(replace(made, words=(*made.words, "gamma=0.9"))).status == 0  # may go on

    run_cell(replace(made, words=(*made.words, "gamma=0.5")))
    assert Cell.read(made.command.folder).reason == (
        f"{made.command.folder} holds a job of other words; choose another hydra.sweep.dir= for "
        "these. CheckpointError: It was trained with gamma=0.99."
    )


def test_what_resume_lets_differ_makes_another_job(job):
    """It went on with the checkpoints of the other words, and stood under these as finished."""
    made, other, roomier = (
        replace(job(0), words=("env=toy", "seed=0", *own))
        for own in (
            ["memory.micro_batch=64"],
            ["memory.micro_batch=0"],
            ["memory.micro_batch=64", "memory.budget_gib=4"],
        )
    )
    run_cell(made)
    (made.command.folder / "checkpoints").mkdir()
    (made.command.folder / "checkpoints" / "last.pt").touch()

    assert run_cell(other).status == 1

    cell = Cell.read(made.command.folder)
    assert (cell.words, cell.end) == (made.words, End.failed)
    assert cell.reason == (
        f"{made.command.folder} holds a job of other words; choose another hydra.sweep.dir= for "
        "these. It was trained with seed=0 memory.micro_batch=64."
    )
    assert run_cell(made).status == 0
    assert run_cell(roomier).status == 0


def test_a_job_that_trains_is_lost_until_its_end_is_known(job, capsys):
    run_cell(job(8))

    begun = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert (begun["words"], begun["end"], begun["reason"]) == (
        ["env=toy", "seed=8"],
        "failed",
        cells.LOST,
    )


def test_a_job_that_slurm_has_is_not_finished_before_its_run_says_so(job, tmp_path, capsys):
    """It stood as finished, with no steps."""
    made = job(7)

    assert run_cell(made).status == 0
    assert Cell.read(made.command.folder).end is End.submitted
    capsys.readouterr()
    run_cell(made)
    assert "With Slurm already" in capsys.readouterr().out
    assert sum_up(tmp_path / "sweep").status == 0
    assert "1 submitted" in (said := capsys.readouterr().out)
    assert "tells what became of those that Slurm has" in said

    for interrupted, end in ((True, End.submitted), (False, End.finished)):
        write_json(made.command.folder / "report.json", {"interrupted": interrupted})
        assert [cell.end for _, cell in cells_in(tmp_path / "sweep")] == [end]
    run_cell(made)
    assert "Finished already" in capsys.readouterr().out


def test_a_damaged_record_is_none(tmp_path):
    (tmp_path / CELL).write_text("{")

    assert Cell.read(tmp_path) is None


@pytest.mark.parametrize("raw", [b"", b"a: [", b"\xff", b"3"])
def test_a_job_whose_words_a_full_disk_did_not_take_stands_in_the_table(raw, tmp_path):
    (tmp_path / "1_toy" / ".hydra").mkdir(parents=True)
    (tmp_path / "1_toy" / ".hydra" / "overrides.yaml").write_bytes(raw)

    ((at, cell),) = cells_in(tmp_path)

    assert (at.name, cell.words, cell.end) == ("1_toy", (), End.failed)


def test_the_table_names_what_differs_and_the_way_on(job, tmp_path, capsys):
    for seed in range(4):
        run_cell(job(seed))
    write_json(tmp_path / "sweep" / "0_toy" / "report.json", {"num_steps": 1280})
    capsys.readouterr()

    outcome = sum_up(tmp_path / "sweep")

    said = capsys.readouterr().out
    assert "1 finished, 2 failed, 1 refused" in said
    assert "env=toy" not in said
    assert f"hydra.sweep.dir={tmp_path / 'sweep'} goes on" in said
    assert "1,280" in (tmp_path / "sweep" / "sweep.md").read_text()
    assert outcome.status == 1
    assert [at.name for at, _ in cells_in(tmp_path / "sweep")] == [f"{n}_toy" for n in range(4)]


def test_a_sweep_of_refused_jobs_leaves_no_files(job, tmp_path, capsys):
    run_cell(job(2))

    outcome = sum_up(tmp_path / "sweep")

    assert outcome.status == 1
    assert "1 refused, nothing was run: MemoryBudgetError" in capsys.readouterr().out
    assert not list((tmp_path / "sweep").iterdir())


def test_a_refused_job_that_wrote_more_keeps_its_folder(job, tmp_path):
    made = job(2)
    run_cell(made)
    (made.command.folder / "own.txt").touch()

    sum_up(tmp_path / "sweep")

    assert (made.command.folder / CELL).is_file()


@pytest.mark.slow
def test_a_sweep_tells_each_job_and_goes_on_with_the_rest(tmp_path):
    words = ["env=toy", "tracking=disabled", "algo.total_steps=256", "algo.num_envs=4"]
    words += ["algo.n_steps=16", "algo.batch_size=32", "evaluation.episodes=2", "seed=0,1"]
    words += ["memory=lossless,small", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    words += [f"hydra.sweep.dir={tmp_path / 'sweep'}", f"sweep.ledger={tmp_path / 'ledger.json'}"]
    command = [sys.executable, "scripts/train.py", "-m", *words, "sweep.skip_impossible=true"]

    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    (tmp_path / "sweep" / "0_toy_lossless_seed0" / CELL).unlink()
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert "2 finished, 2 skipped" in first.stdout
    assert again.stdout.count("Finished already") == 1
    assert "Resumed" in again.stdout


def test_a_job_that_found_no_room_beside_others_that_wait_tries_again(job, monkeypatch):
    crowded = Cell((), End.refused, "CrowdedError: The run needs more beside 3 runs that wait.")
    ends = [crowded, crowded, Cell((), End.finished)]
    monkeypatch.setattr(cells, "trained", lambda job, line: ends.pop(0))
    monkeypatch.setattr(cells, "AGAIN_SECONDS", 0.0)
    made = job(0)

    assert run_cell(made).status == 0
    assert not ends
    assert Cell.read(made.command.folder).end is End.finished


def test_a_sweep_that_finds_no_room_to_start_a_job_lets_the_others_go_first(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "AGAIN_SECONDS", 0.0)
    tries = []

    def resize(line, wants):
        tries.append(line.entry.wants)
        line.write(replace(line.entry, wants=wants))
        if len(tries) < 3:
            raise CrowdedError("No room.")

    monkeypatch.setattr(Reservation, "resize", resize)
    with Ledger(tmp_path / "ledger.json", 100, "a test").entered("sweep", 1, beside=True) as line:
        cells.find_room(line, 40)

    assert tries == [0, 0, 0]  # it wished for nothing while it waited
