"""Pools keep rows as long as their content is, and give them back bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import DictRolloutBuffer

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.observation.codecs.pooled import DeltaCodec, RaggedCodec
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Padding, Stored
from frugal_rl.store.layout import planned_bytes
from frugal_rl.store.rollout import RolloutBuffer

STEPS = 7


def encoding_of(shape, dtype, window, padding, kind):
    inner = PackedCodec(shape) if dtype == np.uint8 else None
    codec = kind(inner) if inner else kind()
    spec = ObservationSpec(
        (Stored("x", shape, dtype, 0, 3, codecs=(codec,), window=window, padding=padding),)
    )
    return Encoding.choose(spec, Storage.dense, fields={"x": codec.name})


def changing(rng, before, encoding):
    """Rows a few values away from those before; now and then something new altogether."""
    row = encoding.rows[0]
    rows = before.copy()
    flat = rows.reshape(len(rows), -1)
    for values in flat:
        count = flat.shape[1] if rng.random() < 0.1 else rng.integers(0, 1 + flat.shape[1] // 8)
        where = rng.choice(flat.shape[1], count, replace=False)
        values[where] = rng.integers(0, 255, count).astype(row.dtype)
        if rng.random() < 0.2:
            values[flat.shape[1] // 2 :] = 0
    return rows


@settings(max_examples=40)
@given(
    shape=st.sampled_from([(3, 5), (16, 160), (70, 70), (1,)]),
    dtype=st.sampled_from([np.uint8, np.float32]),
    window=st.sampled_from([1, 4, EPISODE]),
    padding=st.sampled_from(Padding),
    kind=st.sampled_from([RaggedCodec, DeltaCodec]),
    seed=st.integers(0, 99),
)
def test_pooled_rows_come_back_bit_for_bit(shape, dtype, window, padding, kind, seed):
    encoding = encoding_of(shape, dtype, window, padding, kind)
    rng, n = np.random.default_rng(seed), 3
    space, actions = encoding.policy_space(STEPS), spaces.Discrete(2)
    ours = RolloutBuffer(5, space, actions, "cpu", n_envs=n, encoding=encoding, episode_steps=STEPS)
    theirs = DictRolloutBuffer(5, space, actions, "cpu", n_envs=n)
    history, row = History(encoding, n, STEPS), encoding.rows[0]
    x = np.zeros((n, *row.shape), row.dtype)
    obs, age = history.reset({"x": x}), np.zeros(n, int)
    for _ in range(3):
        ours.reset()
        theirs.reset()
        for _ in range(5):
            for buffer in (ours, theirs):
                zeros = torch.zeros(n)
                buffer.add(obs, np.zeros(n), np.zeros(n), np.zeros(n, bool), zeros, zeros)
            x = changing(rng, x, encoding)
            age += 1
            done = (rng.random(n) < 0.2) | (age >= STEPS)
            age[done] = 0
            obs, _ = history.push({"x": x}, done)
        for drawn, expected in zip(draws(ours), draws(theirs), strict=True):
            assert torch.equal(drawn.view(torch.uint8), expected.view(torch.uint8))


def draws(buffer):
    np.random.seed(5)  # noqa: NPY002 - SB3 draws from the global state
    return [s.observations["x"].contiguous() for s in buffer.get(4)]


def frames(rng, steps, n):
    """A dithered stage [144, 160] in four shades, with a sprite that walks over it."""
    stage = (
        np.indices((144, 160)).sum(0) % 2 + rng.integers(0, 3, (18, 20)).repeat(8, 0).repeat(8, 1)
    ).astype(np.uint8)
    shown = np.repeat(stage[None, None], steps, 0).repeat(n, 1)
    for t in range(steps):
        for e in range(n):
            x, y = (3 * t + 40 * e) % 128, 60 + (t + e) % 30
            shown[t, e, y : y + 32, x : x + 24] = rng.integers(0, 4, (32, 24))
    return shown


def test_a_walking_sprite_takes_a_fifth_of_a_packed_frame():
    encoding = encoding_of((144, 160), np.uint8, 4, Padding.zero, DeltaCodec)
    rng, n, steps = np.random.default_rng(0), 2, 40
    buffer = RolloutBuffer(
        steps, encoding.policy_space(), spaces.Discrete(2), "cpu", n_envs=n, encoding=encoding
    )
    history, codec = History(encoding, n), PackedCodec((144, 160))
    shown = frames(rng, steps, n)
    zeros = torch.zeros(n)
    for t in range(steps):
        obs, _ = history.push({"x": codec.encode(shown[t])}, np.full(n, t == 0))
        buffer.add(obs, np.zeros(n), np.zeros(n), np.full(n, t == 0), zeros, zeros)

    used = buffer.columns["x"].pool.used * 2

    assert used / (steps * n) < 5760 / 5
    drawn = codec.decode(buffer.observations_at(np.array([9]), np.array([1]))["x"].numpy())
    np.testing.assert_array_equal(drawn[0], shown[6:10, 1])


@pytest.mark.parametrize("alike", [False, True])
def test_a_rollout_of_nothing_but_new_rows_keeps_a_reference_of_each_content(alike):
    encoding = encoding_of((4, 40), np.uint8, 1, Padding.zero, DeltaCodec)
    rng, steps, n = np.random.default_rng(0), 100, 3
    buffer = RolloutBuffer(
        steps, encoding.policy_space(), spaces.Discrete(2), "cpu", n_envs=n, encoding=encoding
    )
    codec, zeros = PackedCodec((4, 40)), torch.zeros(n)
    shown = rng.integers(0, 4, (steps, n, 4, 40)).astype(np.uint8)
    shown[:, 1] = shown[:, 0] if alike else shown[:, 1]
    for t in range(steps):
        rows = {"x": codec.encode(shown[t])}
        buffer.add(rows, np.zeros(n), np.zeros(n), np.full(n, t == 0), zeros, zeros)

    drawn = buffer.observations_at(np.repeat(np.arange(steps), n), np.tile(np.arange(n), steps))
    np.testing.assert_array_equal(
        codec.decode(drawn["x"].numpy()).reshape(shown.shape), shown, strict=True
    )
    assert buffer.columns["x"].references.used == steps * (n - alike)


@pytest.mark.parametrize("kind", [RaggedCodec, DeltaCodec])
@pytest.mark.parametrize("window", [1, 4])
def test_the_plan_of_a_pool_equals_what_it_begins_with(kind, window):
    encoding = encoding_of((16, 160), np.uint8, window, Padding.zero, kind)
    planned = planned_bytes(encoding, 6, 3, spaces.Discrete(2))
    buffer = RolloutBuffer(
        6, encoding.policy_space(), spaces.Discrete(2), "cpu", n_envs=3, encoding=encoding
    )
    arrays = [v for v in vars(buffer).values() if isinstance(v, np.ndarray)]
    held = sum(a.nbytes for c in buffer.columns.values() for a in arrays_of(c))
    assert planned == buffer.nbytes == held + sum(a.nbytes for a in arrays)


def arrays_of(column):
    return column.arrays() if hasattr(column, "arrays") else [column.values]


@pytest.mark.parametrize("kind", [RaggedCodec, DeltaCodec])
def test_a_pool_whose_rows_keep_to_the_expected_share_does_not_grow(kind):
    encoding = encoding_of((32, 160), np.uint8, 1, Padding.zero, kind)
    buffer = RolloutBuffer(
        4, encoding.policy_space(), spaces.Discrete(2), "cpu", n_envs=2, encoding=encoding
    )
    planned, rng = buffer.nbytes, np.random.default_rng(0)
    for _ in range(2):
        buffer.reset()
        for _ in range(4):
            rows = np.zeros((2, *encoding.rows[0].shape), np.uint8)
            rows.reshape(2, -1)[:, :96] = rng.integers(0, 255, (2, 96))
            fill = np.zeros(2), np.zeros(2), np.zeros(2, bool), torch.zeros(2), torch.zeros(2)
            buffer.add({"x": rows}, *fill)
    assert buffer.nbytes == planned == planned_bytes(encoding, 4, 2, spaces.Discrete(2))
