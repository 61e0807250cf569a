"""Replays that are copied or pickled go on as what they were copied from."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl import ReplayBuffer
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.priorities import PrioritisedReplayBuffer

PIXELS = spaces.Box(0, 255, (3, 20, 20), np.uint8)
KINDS = {
    "plain": (ReplayBuffer, {}),
    "several steps": (ReplayBuffer, {"n_steps": 3}),
    "in a file": (ReplayBuffer, {"location": RolloutLocation.memmap}),
    "prioritised": (PrioritisedReplayBuffer, {}),
}
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda replay: pickle.loads(pickle.dumps(replay))}


def put(replay, frames, step):
    ends = np.array([step % 7 == 0, False])
    reward = np.full(2, float(step))
    replay.add(frames[step], frames[step + 1], np.zeros(2, int), reward, ends, [{}, {}])


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [10, 120])  # before its form is decided, and after a whole turn
def test_a_copied_replay_goes_on_by_itself(kind, how, steps):
    frames = np.random.default_rng(0).integers(0, 255, (200, 2, 3, 20, 20), np.uint8)
    frames[1:, :, :-1] = frames[:-1, :, 1:]
    make, options = KINDS[kind]
    replay = make(100, PIXELS, spaces.Discrete(2), "cpu", n_envs=2, **options)
    for step in range(steps):
        put(replay, frames, step)
    other = COPIES[how](replay)
    for step in range(steps, steps + 60):
        put(other, frames, step)
    drawn = []
    for step in range(steps, steps + 60):
        put(replay, frames, step)
    for one in (replay, other):
        np.random.seed(0)  # noqa: NPY002 - SB3 draws from it
        drawn.append([t.numpy() for t in one.sample(64) if t is not None])

    assert all(np.array_equal(a, b) for a, b in zip(*drawn, strict=True))
    assert len(drawn[0][0]) == 64
