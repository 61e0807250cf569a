"""Workers that die, fall silent or are asked to go: replaced, shown, counted, never waited for."""

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from frugal_rl.errors import MemoryBudgetError, WorkerError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.toy import TOY_SPEC, Toy, ToyEnv
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.shared_memory import SharedMemory, SharedMemoryEnv, Start

N = 4
ACTIONS = np.zeros(N, np.int64)


@pytest.fixture
def opened():
    """Opens vector environments and closes them."""
    kept = []

    def open_vec(backend, env=None):
        encoding = Encoding.choose(TOY_SPEC, Storage.lossless)
        kept.append(backend.build(env or Toy(), N, encoding, MemoryProfile()))
        return kept[-1]

    yield open_vec
    for env in kept:
        env.close()


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_dead_worker_is_replaced_and_the_others_go_on_as_if_nothing_was(opened):
    struck = opened(SharedMemory(2, Start.fork, restarts=1))
    whole = opened(Serial())
    struck.reset(0), whole.reset(0)
    for _ in range(3):
        struck.step(ACTIONS), whole.step(ACTIONS)
    os.kill(struck._processes[1].pid, signal.SIGKILL)
    with pytest.warns(UserWarning, match=r"environments 2 to 3 died .* replaced"):
        step = struck.step(ACTIONS)
    same = whole.step(ACTIONS)
    assert step.done.tolist() == [*same.done[:2], True, True]
    assert step.truncated[2:].all()
    assert step.final_index.tolist()[-2:] == [2, 3]
    assert (step.reward[2:] == 0).all()
    for _ in range(30):
        step, same = struck.step(ACTIONS), whole.step(ACTIONS)
        for name in step.rows:
            if name != "map_id":  # ids count in the order of arrival
                assert (step.rows[name][:2] == same.rows[name][:2]).all()
        assert (step.rows["map_id"] < len(struck.tables["map"])).all()
    assert struck.restarts == 1


def test_more_deaths_than_allowed_end_the_run_in_words(opened):
    env = opened(SharedMemory(1, Start.fork, restarts=1))
    env.reset(0)
    os.kill(env._processes[0].pid, signal.SIGKILL)
    with pytest.warns(UserWarning, match="1 of 1"):
        env.step(ACTIONS)
    os.kill(env._processes[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"after vec\.restarts=1 others"):
        env.step(ACTIONS)


class Sleeper(ToyEnv):
    taken = 0

    def advance(self, action):
        self.taken += 1
        if self.taken == 3:
            time.sleep(60)
        return super().advance(action)


@dataclass(frozen=True)
class SleepyToy(Toy):
    def make(self, seed=None):
        return Sleeper(self.levels, self.episode_steps)


def test_a_silent_worker_shows_its_stack_and_is_replaced(opened, capfd):
    env = opened(SharedMemory(1, Start.fork, restarts=1, timeout=0.5), SleepyToy())
    env.reset(0)
    env.step(ACTIONS), env.step(ACTIONS)
    pid, began = env._processes[0].pid, time.monotonic()
    with pytest.warns(UserWarning, match=r"gave no answer for 0\.5 s"):
        env.step(ACTIONS)
    assert time.monotonic() - began < 30
    assert gone(pid)
    assert "in advance" in capfd.readouterr().err
    env.step(ACTIONS)


@pytest.mark.parametrize("start", Start)
def test_a_stopped_worker_shows_its_stack_is_replaced_and_leaves_nothing(start, opened, capfd):
    env = opened(SharedMemory(2, start, timeout=0.5))
    env.reset(0)
    pid = env._processes[0].pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.warns(UserWarning, match="environments 0 to 1 gave no answer"):
        env.step(ACTIONS)
    assert gone(pid)
    if start is Start.fork:  # the server of the other kind may have begun under an earlier capture
        assert "in _serve" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGKILL, "0 to 1 died without a word"), (signal.SIGSTOP, "0 to 1 gave no answer")],
)
def test_a_worker_that_is_lost_during_an_update_ends_no_save_and_is_replaced(number, words, opened):
    """The checkpoint behind the update is the first to ask it; its episodes begin anew."""
    struck, whole = opened(SharedMemory(2, Start.fork, timeout=0.2)), opened(Serial())
    for env in (struck, whole):
        env.reset(0), env.step(ACTIONS), env.state()
    os.kill(struck._processes[0].pid, number)
    for _ in range(2):  # as the best and the newest are saved one after the other
        with pytest.raises(NotImplementedError):
            struck.state()
    with pytest.warns(UserWarning, match=rf"{words}.* replaced"):
        step = struck.step(ACTIONS)
    same = whole.step(ACTIONS)
    assert step.truncated.tolist() == [True, True, *same.truncated[2:]]
    for _ in range(3):
        step, same = struck.step(ACTIONS), whole.step(ACTIONS)
        for name in step.rows:
            if name != "map_id":  # ids count in the order of arrival
                assert (step.rows[name][2:] == same.rows[name][2:]).all()
    struck.load(struck.state())
    assert struck.restarts == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_to_the_whole_group_do_not_end_workers(opened, number, capfd):
    env = opened(SharedMemory(1, Start.fork))
    env.reset(0)
    os.kill(env._processes[0].pid, number)
    env.step(ACTIONS)
    assert env.restarts == 0


