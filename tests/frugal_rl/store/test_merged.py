"""Merged trajectories are drawn as the rollout draws its steps, windows and advantages included."""

import numpy as np
import pytest
import torch

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Padding, Stored
from frugal_rl.store.merged import MergedRollout
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.episodes import Episodes

ROWS = ObservationSpec(
    (
        Stored("plain", (2,), np.uint16, 0, 60_000),
        Stored("zeros", (3,), np.uint16, 0, 60_000, window=3),
        Stored("first", (), np.float32, -9, 9, window=4, padding=Padding.repeat),
        Stored("all", (2,), np.int32, -9, 9, window=EPISODE),
    )
)


def test_windows_stay_inside_their_trajectory():
    encoding, rng = Encoding.choose(ROWS, Storage.dense), np.random.default_rng(0)
    lengths, longest = [4, 1, 6], 7
    rows = {
        r.name: rng.integers(0, 9, (3, 6, *r.shape)).astype(r.dtype) for r in encoding.rows
    }  # fmt: skip
    merged = {
        n: torch.from_numpy(np.concatenate([v[i, :k] for i, k in enumerate(lengths)]))
        for n, v in rows.items()
    }
    scalars = {n: torch.zeros(11) for n in ("reward", "value", "log_prob", "action")}
    rollout = MergedRollout(
        {**merged, **scalars}, lengths, np.zeros(3, np.float32), encoding, longest, 0.9, 0.8
    )
    got = {k: v.numpy() for k, v in rollout.observations(torch.arange(11)).items()}
    place = 0
    for i, length in enumerate(lengths):
        history = History(encoding, 1, longest)
        for t in range(length):
            now = {n: v[i, t][None] for n, v in rows.items()}
            expected, _ = history.push(now, np.array([t == 0]))
            for name, value in expected.items():
                np.testing.assert_array_equal(got[name][place], value[0], err_msg=f"{name} {i} {t}")
            place += 1


def test_advantages_are_those_of_the_rollout_buffer():
    rng, space = np.random.default_rng(1), Toy().action_space()
    encoding = Encoding.choose(ObservationSpec((Stored("x", (), np.float32),)), Storage.dense)
    lengths, bootstrap = [5, 3], np.array([0.7, 0.0], np.float32)
    items = {n: torch.from_numpy(rng.random(8, np.float32)) for n in ("reward", "value", "x")}
    items |= {"log_prob": torch.zeros(8), "action": torch.zeros(8)}
    merged = MergedRollout(items, lengths, bootstrap, encoding, 5, 0.95, 0.9)

    start = 0
    for length, behind in zip(lengths, bootstrap, strict=True):
        buffer = RolloutBuffer(
            length, encoding.policy_space(), space, "cpu", 0.9, 0.95, 1, encoding=encoding
        )
        for i in range(start, start + length):
            late = np.float32(0.95) * behind if i == start + length - 1 else np.float32(0)
            reward = items["reward"][i].numpy() + late
            buffer.add(
                {"x": items["x"][i : i + 1].numpy()}, np.zeros(1), reward,
                np.array([i == start]), items["value"][i : i + 1], np.zeros(1),
            )  # fmt: skip
        buffer.compute_returns_and_advantage(np.zeros(1, np.float32), np.ones(1, np.bool_))
        expected = buffer.advantages[:, 0]
        np.testing.assert_array_equal(merged.advantages[start : start + length], expected)
        start += length


@pytest.mark.parametrize("spread", [True, False])
def test_every_step_is_drawn_once_per_epoch(spread):
    env = Toy(episode_steps=9).make_vec(
        4, Encoding.choose(Toy().spec(), Storage.lossless), MemoryProfile(), Episodes(), "train"
    )
    into = env.allocate()
    told = env.collect(lambda shown: {"action": np.arange(4) % 4}, 2, into)
    cut = [slice(0, k) for k in told.lengths]
    items = {n: np.concatenate([v[i, c] for i, c in enumerate(cut)]) for n, v in into.items()}
    items |= {n: np.arange(len(items["reward"]), dtype=np.float32) for n in ("value", "log_prob")}
    merged = {n: torch.from_numpy(v) for n, v in items.items()}
    rollout = MergedRollout(merged, told.lengths.tolist(), told.bootstrap, env.encoding, 9, 1, 1)
    np.random.seed(0)  # noqa: NPY002 - the stream that minibatches are drawn from
    batches = [rollout.samples(own) for own in rollout.order(5 if spread else 1000)]
    assert sorted(torch.cat([b.old_values for b in batches]).tolist()) == items["value"].tolist()
