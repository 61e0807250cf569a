"""Whole runs under faults: kills, a machine that sleeps, clocks that jump."""

import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from rich.console import Console

from frugal_rl.memory.plan import draw_up
from frugal_rl.report.files import read_metrics
from frugal_rl.report.log import open_log
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.keeping import verify_checkpoints
from frugal_rl.run.signals import StopAsked, asked_to_stop, asking, stop_in_words
from frugal_rl.run.trainer import train

ROOT = Path(__file__).resolve().parents[3]
WORDS = (
    "env=toy", "tracking=disabled", "algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16",
    "algo.n_epochs=1", "algo.total_steps=160", "evaluation.episodes=0", "hardware.threads=1",
    "hardware.device=cpu", "checkpoint_every_steps=32", "agent.actor=[4]", "agent.critic=[4]",
)  # fmt: skip


def whole_run(folder, *words, resume=None):
    run = replace(compose_run([*WORDS, *words], check=False), run_dir=str(folder), resume=resume)
    with open_log(run, draw_up(run)) as log:
        return train(run, log, console=Console(file=io.StringIO()))


def jumping():
    """Jumps a day back and a day ahead in turn."""
    jumps, real = iter(range(10**6)), time.time
    return lambda: real() + (-1) ** next(jumps) * 86_400


def before_the_epoch():
    """A machine without a battery whose clock runs behind 1970, backwards."""
    ticks = iter(range(10**6))
    return lambda: -1000.0 - next(ticks)


@pytest.mark.parametrize("clock", [jumping, before_the_epoch])
def test_a_clock_that_is_set_back_or_ahead_changes_nothing(clock, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", clock())
    whole_run(tmp_path / "a")
    monkeypatch.undo()
    whole_run(tmp_path / "b")
    seconds = [m["seconds"] for m in read_metrics(tmp_path / "a")]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] <= seconds[-1] < 3600
    assert not [v.problem for v in verify_checkpoints(tmp_path / "a") if v.problem]
    assert same_weights(tmp_path / "a", tmp_path / "b")


def same_weights(a, b):
    ours, theirs = (load_checkpoint(f)["learner"]["policy"] for f in (a, b))
    return all(torch.equal(v, theirs[k]) for k, v in ours.items())


RUN = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1])))
from frugal_rl.memory.plan import draw_up
from frugal_rl.report.log import open_log
from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import train
from dataclasses import replace
run = compose_run(sys.argv[4:], check=False)
resume = None if sys.argv[3] == "none" else sys.argv[3]
run = replace(run, run_dir=sys.argv[2], resume=resume)
with open_log(run, draw_up(run)) as log:
    print("begun", flush=True)
    train(run, log)
"""
LONG = ("algo.total_steps=6400", "checkpoint_every_steps=32", "vec=shared_memory", "vec.workers=2")


def begun(folder, resume, words):
    root = str(ROOT)
    command = [sys.executable, "-c", RUN, root, str(folder), str(resume or "none"), *words]
    env = {**os.environ, "PYTHONPATH": root}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    while process.stdout.readline() not in ("begun\n", ""):
        pass
    return process


def killed(process, when):
    """Kill a run at a moment that `when` says; its children by then."""
    children = []
    while process.poll() is None and not when():
        children = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return children


def shared_blocks():
    return {p.name for p in Path("/dev/shm").glob("psm_*")}


@pytest.mark.slow
def test_a_run_that_is_stopped_and_continued_as_a_whole_ends_the_same(tmp_path):
    """As a laptop's lid does, or `scontrol suspend`: longer than workers may be silent."""
    words = [*WORDS, *LONG, "vec.timeout=2"]
    folder = tmp_path / "a"
    process = begun(folder, None, words)
    while not list((folder / "checkpoints").glob("step_*.pt")):
        time.sleep(0.01)
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for one in everyone:
        one.suspend()
    time.sleep(4)
    for one in reversed(everyone):
        one.resume()
    assert process.wait(timeout=300) == 0
    begun(tmp_path / "b", None, words).communicate()
    assert same_weights(folder, tmp_path / "b")
    assert all("vec/restarts" not in m for m in read_metrics(folder))


@pytest.mark.slow
def test_a_killed_run_leaves_no_worker_and_no_shared_memory(tmp_path):
    before = shared_blocks()
    folder = tmp_path / "a"
    children = killed(begun(folder, None, [*WORDS, *LONG]),
                      lambda: list((folder / "checkpoints").glob("step_*.pt")))  # fmt: skip
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive
    deadline = time.monotonic() + 10
    while shared_blocks() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not shared_blocks() - before


@pytest.fixture
def listeners():
    """What listens to requests to stop is put back."""
    before = {number: signal.getsignal(number) for number in asking()}
    for number in before:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, theirs in before.items():
        signal.signal(number, theirs)


def test_before_a_run_listens_a_request_to_stop_ends_its_command_like_ctrl_c(listeners):
    mine = []
    signal.signal(signal.SIGHUP, lambda number, frame: mine.append(number))
    stop_in_words()
    for number in (signal.SIGTERM, signal.SIGUSR1):
        with pytest.raises(StopAsked, match=signal.Signals(number).name):
            os.kill(os.getpid(), number)
    os.kill(os.getpid(), signal.SIGHUP)  # somebody else listens to that
    assert mine == [signal.SIGHUP]


def test_a_warning_that_a_run_heard_does_not_end_its_command(listeners):
    stop_in_words()
    with asked_to_stop() as stop:
        os.kill(os.getpid(), signal.SIGUSR1)
    assert stop.is_set()


def test_a_processor_limit_that_is_used_up_asks_once_however_often_it_comes(listeners):
    with asked_to_stop() as stop:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGXCPU)
    assert stop.is_set()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_a_command_that_is_asked_to_stop_while_it_plans_says_so_and_leaves_nothing(
    number, tmp_path
):
    command = [sys.executable, "scripts/train.py", *WORDS, f"hydra.run.dir={tmp_path / 'a'}"]
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}  # measures anew
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **home},
    )  # fmt: skip
    while not (tmp_path / "a" / ".hydra" / "config.yaml").exists():
        time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    by = "Ctrl-C" if number == signal.SIGINT else number.name
    assert said.splitlines()[-1] == f"Stopped by {by}."
    assert process.returncode == 128 + number
    assert not (tmp_path / "a").exists()
