"""Refusals before work, and a sweep that is asked to stop."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from frugal_rl.errors import CheckpointError, ConfigError, DiskError, FolderInUseError
from frugal_rl.run import preflight
from frugal_rl.run.checkpoints import save_checkpoint
from frugal_rl.run.command import STOPPED, forget
from frugal_rl.run.compose import compose_run
from frugal_rl.run.identity import check_same_run, identity
from frugal_rl.run.keeping import continuing
from frugal_rl.run.preflight import Command, check_resumed, has_display

ROOT = Path(__file__).resolve().parents[3]


def command(name="train", folder="runs/x", choices=(), environ=(), **values):
    return Command(name, values, dict(choices), Path(folder), dict(environ))


def test_a_display_that_leads_nowhere_is_none(tmp_path):
    (tmp_path / "X7").touch()

    assert has_display({"DISPLAY": ":7"}, tmp_path)
    assert has_display({"DISPLAY": ":7.0"}, tmp_path)
    assert not has_display({"DISPLAY": ":8"}, tmp_path)
    assert not has_display({}, tmp_path)
    assert has_display({"SDL_VIDEODRIVER": "dummy"}, tmp_path)


def test_a_window_needs_a_display_a_film_and_a_report_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"video=film\.mp4"):
        preflight.preflight(command("play"))

    preflight.preflight(command("play", video="film.mp4"))
    preflight.preflight(command("play", report="page"))
    preflight.preflight(command("play", environ={"WAYLAND_DISPLAY": "wayland-0"}))


@pytest.mark.parametrize("probe", [True, "true", "random", "replay"])
def test_a_probe_needs_a_window_for_a_person_only(probe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preflight.preflight(command("play", probe=probe))
    with pytest.raises(ConfigError, match=r"with probe=replay replay=FILE\.replay marks="):
        preflight.preflight(command("play", probe="person"))
    with pytest.raises(ConfigError, match=r"video=film\.mp4"):
        preflight.preflight(command("play", probe=False))


def test_a_missing_extra_is_named_with_the_words_that_install_it(monkeypatch):
    monkeypatch.setattr(preflight, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"\[contrib\]"):
        preflight.preflight(command(choices={"algo": "tqc"}))
    with pytest.raises(ConfigError, match=r"\[ray\]"):
        preflight.preflight(command(launch={"scheduler": "ray"}))
    with pytest.raises(ConfigError, match=r"\[slurm\]"):
        preflight.check_launcher("submitit_local")


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1 << 20})
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda place: usage)

    with pytest.raises(DiskError, match=r"1\.0 MiB of free disk"):
        preflight.preflight(command(folder=str(tmp_path / "run")))


def test_no_run_begins_where_another_left_checkpoints(tmp_path):
    save_checkpoint(tmp_path / "checkpoints" / "last.pt", {"num_steps": 1})
    other = tmp_path / "other"
    save_checkpoint(other / "checkpoints" / "last.pt", {"num_steps": 1})
    with pytest.raises(FolderInUseError, match=rf"resume={tmp_path}; or choose another"):
        preflight.preflight(command(folder=tmp_path))
    with pytest.raises(FolderInUseError, match="holds the checkpoints of a run"):
        continuing(replace(compose_run(["env=toy"]), run_dir=str(tmp_path)))
    with pytest.raises(FolderInUseError, match=f"resume={other}; or"):
        preflight.preflight(command(folder=other, resume=str(tmp_path)))
    for allowed in ({"resume": str(tmp_path)}, {"launch": {"restarts": 1}}):
        preflight.preflight(command(folder=tmp_path, **allowed))
    preflight.preflight(command(folder=tmp_path / "new", resume=str(tmp_path)))
    preflight.preflight(command("evaluate", folder=tmp_path))


def test_another_run_is_refused_by_the_manifest_alone(tmp_path):
    run = compose_run(["env=toy"])
    save_checkpoint(tmp_path / "last.pt", {"identity": identity(run), "num_steps": 1})
    same = replace(run, resume=str(tmp_path))
    other = replace(compose_run(["env=toy", "env.levels=7"]), resume=str(tmp_path))

    check_resumed(same)
    with pytest.raises(CheckpointError, match=r"env\.levels=4, this run has 7"):
        check_resumed(other)


def test_another_environment_is_named_first(tmp_path):
    saved = identity(compose_run(["env=nclone"], check=False))

    with pytest.raises(CheckpointError, match=r"trained with env\.name=nclone, this run has toy"):
        check_same_run(compose_run(["env=toy"], check=False), saved, "x")


def test_a_folder_of_damaged_checkpoints_alone_is_refused_at_once(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in ("last.pt", "step_000000000008.pt"):
        (folder / name).write_bytes(b"nothing")
    resumed = command(resume=str(tmp_path), folder=str(tmp_path / "next"))

    with pytest.raises(CheckpointError, match="damaged"):
        preflight.checkpoints(resumed)
    save_checkpoint(folder / "step_000000000004.pt", {"a": 1})
    preflight.checkpoints(resumed)


def test_only_a_folder_without_a_run_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    empty, used = tmp_path / "runs/toy/a", tmp_path / "runs/nclone/b"
    for folder in (empty, used):
        (folder / ".hydra").mkdir(parents=True)
        (folder / ".hydra" / "config.yaml").touch()
        (folder / "run.log").touch()
    (used / "metrics.jsonl").touch()

    forget(empty)
    forget(used)
    forget(tmp_path)

    assert not (tmp_path / "runs/toy").exists()
    assert (used / ".hydra" / "config.yaml").exists()


SWEEP = """
import os, signal, sys
from frugal_rl.run.command import main
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.signals import asked_to_stop

@main("train")
def job(cfg):
    with asked_to_stop() as stop:
        if cfg.seed == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        print("ran", cfg.seed)
        return Outcome({"interrupted": stop.is_set()})

if __name__ == "__main__":
    job()
"""


def test_a_sweep_that_is_asked_to_stop_starts_no_other_job(tmp_path):
    (tmp_path / "job.py").write_text(SWEEP)
    done = subprocess.run(
        [sys.executable, "job.py", "-m", "env=toy", "seed=0,1,2"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == STOPPED
    assert [line for line in done.stdout.splitlines() if line.startswith("ran")] == [
        "ran 0",
        "ran 1",
    ]


def test_a_name_that_is_too_long_is_refused_in_a_line(tmp_path):
    with pytest.raises(DiskError, match=r"cannot be written: File name too long\. Choose another"):
        preflight.writable(tmp_path / ("n" * 300), "hydra.run.dir")
