"""The rollout buffer draws what SB3's draws, keeps rows once, and allocates what was planned."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import DictRolloutBuffer

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.memory.choices import RolloutLocation, Shuffle
from frugal_rl.observation.choices import FrameStack, Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Padding, Static, Stored
from frugal_rl.store.layout import planned_bytes
from frugal_rl.store.rollout import RolloutBuffer

EPISODE_STEPS = 9


def spec_of(window: int, padding: Padding) -> ObservationSpec:
    return ObservationSpec(
        (
            Stored("frame", (3, 5), np.uint8, 0, 255, window=window, padding=padding),
            Stored("state", (3,), np.float32, -9, 9),
            Stored("log", (2,), np.int16, 0, 999, window=EPISODE, observed=False),
            Stored("flags", (11,), np.bool_),
            Static("map", (4,), np.float32, table="level"),
        )
    )


def encoding_of(window=4, padding=Padding.zero, stack=FrameStack.once, log=True) -> Encoding:
    spec = spec_of(window, padding)
    if log:
        fields = tuple(
            Stored("log", (2,), np.int16, 0, 999, window=EPISODE) if f.name == "log" else f
            for f in spec.fields
        )
        spec = ObservationSpec(fields)
    return Encoding.choose(spec, Storage.lossless, stack)


def random_rows(encoding, n, rng):
    rows = {}
    for r in encoding.rows:
        shape = (n, *r.shape)
        raw = rng.integers(0, 255, (*shape, r.dtype.itemsize), np.uint8)
        rows[r.name] = np.ascontiguousarray(raw).view(r.dtype).reshape(shape)
        if r.dtype.kind == "f":
            rows[r.name] = rng.standard_normal(shape).astype(r.dtype)
    return rows


class Rollouts:
    """Random episodes of at most EPISODE_STEPS steps, as the trainer would feed them."""

    def __init__(self, encoding, n, seed):
        self.rng = np.random.default_rng(seed)
        self.encoding, self.n = encoding, n
        self.history = History(encoding, n, EPISODE_STEPS)
        self.obs = self.history.reset(random_rows(encoding, n, self.rng))
        self.starts = np.ones(n, bool)
        self.age = np.zeros(n, int)

    def fill(self, buffers, steps):
        for buffer in buffers:
            buffer.reset()
        for _ in range(steps):
            self._step(buffers)
        last = torch.from_numpy(self.rng.standard_normal(self.n).astype(np.float32))
        for buffer in buffers:
            buffer.compute_returns_and_advantage(last, self.starts)

    def _step(self, buffers):
        rng, n = self.rng, self.n
        action = rng.integers(0, 6, n)
        reward = rng.standard_normal(n).astype(np.float32)
        value = torch.from_numpy(rng.standard_normal((n, 1)).astype(np.float32))
        log_prob = torch.from_numpy(rng.standard_normal(n).astype(np.float32))
        for buffer in buffers:
            buffer.add(self.obs, action, reward, self.starts, value, log_prob)
        self.age += 1
        self.starts = (rng.random(n) < 0.2) | (self.age >= EPISODE_STEPS)
        self.age[self.starts] = 0
        self.obs, _ = self.history.push(random_rows(self.encoding, n, rng), self.starts)


def policy_dict_space(encoding) -> spaces.Dict:
    return encoding.policy_space(EPISODE_STEPS)


def assert_equal_draws(ours, theirs, batch_size):
    np.random.seed(7)  # noqa: NPY002 - SB3 draws from the global state
    mine = [
        (
            {k: v.clone() for k, v in s.observations.items()},
            [x.clone() for x in s[1:]],
        )
        for s in ours.get(batch_size)
    ]
    np.random.seed(7)  # noqa: NPY002 - SB3 draws from the global state
    for (observations, scalars), sample in zip(mine, theirs.get(batch_size), strict=True):
        assert set(observations) == set(sample.observations)
        for key, value in sample.observations.items():
            assert observations[key].dtype == value.dtype
            # SB3 gives entries of shape () an axis of one when it flattens; ours keep theirs
            assert torch.equal(observations[key], value.reshape(observations[key].shape)), key
        for got, expected in zip(scalars, sample[1:], strict=True):
            assert got.dtype == expected.dtype
            assert torch.equal(got, expected)


LOCATIONS = [RolloutLocation.ram, RolloutLocation.memmap, RolloutLocation.device]


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("padding", list(Padding))
@pytest.mark.parametrize("stack", list(FrameStack))
@pytest.mark.parametrize("shuffle", list(Shuffle))
def test_minibatches_equal_those_of_sb3_bit_for_bit(location, padding, stack, shuffle):
    encoding = encoding_of(padding=padding, stack=stack)
    space, actions = policy_dict_space(encoding), spaces.Discrete(6)
    ours = RolloutBuffer(
        8, space, actions, "cpu", 0.95, 0.99, 3,
        encoding=encoding, episode_steps=EPISODE_STEPS, location=location, shuffle=shuffle,
        reuse=location is RolloutLocation.ram,
    )  # fmt: skip
    theirs = DictRolloutBuffer(8, space, actions, "cpu", 0.95, 0.99, 3)
    rollouts = Rollouts(encoding, 3, seed=0)

    for _ in range(3):
        rollouts.fill([ours, theirs], 8)
        for _epoch in range(2):
            assert_equal_draws(ours, theirs, batch_size=7)


def test_a_plain_space_is_stored_without_an_encoding():
    space = spaces.Dict(
        {"image": spaces.Box(0, 255, (4, 5), np.uint8), "cell": spaces.Discrete(30)}
    )
    actions = spaces.Box(-1, 1, (2,), np.float32)
    ours = RolloutBuffer(5, space, actions, "cpu", n_envs=2)
    theirs = DictRolloutBuffer(5, space, actions, "cpu", n_envs=2)
    rng = np.random.default_rng(1)
    for _ in range(5):
        obs = {
            "image": rng.integers(0, 255, (2, 4, 5), np.uint8),
            "cell": rng.integers(0, 30, (2,)).reshape(2, 1),
        }
        step = (
            rng.random((2, 2)), rng.random(2), rng.random(2) < 0.3,
            torch.zeros(2, 1), torch.zeros(2),
        )  # fmt: skip
        ours.add(obs, *step)
        theirs.add(obs, *step)
    assert_equal_draws(ours, theirs, None)


@given(
    steps=st.integers(1, 12),
    num_envs=st.integers(1, 5),
    window=st.integers(2, 6),
    stack=st.sampled_from(FrameStack),
    storage=st.sampled_from([Storage.dense, Storage.half, Storage.lossless, Storage.smallest]),
    log=st.booleans(),
)
def test_the_plan_equals_the_allocation_to_the_byte(steps, num_envs, window, stack, storage, log):
    spec = encoding_of(window, log=log).spec
    encoding = Encoding.choose(spec, storage, stack)
    actions = spaces.Discrete(6)

    planned = planned_bytes(encoding, steps, num_envs, actions, EPISODE_STEPS)
    buffer = RolloutBuffer(
        steps, policy_dict_space(encoding), actions, "cpu", n_envs=num_envs,
        encoding=encoding, episode_steps=EPISODE_STEPS,
    )  # fmt: skip

    arrays = [v for v in vars(buffer).values() if isinstance(v, np.ndarray)]
    held = sum(a.nbytes for a in arrays) + sum(a.nbytes for a in buffer.observations.values())
    assert planned == buffer.nbytes == held == sum(buffer.parts().values())


def test_a_reused_minibatch_lies_in_the_same_memory():
    encoding = encoding_of()
    buffer = RolloutBuffer(
        8, policy_dict_space(encoding), spaces.Discrete(6), "cpu", n_envs=3,
        encoding=encoding, episode_steps=EPISODE_STEPS, reuse=True,
    )  # fmt: skip
    Rollouts(encoding, 3, seed=3).fill([buffer], 8)

    places = {s.observations["frame"].data_ptr() for s in buffer.get(7)}

    assert len(places) == 1


def test_an_unfilled_rollout_refuses_to_be_drawn():
    buffer = RolloutBuffer(4, spaces.Box(0, 1, (2,)), spaces.Discrete(2), "cpu")
    with pytest.raises(RuntimeError, match="0 of 4 steps"):
        next(buffer.get(2))


def test_a_mapped_file_that_does_not_fit_is_refused_in_words(tmp_path):
    space = spaces.Box(0, 255, (2**10,), np.uint8)
    with pytest.raises(MemoryBudgetError, match=r"memory.rollout_location=ram"):
        RolloutBuffer(
            2**36, space, spaces.Discrete(2), "cpu",
            location=RolloutLocation.memmap, folder=str(tmp_path),
        )  # fmt: skip


def check_lying(lying, gathered, in_place):
    """The same numbers and rows; in place those of columns that are not windows."""
    assert np.array_equal(lying.actions, gathered.actions)
    told = (gathered.old_log_prob, gathered.old_values, gathered.advantages, gathered.returns)
    assert np.array_equal(lying.scalars, np.stack(told))
    assert set(lying.observations) == set(gathered.observations)
    found = {name for name in lying.observations if lying.observations.stored(name) is not None}
    assert found == ({"state", "flags", "level_id", "age"} if in_place else set())
    for name, rows in gathered.observations.items():
        assert torch.equal(lying.observations[name], rows)
        if name in found:
            there = lying.observations.stored(name)[lying.observations.at]
            assert np.array_equal(there, rows.numpy())


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("shuffle", list(Shuffle))
def test_rows_that_are_not_gathered_are_found_where_they_lie(location, shuffle):
    encoding = encoding_of()
    buffer = RolloutBuffer(
        8, policy_dict_space(encoding), spaces.Discrete(6), "cpu", n_envs=3,
        encoding=encoding, episode_steps=EPISODE_STEPS, location=location, shuffle=shuffle,
    )  # fmt: skip
    Rollouts(encoding, 3, seed=0).fill([buffer], 8)
    order = buffer.order(7)
    in_place = location is not RolloutLocation.device and shuffle is Shuffle.gather

    for indices, lying in zip(order, buffer.samples_where_they_lie(order), strict=True):
        check_lying(lying, buffer.samples(indices), in_place)


def test_torch_is_loaded_when_samples_are_drawn_and_not_before():
    code = "import sys, frugal_rl.store.rollout; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
