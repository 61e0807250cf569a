"""Folders that strangers prepared: nothing is written through links, pipes and devices in them."""

import errno
import os
import shlex
from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.errors import DiskError, MemoryBudgetError
from frugal_rl.memory.plan import draw_up
from frugal_rl.report.files import write_json
from frugal_rl.report.log import open_log
from frugal_rl.run import compose, preflight
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run, run_jobs
from frugal_rl.run.keeping import newest_sound, save_newest
from frugal_rl.run.preflight import Command
from frugal_rl.run.saves import Saves


@pytest.fixture
def kept(tmp_path):
    """A file of the user's, elsewhere."""
    path = tmp_path / "kept"
    path.write_text("a line that is whole\nand one that is not")
    yield path
    assert path.read_text() == "a line that is whole\nand one that is not"


@pytest.mark.parametrize("name", ["metrics.jsonl", "run.lock"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_run_is_not_begun_where_its_files_lead_elsewhere(name, kind, kept, tmp_path):
    folder = tmp_path / "a run"
    folder.mkdir()
    (folder / name).symlink_to(kept) if kind == "link" else os.mkfifo(folder / name)
    run = replace(compose_run(["env=toy", "tracking=disabled"], check=False), run_dir=str(folder))
    with pytest.raises(DiskError, match=f"{name} is a link, a pipe"), open_log(run, draw_up(run)):
        pass


@pytest.mark.parametrize("name", [".hydra", ".hydra/config.yaml", "train.log"])
def test_hydra_is_not_let_through_a_link(name, kept, tmp_path):
    link = tmp_path / "a" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(kept.parent if name == ".hydra" else kept)
    with pytest.raises(DiskError, match="is a link, and nothing is written through links"):
        preflight.places(Command("train", {}, {}, tmp_path / "a", {}))


def test_links_that_a_run_replaces_lead_nowhere(kept, tmp_path):
    """Checkpoints and whole files are written beside, then renamed: a link gives way."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in ("last.pt", f".last.pt.{os.getpid()}.part", "report.json"):
        (folder / name).symlink_to(kept)
    save_newest(folder, {"num_steps": 3}, 3)
    write_json(folder / "report.json", {"a": 1})
    assert newest_sound(folder).content["num_steps"] == 3
    assert not (folder / "last.pt").is_symlink()


def test_a_checkpoint_of_holes_takes_no_memory(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path / "a.pt", {"weights": np.zeros(3 << 20, np.uint8)})
    assert load_checkpoint(path)["weights"].nbytes == 3 << 20
    memory = type("Memory", (), {"available": 2 << 20})
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    with pytest.raises(MemoryBudgetError, match=r"does not fit here: .* 3 MiB; 2 are free"):
        load_checkpoint(path)


def test_the_way_to_continue_can_be_pasted(tmp_path):
    run = replace(compose_run(["env=toy"], check=False), run_dir=str(tmp_path))
    newest = tmp_path / "a run, mine" / "last.pt"
    newest.parent.mkdir()
    newest.touch()  # none is named that is not there
    saves = Saves(run, None, newest=newest)
    assert shlex.split(saves.hint())[-1] == f"resume='{tmp_path}/a run, mine/last.pt'"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_what_a_disk_does_not_take_of_hydras_files_is_said_in_words(number, monkeypatch):
    def full(**words):
        def decorate(task):
            return lambda: compose.hydra._internal.utils.run_and_report(refuse)

        def refuse():
            raise OSError(number, os.strerror(number), "multirun.yaml")

        return decorate

    monkeypatch.setattr(compose.hydra, "main", full)
    with pytest.raises(DiskError, match=r"multirun\.yaml is not written"):
        run_jobs("train", lambda cfg, job: None)
