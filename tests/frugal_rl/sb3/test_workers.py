"""Stable-Baselines3's subprocesses as a backend: the same episodes, and a dead worker in words."""

import os
import signal

import numpy as np
import pytest

from frugal_rl.errors import WorkerError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.compose import compose_run
from frugal_rl.sb3.workers import Sb3
from frugal_rl.testing.toy import TOY_SPEC, Toy
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.batch import Batch

N = 3


def make(vec):
    encoding = Encoding.choose(TOY_SPEC, Storage.lossless)
    return Toy().make_vec(N, encoding, MemoryProfile(), vec, "train")


def test_the_subprocesses_of_sb3_run_the_episodes_of_the_native_batch():
    check_vec_env(lambda: make(Sb3()), lambda: make(Batch()), steps=70)


def test_a_dead_subprocess_of_sb3_is_named():
    env = make(Sb3())
    env.reset(0)
    os.kill(env.vec.processes[1].pid, signal.SIGKILL)
    env.vec.processes[1].join()
    with pytest.raises(WorkerError, match="environment 1 died"):
        env.step(np.zeros(N, np.int64))
    env.close()


def test_the_choice_vec_sb3_exists():
    assert isinstance(compose_run(["env=toy", "vec=sb3"]).vec, Sb3)
