"""Whole trajectories are those of the environments, from start to end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.memory.choices import Trajectories
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.store.trajectories import Item, TrajectoryBuffer, as_blocks, trimmed
from frugal_rl.testing.toy import TOY_SPEC, Toy
from frugal_rl.vec_env.batch import Batch
from frugal_rl.vec_env.episodes import Episodes
from frugal_rl.vec_env.serial import Serial

N = 6
ENCODING = Encoding.choose(TOY_SPEC, Storage.lossless)


def policy(shown):
    """Depends on position, age and the moves so far: a wrong window changes what is done."""
    seen = shown["position"].sum(1, dtype=int) + shown["moves"].sum((1, 2), dtype=int)
    return (seen + shown["age"][:, 0]) % 4


def acting(shown):
    return {"action": policy(shown)}


def episode_of(env, index, history, seed):
    """One environment's trajectory, step by step."""
    shown = history.reset(env.reset(seed))
    steps = []
    while True:
        position = shown["position"][index].copy()
        actions = policy(shown)
        step = env.step(actions)
        steps.append((actions[index], step.reward[index], position))
        if step.done[index]:
            return steps
        shown, _ = history.push(step.rows, step.done)


@pytest.mark.parametrize("inner", [Batch(), Serial()])
def test_collected_trajectories_are_the_environments_own(inner):
    env = Toy().make_vec(N, ENCODING, MemoryProfile(), Episodes(inner), "train")
    into = env.allocate()
    lengths = env.collect(acting, 11, into).lengths
    plain = Toy().make_vec(N, ENCODING, MemoryProfile(), Batch(), "train")
    for n in range(N):
        expected = episode_of(plain, n, History(ENCODING, N, 20), 11)
        assert lengths[n] == len(expected)
        for t, (action, reward, position) in enumerate(expected):
            assert into["action"][n, t] == action
            assert into["reward"][n, t] == reward
            np.testing.assert_array_equal(into["position"][n, t], position)


def test_trajectories_are_collected_into_the_learners_memory():
    env = Toy().make_vec(N, ENCODING, MemoryProfile(), Episodes(), "train")
    layout = env.item_layout()
    items = [Item(s, torch.from_numpy(np.zeros(0, d)).dtype) for s, d in layout.values()]
    buffer = TrajectoryBuffer(Trajectories.preallocated, max_buffer_size=N * 20)
    slots = buffer.slots(N, 20, items)
    arrays = [block.numpy() for block in as_blocks(slots)]
    lengths = env.collect(acting, 3, dict(zip(layout, arrays, strict=True))).lengths
    copied = env.allocate()
    env.collect(acting, 3, copied)

    steps, mean = buffer.update(trimmed(slots, lengths.tolist()))

    assert steps == lengths.sum()
    expected = np.concatenate([copied["reward"][n, : lengths[n]] for n in range(N)])
    np.testing.assert_array_equal(buffer[1].numpy(), expected)
    assert mean == pytest.approx(expected.mean())


def test_an_environment_without_make_vec_is_refused():
    with pytest.raises(ConfigError, match="has no make_vec"):
        Episodes().build(object(), 1, ENCODING, MemoryProfile())


def test_late_and_cut_episodes_are_valued_and_statistics_are_told_once():
    env = Toy(episode_steps=9).make_vec(N, ENCODING, MemoryProfile(), Episodes(), "train")
    into, seen = env.allocate(9), []

    def value(shown):
        seen.append(shown["age"][:, 0].copy())
        return shown["age"][:, 0].astype(np.float32)

    whole = env.collect(acting, 5, into, value)
    late = whole.lengths == 9
    terminated = into["terminated"][np.arange(N), whole.lengths - 1]
    cut = env.collect(acting, 5, env.allocate(4), value)

    assert sorted(np.concatenate([e.index for e in whole.ended])) == list(range(N))
    assert (late & ~terminated).any()
    np.testing.assert_array_equal(whole.bootstrap, np.where(terminated, 0, whole.lengths))
    assert (cut.lengths <= 4).all()
    np.testing.assert_array_equal(cut.bootstrap[whole.lengths > 4], 4)
