"""Starting processes that train together, losing one, and going on."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch

from frugal_rl.errors import ConfigError, FolderInUseError, RankError
from frugal_rl.report.files import read_json
from frugal_rl.run import launch
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run, composed_command
from frugal_rl.run.config import Launch
from frugal_rl.run.finite import not_finite
from frugal_rl.run.keeping import NONE_YET, continuing, newest_sound, verify_checkpoints
from frugal_rl.run.launch import (
    LAUNCHER_LOCK,
    Lost,
    launch_config,
    rank_words,
    start_once,
    start_ranks,
)
from frugal_rl.run.lock import locked

ROOT = Path(__file__).resolve().parents[3]
SIZES = ["algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=64", "evaluation.episodes=4"]
AGAIN = "launch.restarts=3 lets a run go on by itself; this one goes on with"
COMMAND = [sys.executable, "scripts/train.py", "env=toy", "tracking=disabled", *SIZES]


def run_in(folder, *words):
    return replace(compose_run(["env=toy", "launch=torchrun", *words]), run_dir=str(folder))


def test_each_process_gets_words_folder_and_config_dir(tmp_path):
    run = replace(run_in(tmp_path, "launch.processes=4"), config_dir="mine")

    words, config = rank_words(run), launch_config(run)

    assert words[1:5] == ["--config-dir", "mine", "env=toy", "launch=torchrun"]
    assert f"hydra.run.dir={tmp_path}" in words
    assert (config.nproc_per_node, config.min_nodes, config.rdzv_endpoint) == (4, 1, "localhost:0")


def test_a_folder_with_signs_reaches_the_processes_as_it_is(tmp_path):
    run = run_in(tmp_path / "my [best] run's", "launch.processes=2")

    folders = composed_command("train", rank_words(run)[1:]).folder

    assert folders == tmp_path / "my [best] run's"


def test_several_machines_need_a_place_to_meet(tmp_path):
    with pytest.raises(ConfigError, match=r"launch\.nodes=2 need .*launch\.meet=HOST:29400"):
        start_ranks(run_in(tmp_path, "launch.nodes=2"))

    assert Launch(nodes=2, processes=3, meet="first:29400").size == 6


@pytest.mark.parametrize("meet", ["first", "first:0", "first:99999", "first:here", ":29400"])
def test_a_place_to_meet_has_a_port(tmp_path, meet):
    with pytest.raises(ConfigError, match=r"is no HOST:PORT .*use launch\.meet=\w+:29400"):
        start_ranks(run_in(tmp_path, "launch.nodes=2", f"launch.meet='{meet}'"))


@pytest.mark.parametrize(("words", "said"), [
    (["launch.processes=2"], r"has 1: use launch\.processes=1, or hardware\.device=cpu"),
    (["launch.processes=2", "hardware.device=cuda:0"], r"use hardware\.device=cuda"),
])  # fmt: skip
def test_each_process_needs_a_gpu_of_its_own(tmp_path, monkeypatch, words, said):
    """The second of two ended with torch's own words on one GPU, on the processor, too."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)

    with pytest.raises(ConfigError, match=said):
        launch.check_devices(run_in(tmp_path, *words))
    launch.check_devices(run_in(tmp_path, "launch.processes=2", "hardware.device=cpu"))
    launch.check_devices(run_in(tmp_path, "launch.processes=1", "launch.nodes=2"))


def test_the_machine_with_the_address_of_the_meeting_hosts_it(tmp_path, monkeypatch):
    cards = {"eth1": [SimpleNamespace(address="10.77.0.1")]}
    monkeypatch.setattr(launch.psutil, "net_if_addrs", lambda: cards)
    words = ["launch.nodes=2", "launch.meet=10.77.0.{}:29400"]

    configs = [
        launch_config(run_in(tmp_path, words[0], words[1].format(end))).rdzv_configs for end in "12"
    ]

    assert [config.get("is_host") for config in configs] == [True, None]


