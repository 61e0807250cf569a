"""Runs and sweeps on a Ray cluster of this machine (extra `ray`)."""

import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.run.cells import End, cells_in
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.launch import start_ranks
from frugal_rl.run.preflight import Command, extras

ROOT = Path(__file__).resolve().parents[3]
HAS_RAY = find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="the extra `ray` is not installed")
SIZES = ["env=toy", "tracking=disabled", "algo.num_envs=8", "algo.n_steps=16"]
SIZES += ["algo.batch_size=64", "algo.total_steps=512", "evaluation.episodes=2", "launch=ray"]


@pytest.mark.skipif(HAS_RAY, reason="the extra `ray` is installed")
def test_without_the_extra_one_line_names_it(tmp_path):
    with pytest.raises(ConfigError, match=r"launch=ray.*\[ray\]"):
        extras(Command("train", {}, {"launch": "ray"}, tmp_path, {}))


@pytest.fixture(scope="module")
def cluster():
    """A head that this test started, on a port of its own."""
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    asked = [f"--port={port}", "--num-cpus=2", "--include-dashboard=false", "--memory=4000000000"]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    head = subprocess.Popen([*command, *asked, "--disable-usage-stats"], env=given, **quiet)
    given["RAY_ADDRESS"] = f"127.0.0.1:{port}"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.5)
    yield given
    below = psutil.Process(head.pid).children(recursive=True)
    head.terminate()
    _, alive = psutil.wait_procs(below, timeout=20)
    for process in alive:
        process.kill()


def train(environ, *words):
    command = [sys.executable, "scripts/train.py", *words, *SIZES]  # flags come first
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )


@needs_ray
@pytest.mark.slow
def test_two_ranks_train_as_actors(cluster, tmp_path):
    done = train(cluster, "launch.processes=2", f"hydra.run.dir={tmp_path}")

    assert done.returncode == 0, done.stdout + done.stderr
    content = load_checkpoint(tmp_path)
    assert content["num_steps"] == 512
    assert len(content["ranks"]) == 1
    assert "steps" in done.stdout  # what the first process said


@needs_ray
@pytest.mark.slow
def test_what_the_cluster_does_not_have_is_refused(cluster, tmp_path):
    done = train(cluster, "launch.processes=4", f"hydra.run.dir={tmp_path}")

    assert done.returncode == 1
    assert "launch=ray needs 1 machines with CPU 4" in done.stderr


@needs_ray
@pytest.mark.slow
def test_a_sweep_of_six_shares_the_cluster(cluster, tmp_path):
    swept = ["-m", "seed=0,1,2", "memory=lossless,baseline", f"hydra.sweep.dir={tmp_path}"]
    done = train(cluster, *swept, "hydra/launcher=joblib", "hydra.launcher.n_jobs=6")

    assert done.returncode == 0, done.stdout + done.stderr
    ends = [cell.end for _, cell in cells_in(tmp_path)]
    assert ends == [End.finished] * 6


@needs_ray
def test_without_a_cluster_one_line_says_how_to_start_one(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "")
    monkeypatch.setattr("ray.init", refuse)

    with pytest.raises(ConfigError, match=r"ray start --head"):
        start_ranks(compose_run([*SIZES, f"hydra.run.dir={tmp_path}"]))


def refuse(**options):
    raise ConnectionError
