"""Every backend runs the same episodes, and says so when a worker fails."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import psutil
import pytest

from frugal_rl.errors import ConfigError, WorkerError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.toy import TOY_SPEC, Toy
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.batch import Batch
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.shared_memory import SharedMemory, Start
from frugal_rl.vec_env.threads import Threads

N = 5
BACKENDS = [Serial(), Threads(3), SharedMemory(2), SharedMemory(2, Start.fork)]


def encoding(storage=Storage.lossless):
    return Encoding.choose(TOY_SPEC, storage)


def make(vec, storage=Storage.lossless, env=Toy()):  # noqa: B008 - Toy is frozen
    return lambda: env.make_vec(N, encoding(storage), MemoryProfile(), vec, "train")


@pytest.mark.parametrize("vec", BACKENDS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("storage", [Storage.dense, Storage.lossless])
def test_a_backend_runs_the_episodes_of_the_native_batch(vec, storage):
    check_vec_env(make(vec, storage), make(Batch(), storage), steps=70)


@dataclass(frozen=True)
class Wrapped(Toy):
    """The toy behind a wrapper that says nothing of raw fields."""

    def make(self, seed=None):
        env = super().make(seed)
        return Opaque(env)


class Opaque(gym.Wrapper):
    @property
    def unwrapped(self):
        return self


def observed_encoding(storage):
    fields = {"picture": "dense", "turns": "dense"}
    return Encoding.choose(TOY_SPEC, storage, fields=fields)


def test_a_foreign_environment_runs_by_its_observation_alone():
    def build(env):
        chosen = observed_encoding(Storage.lossless)
        return lambda: Serial().build(env, N, chosen, MemoryProfile())

    foreign, known = build(Wrapped())(), build(Toy())()
    a, b = foreign.reset(3), known.reset(3)
    for step in range(40):
        for name in ("action_mask", "position", "trail", "picture", "turns"):
            np.testing.assert_array_equal(a[name], b[name])
        actions = np.arange(N) * 7 + step
        a, b = foreign.step(actions % 4).rows, known.step(actions % 4).rows
    walls = [env.tables["map"]["walls"] for env in (foreign, known)]
    np.testing.assert_array_equal(walls[0][a["map_id"]], walls[1][b["map_id"]])
    assert len(foreign.tables["map"]) <= 4


class Broken(gym.Wrapper):
    steps = 0

    def step(self, action):
        Broken.steps += 1
        if Broken.steps > 3:
            raise ValueError("the lift is stuck")
        return super().step(action)


@dataclass(frozen=True)
class BrokenToy(Toy):
    def make(self, seed=None):
        return Broken(super().make(seed))


def test_a_failing_worker_hands_over_its_traceback():
    env = make(SharedMemory(1, Start.fork), env=BrokenToy())()
    env.reset(0)
    with pytest.raises(WorkerError, match=r"(?s)environments 0 to 4 failed.*the lift is stuck"):
        env.step(np.zeros(N, int))
    env.close()


def test_a_killed_worker_is_reported_not_waited_for():
    env = make(SharedMemory(2, restarts=0))()
    env.reset(0)
    os.kill(env._processes[1].pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"environments 2 to 4 died .*exit code -9"):
        env.step(np.zeros(N, int))
    env.close()


def test_a_closed_group_leaves_nothing_behind():
    env = make(SharedMemory(2))()
    env.reset(0)
    pids = [p.pid for p in env._processes]
    block = env._block.name
    env.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    with pytest.raises(FileNotFoundError):
        multiprocessing.shared_memory.SharedMemory(block)


def test_workers_import_no_torch():
    code = (
        "import sys, frugal_rl.vec_env.worker, frugal_rl.testing.toy\n"
        "assert 'torch' not in sys.modules, 'torch'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_environment_without_a_batch_says_what_to_choose():
    with pytest.raises(ConfigError, match="vec=serial, vec=threads or vec=shared_memory"):
        Batch().build(Toy(), N, encoding(), MemoryProfile())


def test_reused_rows_are_views_and_new_ones_are_not():
    env = make(Serial(), Storage.dense)()
    rows = env.reset(0)
    assert np.shares_memory(rows["position"], env.places.raw["position"])
    env.close()