class Raising(ToyEnv):
    def advance(self, action):
        raise ZeroDivisionError("a fault of the environment")


@dataclass(frozen=True)
class RaisingToy(Toy):
    def make(self, seed=None):
        return Raising(self.levels, self.episode_steps)


def test_an_environment_that_raises_is_named_with_seed_step_and_action(opened):
    words = r"Environment 0, begun with seed \d+, step 0 of its episode, action 0\."
    env = opened(SharedMemory(1, Start.fork), RaisingToy())
    env.reset(0)
    with pytest.raises(WorkerError, match=words):
        env.step(ACTIONS)
    serial = opened(Serial(), RaisingToy())
    serial.reset(0)
    with pytest.raises(ZeroDivisionError) as raised:
        serial.step(ACTIONS)
    assert "Environment 0, begun with seed" in raised.value.__notes__[0]


HANGING = """
import sys, time
from dataclasses import dataclass
import numpy as np
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.toy import TOY_SPEC, Toy, ToyEnv
from frugal_rl.vec_env.shared_memory import SharedMemory, Start


class HangingEnv(ToyEnv):
    def advance(self, action):
        time.sleep(600)


@dataclass(frozen=True)
class Hanging(Toy):
    def make(self, seed=None):
        return HangingEnv(self.levels, self.episode_steps)


def main():
    backend = SharedMemory(2, Start[sys.argv[1]])
    encoding = Encoding.choose(TOY_SPEC, Storage.lossless)
    vec = backend.build(Hanging(), 2, encoding, MemoryProfile())
    vec.reset(0)
    print(*[process.pid for process in vec._processes], flush=True)
    vec.step(np.zeros(2, np.int64))
"""


@pytest.mark.parametrize("start", ["fork", "preload"])
def test_workers_that_hang_die_with_a_run_that_was_killed(tmp_path, start):
    (tmp_path / "hanging.py").write_text(HANGING)
    places = os.pathsep.join([str(tmp_path), str(Path.cwd())])
    words = [sys.executable, "-c", "import hanging; hanging.main()", start]
    environment = {**os.environ, "PYTHONPATH": places}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as run:
        workers = [int(pid) for pid in run.stdout.readline().split()]
        time.sleep(0.5)  # both are inside the step by now
        run.kill()
    assert len(workers) == 2
    until = time.monotonic() + 20
    while not all(map(gone, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert all(map(gone, workers))


def test_a_full_dev_shm_is_refused_in_words_and_leaves_nothing(opened, monkeypatch):
    def full(number, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = set(Path("/dev/shm").glob("psm_*"))

    with pytest.raises(
        MemoryBudgetError, match=r"shared block of [\d,]+ bytes .* enlarge /dev/shm"
    ):
        opened(SharedMemory(2, Start.fork))

    assert set(Path("/dev/shm").glob("psm_*")) <= before


@pytest.mark.parametrize("start", Start)
def test_workers_that_cannot_all_be_started_leave_neither_processes_nor_memory(
    start, opened, monkeypatch
):
    started, real = [], SharedMemoryEnv._started

    def refused(self, share):
        if started:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        started.append(real(self, share))
        return started[-1]

    monkeypatch.setattr(SharedMemoryEnv, "_started", refused)
    before = set(Path("/dev/shm").glob("psm_*"))
    with pytest.raises(OSError, match="Too many open files"):
        opened(SharedMemory(2, start))
    assert set(Path("/dev/shm").glob("psm_*")) <= before
    assert not started[0][1].is_alive()