def test_a_folder_has_one_launcher(tmp_path):
    with (
        locked(tmp_path, LAUNCHER_LOCK),
        pytest.raises(FolderInUseError, match=rf"process {os.getpid()} .*hydra\.run\.dir="),
    ):
        start_ranks(run_in(tmp_path))


@pytest.mark.parametrize("seconds", ["0", "0.5", "1", "1e9"])
def test_a_limit_below_the_beat_or_beyond_a_day_is_refused(seconds):
    with pytest.raises(ConfigError, match=r"launch\.timeout_s is .*at least 5 and at most 86400"):
        compose_run(["env=toy", "launch=torchrun", f"launch.timeout_s={seconds}"])


def failed(monkeypatch, **failure):
    """An agent whose process 1 failed first."""
    values = {"pid": 7, "exitcode": 1, "message": "", "error_file": "here/error.json"}
    error = launch.ChildFailedError.__new__(launch.ChildFailedError)
    error.failures = {1: SimpleNamespace(**values | failure), 0: None}

    def agent(*words):
        raise error

    monkeypatch.setattr(launch, "elastic_launch", lambda config, program: agent)
    return start_once(run_in("here"), 0)


def test_a_killed_process_is_named(monkeypatch):
    lost = failed(monkeypatch, exitcode=-9)

    assert lost == Lost("Process 1 of 2 (pid 7) was ended by SIGKILL.")


def test_what_a_process_said_last_is_told(monkeypatch):
    silent = failed(monkeypatch, message={"message": "RankError: No answer from process 0."})
    refused = failed(monkeypatch, message={"message": "ConfigError: No."})

    assert silent == Lost("No answer from process 0.")
    assert refused == Lost("Process 1 of 2 (pid 7) ended: ConfigError: No.", may_go_on=False)


def test_where_a_process_said_more_is_told(monkeypatch, tmp_path):
    said, told = tmp_path / "stderr.log", {"error_file": str(tmp_path / "error.json")}
    said.touch()
    broken = failed(monkeypatch, message={"message": "ValueError: The pump is broken."}, **told)
    silent = failed(monkeypatch, exitcode=3, **told)
    killed = failed(monkeypatch, exitcode=-9, **told)
    other = failed(monkeypatch, message={"message": "RankError: No answer from process 0."}, **told)

    more = f"All that it said: {said}."
    assert broken.words == (f"Process 1 of 2 (pid 7) ended: ValueError: The pump is broken. {more}")
    assert silent.words == f"Process 1 of 2 (pid 7) ended with 3. {more}"
    assert more not in killed.words + other.words


@pytest.mark.parametrize(
    ("ends", "tried"),
    [([None], 1), ([Lost("a"), None], 2), ([Lost("a"), Lost("b"), Lost("c")], 3)],
)
def test_lost_runs_start_again_as_often_as_they_may(tmp_path, monkeypatch, ends, tried):
    attempts = []
    left = list(ends)
    monkeypatch.setattr(
        launch, "start_once", lambda run, attempt: attempts.append(attempt) or left.pop(0)
    )
    run = run_in(tmp_path, "launch.restarts=2")
    if ends[-1] is None:
        start_ranks(run)
    else:
        with pytest.raises(RankError, match="c No checkpoint was saved yet"):
            start_ranks(run)

    assert attempts == list(range(tried))


def test_what_was_saved_after_a_processs_last_word_is_told(tmp_path, monkeypatch):
    def start(run, attempt):  # another process was inside its first save
        (tmp_path / "checkpoints").mkdir()
        (tmp_path / "checkpoints" / "last.pt").touch()
        return Lost(f"No answer from process 1 of 2. {NONE_YET}")

    monkeypatch.setattr(launch, "start_once", start)
    with pytest.raises(RankError) as error:
        start_ranks(run_in(tmp_path))

    assert "No checkpoint" not in str(error.value)
    assert f"process 1 of 2. {AGAIN} resume={tmp_path}" in str(error.value)


