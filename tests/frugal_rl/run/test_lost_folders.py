"""A run folder that is deleted, moved or taken while its run goes on: nothing goes in silence."""

import io
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from frugal_rl.errors import DiskError, FolderInUseError
from frugal_rl.memory.meter import MemoryMeter
from frugal_rl.report.files import read_json, read_metrics
from frugal_rl.report.log import open_log
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.disk import AppendedLines
from frugal_rl.run.lock import LOCK, locked, writer_of
from frugal_rl.run.trainer import train
from frugal_rl.testing.faults import FullDisk, disk
from frugal_rl.testing.quiet_runs import planned

WORDS = ("env=toy", "tracking=disabled", "algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16",
         "algo.n_epochs=1", "algo.total_steps=192", "evaluation.episodes=1",
         "evaluation.every_steps=64", "evaluation.num_envs=1", "hardware.threads=1",
         "hardware.device=cpu", "agent.actor=[4]", "agent.critic=[4]")  # fmt: skip
HOLD = """
import sys
from pathlib import Path
from frugal_rl.run.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def struck(folder, strike, at=4):
    """A run to whose folder something is done in an iteration; its summary and what it said."""
    run, plan = planned(WORDS)
    run, calls = replace(run, run_dir=str(folder)), iter(range(1, 1000))
    console = Console(file=io.StringIO(), width=400)

    def watch():
        if next(calls) == at:
            strike(folder)
        return ""

    with MemoryMeter() as meter, open_log(run, plan, meter) as log:
        summary = train(run, log, watch=watch, hold=log.hold, console=console)
    return summary, console.file.getvalue()


def moved(folder):
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize("strike", [shutil.rmtree, moved])
def test_a_folder_that_is_gone_is_made_again_with_all_its_lines_and_the_run_says_so(
    strike, tmp_path
):
    summary, said = struck(tmp_path / "run", strike)
    assert summary["num_steps"] == 192
    assert said.count("was deleted or moved while this run went on") == 1
    learned = [m["step"] for m in read_metrics(tmp_path / "run") if "train/loss" in m]
    assert learned == [32, 64, 96, 128, 160, 192]
    assert read_json(tmp_path / "run" / "run.json")["overrides"] == list(WORDS)
    kept = {p.name for p in (tmp_path / "run" / "checkpoints").iterdir()}
    assert kept >= {"last.pt", "step_000000000160.pt"}
    assert load_checkpoint(tmp_path / "run")["num_steps"] == 192


def test_a_folder_that_another_run_took_is_left_to_it_in_words(tmp_path):
    others = []

    def take(folder):
        shutil.rmtree(folder)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        others.append(subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], **pipes))
        assert others[0].stdout.readline() == "held\n"

    try:
        with pytest.raises(FolderInUseError, match="is written by process"):
            struck(tmp_path / "run", take)
        assert [p.name for p in (tmp_path / "run").iterdir()] == [LOCK]
        assert writer_of(tmp_path / "run").pid == others[0].pid
    finally:
        others[0].communicate("")


def test_the_lock_of_a_folder_that_was_made_again_keeps_others_out(tmp_path):
    with locked(tmp_path / "run") as lock:
        assert not lock.lost()
        shutil.rmtree(tmp_path / "run")
        assert lock.lost()
        lock.take_again()
        assert not lock.lost()
        second = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
        refused = subprocess.run(second, input="", capture_output=True, text=True)
        assert f"is written by process {os.getpid()}" in refused.stderr
    assert (tmp_path / "run" / LOCK).read_text() == ""


def test_a_folder_that_cannot_be_made_again_ends_the_run_in_words(tmp_path):
    def take_away(folder):
        shutil.rmtree(folder)
        folder.write_text("a file in its place")

    with (
        pytest.warns(UserWarning, match="is not written"),
        pytest.raises(DiskError, match="cannot be written to"),
    ):
        struck(tmp_path / "run", take_away)
    assert (tmp_path / "run").read_text() == "a file in its place"


def test_best_is_written_again_once_it_was_deleted(tmp_path):
    def forget_best(folder):
        (folder / "checkpoints" / "best.pt").unlink()

    struck(tmp_path / "run", forget_best, at=3)
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "best.pt")["num_steps"] > 64


def test_an_error_does_not_name_a_checkpoint_that_was_removed(tmp_path):
    def fail(folder):
        shutil.rmtree(folder / "checkpoints")
        raise ValueError("an environment's fault")

    with pytest.raises(ValueError, match="fault") as raised:
        struck(tmp_path / "run", fail, at=3)
    assert "is not there any more" in raised.value.__notes__[0]
    assert "resume=" not in raised.value.__notes__[0]


MANY = [str(n) * 20 for n in range(2000)]


@pytest.fixture
def lines(tmp_path):
    """A file of more than one piece that is still written."""
    (tmp_path / "folder").mkdir()
    file = AppendedLines(tmp_path / "folder" / "lines")
    for line in MANY:
        file.append(line)
    yield file
    file.close()


def test_a_deleted_file_is_made_again_with_all_that_it_held(lines):
    shutil.rmtree(lines.path.parent)
    lines.append("c")
    assert lines.path.read_text().splitlines() == [*MANY, "c"]
    assert lines.remade == 1


@pytest.mark.parametrize("moment", range(4))
def test_a_full_disk_while_a_file_is_made_again_loses_no_line(moment, lines):
    shutil.rmtree(lines.path.parent)
    with disk(FullDisk(moment)):
        with pytest.raises(OSError, match="No space left"):
            lines.append("c")
        lines.append("d")
    assert lines.path.read_text().splitlines() == [*MANY, "d"]


def test_a_file_that_somebody_put_in_its_place_is_continued(lines):
    edited = Path(f"{lines.path}.new")
    edited.write_text("edited\ntorn")
    edited.replace(lines.path)
    lines.append("c")
    assert lines.path.read_text() == "edited\nc\n"