def test_a_refused_run_is_not_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "start_once", lambda run, attempt: Lost("No.", may_go_on=False))

    with pytest.raises(RankError, match=r"No\."):
        start_ranks(run_in(tmp_path, "launch.restarts=2"))


def test_with_restarts_a_run_goes_on_from_its_own_checkpoints(tmp_path):
    run = run_in(tmp_path, "resume=older")
    (tmp_path / "checkpoints").mkdir()
    patient = replace(run, launch=replace(run.launch, restarts=1))
    assert continuing(patient).resume == "older"

    (tmp_path / "checkpoints" / "last.pt").touch()

    assert continuing(patient).resume == str(tmp_path)
    with pytest.raises(FolderInUseError, match=f"resume={tmp_path}; or"):
        continuing(run)  # from "older" again it would mix both


def train(folder, *words):
    done = subprocess.run(
        [*COMMAND, *words, f"hydra.run.dir={folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, load_checkpoint(folder)["learner"]["policy"]


@pytest.mark.slow
def test_two_processes_resume_to_the_bit_and_one_goes_on_alone(tmp_path):
    two = "launch=torchrun"
    _, whole = train(tmp_path / "whole", two, "algo.total_steps=512")
    train(tmp_path / "half", two, "algo.total_steps=256")
    resume = f"resume={tmp_path / 'half'}"
    _, resumed = train(tmp_path / "resumed", two, resume, "algo.total_steps=512")
    said, _ = train(tmp_path / "alone", resume, "algo.total_steps=512")

    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert "begin new episodes" in said


@pytest.mark.slow
def test_four_processes_are_gone_on_with_by_two_and_by_one(tmp_path):
    four = ["launch=torchrun", "launch.processes=4"]
    train(tmp_path / "four", *four, "algo.total_steps=256")
    two = ["launch=torchrun", f"resume={tmp_path / 'four'}", "algo.total_steps=512"]
    said, _ = train(tmp_path / "two", *two)
    assert "Resumed" in said
    assert "at 256 steps" in said

    said, _ = train(tmp_path / "one", f"resume={tmp_path / 'two'}", "algo.total_steps=768")

    assert "at 512 steps" in said
    assert load_checkpoint(tmp_path / "one")["num_steps"] == 768


def disturbed(folder, victim, how, *words):
    """A run of two processes, one of which is sent a signal once both learn."""
    asked = ["launch=torchrun", "checkpoint_every_steps=512", f"hydra.run.dir={folder}", *words]
    launcher = subprocess.Popen(
        [*COMMAND, *asked], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    saved = folder / "checkpoints" / "last.pt"
    while not saved.exists() and launcher.poll() is None:
        time.sleep(0.05)
    psutil.Process(launcher.pid).children()[victim].send_signal(how)
    out, err = launcher.communicate(timeout=300)
    return launcher.returncode, out, err


@pytest.mark.slow
def test_a_run_that_lost_a_process_ends_in_words(tmp_path):
    code, _, said = disturbed(tmp_path, 1, signal.SIGKILL, "algo.total_steps=1000000")

    assert code == 1
    assert "RankError: Process 1 of 2 (pid " in said
    assert f"was ended by SIGKILL. {AGAIN} resume={tmp_path}" in said


POISONED = """
import os
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Poisoned(CartPoleEnv):
    taken = 0

    def step(self, action):
        seen, reward, *rest = super().step(action)
        Poisoned.taken += 1
        bad = os.environ.get("RANK") == "1" and Poisoned.taken == 700
        return (seen, float("nan") if bad else reward, *rest)

gym.register("Poisoned-v0", entry_point=Poisoned, max_episode_steps=50)
"""


@pytest.mark.slow
def test_a_number_that_is_none_on_another_process_is_named_and_the_run_goes_on(tmp_path):
    (tmp_path / "poisoned.py").write_text(POISONED)
    words = ["env=gymnasium", "env.modules=[poisoned]", "env.id=Poisoned-v0", "plugins=[poisoned]",
             "tracking=disabled", "vec=serial", "launch=torchrun", "checkpoint_every_steps=512",
             "algo.total_steps=2048", *SIZES]  # fmt: skip
    program = [sys.executable, "scripts/train.py", *words]
    where = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def ended(folder, *more):
        return subprocess.run(
            [*program, f"hydra.run.dir={folder}", *more],
            cwd=ROOT, env=where, capture_output=True, text=True, check=False,
        )  # fmt: skip

    done = ended(tmp_path / "a")
    assert done.returncode == 1
    assert "NumbersError: The reward of environment" in done.stderr
    assert f"resume={tmp_path / 'a' / 'checkpoints' / 'last.pt'}" in done.stderr
    found = newest_sound(tmp_path / "a")
    assert not list(not_finite(found.content["learner"]))
    (tmp_path / "poisoned.py").write_text(POISONED.replace("== 700", "== 0"))
    assert ended(tmp_path / "b", f"resume={tmp_path / 'a'}").returncode == 0


@pytest.mark.slow
def test_a_launcher_that_was_killed_leaves_no_process_behind(tmp_path):
    asked = ["launch=torchrun", "algo.total_steps=100000000", "checkpoint_every_steps=512"]
    launcher = subprocess.Popen([*COMMAND, *asked, f"hydra.run.dir={tmp_path}"], cwd=ROOT)
    while not (tmp_path / "checkpoints" / "last.pt").exists() and launcher.poll() is None:
        time.sleep(0.05)
    ranks = psutil.Process(launcher.pid).children(recursive=True)
    assert len(ranks) >= 2
    launcher.kill()
    launcher.wait()

    _, alive = psutil.wait_procs(ranks, timeout=60)
    assert not alive
    assert load_checkpoint(tmp_path)["num_steps"] > 0


def at_a_terminal(command):
    """A command with a terminal of its own, and our end of it, which a thread reads."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    return process, ours


def read_until(terminal, is_so):
    """Read what a command says, so that it can go on, until something is so."""
    while not is_so():
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65536)


@pytest.mark.slow
def test_a_closed_terminal_lets_all_processes_save_and_end(tmp_path):
    asked = ["launch=torchrun", "algo.total_steps=100000000", "checkpoint_every_steps=512"]
    launcher, terminal = at_a_terminal([*COMMAND, *asked, f"hydra.run.dir={tmp_path}"])
    saved = tmp_path / "checkpoints" / "last.pt"
    read_until(terminal, lambda: saved.exists() or launcher.poll() is not None)
    ranks = psutil.Process(launcher.pid).children(recursive=True)
    assert len(ranks) >= 2
    os.close(terminal)  # the kernel sends SIGHUP

    assert launcher.wait(120) == 0
    _, alive = psutil.wait_procs(ranks, timeout=10)
    assert not alive
    assert not [v.problem for v in verify_checkpoints(tmp_path) if v.problem]
    said = read_json(tmp_path / "report.json")
    assert said["interrupted"]
    assert load_checkpoint(tmp_path)["num_steps"] == said["num_steps"]


@pytest.mark.slow
def test_a_frozen_process_is_named_by_the_others(tmp_path):
    words = ["algo.total_steps=1000000", "launch.timeout_s=20"]

    code, _, said = disturbed(tmp_path, 0, signal.SIGSTOP, *words)

    assert code == 1
    assert "RankError: No answer from process 0 of 2 (pid " in said


@pytest.mark.slow
def test_a_run_that_lost_a_process_starts_again_by_itself(tmp_path):
    words = ["algo.total_steps=20480", "launch.restarts=1"]

    code, said, _ = disturbed(tmp_path, 1, signal.SIGKILL, *words)

    assert code == 0
    assert "was ended by SIGKILL. Starts again, 1 of launch.restarts=1." in said
    assert "Resumed" in said
    assert load_checkpoint(tmp_path)["num_steps"] == 20480
