"""Minari data sets: what is written is what is read, episode by episode."""

from __future__ import annotations

import json
import os
import re
import sys

import numpy as np
import pytest
import stable_baselines3 as sb3
from gymnasium import spaces
from stable_baselines3.common.logger import Logger

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.invocation import installing
from frugal_rl.store.offline import read_dataset, write_dataset
from frugal_rl.store.replay import DictReplayBuffer, ReplayBuffer

VECTOR = spaces.Box(-9, 9, (3,), np.float32)
PIXELS = spaces.Box(0, 255, (1, 20, 20), np.uint8)
DICT = spaces.Dict({"image": PIXELS, "vector": VECTOR, "clock": spaces.Discrete(9)})
SPEED = spaces.Box(-2, 4, (2,), np.float32)


def filled(space, actions, steps=90, size=60, num_envs=2):
    """A replay that has turned over, of episodes of eleven steps that end in either way."""
    kind = DictReplayBuffer if isinstance(space, spaces.Dict) else ReplayBuffer
    replay = kind(size * num_envs, space, actions, "cpu", num_envs)
    space.seed(0)

    def seen():
        rows = [space.sample() for _ in range(num_envs)]
        if isinstance(space, spaces.Dict):
            return {name: np.stack([row[name] for row in rows]) for name in space}
        return np.stack(rows)

    rng, now = np.random.default_rng(0), seen()
    for step in range(steps):
        then = seen()
        done = np.full(num_envs, step % 11 == 10)
        action = rng.integers(0, 2, num_envs)
        if isinstance(actions, spaces.Box):
            action = rng.uniform(-1, 1, (num_envs, 2)).astype(np.float32)
        limits = done & (np.arange(num_envs) == 0)
        replay.store(now, then, action, rng.random(num_envs), done, limits)
        now = seen() if step % 11 == 10 else then
    return replay


def held(replay, n):
    """All that is held of an environment, in order."""
    places = np.arange(replay.count - replay.size(), replay.count) % replay.buffer_size
    at = places, np.full(len(places), n)
    pairs = (replay.observations, replay.next_observations)
    rows = [v[at] for p in pairs for v in (p.values() if isinstance(p, dict) else [p])]
    return [*rows, replay.actions[at], replay.rewards[at], replay.dones[at], replay.timeouts[at]]


@pytest.mark.parametrize("space", [VECTOR, PIXELS, DICT], ids=["vector", "pixels", "dict"])
@pytest.mark.parametrize("actions", [spaces.Discrete(2), SPEED], ids=["discrete", "box"])
def test_a_replay_comes_back_from_a_data_set(tmp_path, space, actions):
    pytest.importorskip("minari")
    replay = filled(space, actions)
    episodes = write_dataset(replay, tmp_path / "data", "toy/random-v0")

    back = read_dataset(tmp_path / "data")

    assert episodes == 2 * 7  # ends within the 60 steps that are held, and the one that goes on
    assert back.size() == 120
    parts = [np.concatenate(pair) for pair in zip(held(replay, 0), held(replay, 1), strict=True)]
    for at in (59, 119):
        parts[-1][at] = parts[-2][at] = True  # the newest episodes are cut off
    *rows, acted, rewards, dones, limits = zip(held(back, 0), parts, strict=True)
    assert np.allclose(*acted, rtol=0, atol=1e-6)  # scaled to units and back
    assert all(np.array_equal(*pair) for pair in (*rows, rewards, dones, limits))


def test_minari_itself_reads_it(tmp_path):
    minari = pytest.importorskip("minari")
    write_dataset(filled(DICT, SPEED), tmp_path / "data", "toy/random-v0")
    data = minari.MinariDataset(tmp_path / "data")

    episode = next(iter(data.iterate_episodes()))

    assert (data.total_episodes, data.total_steps) == (14, 120)
    assert episode.observations["image"].shape == (len(episode.rewards) + 1, 1, 20, 20)
    assert SPEED.contains(episode.actions[0])


def test_a_stock_algorithm_learns_from_it(tmp_path):
    pytest.importorskip("minari")
    write_dataset(filled(VECTOR, spaces.Discrete(2)), tmp_path / "data", "toy/random-v0")
    model = sb3.DQN("MlpPolicy", None, _init_setup_model=False, device="cpu")
    model.observation_space, model.action_space, model.n_envs = VECTOR, spaces.Discrete(2), 1
    model.env = type("Env", (), {"action_space": model.action_space, "num_envs": 1})()
    model.replay_buffer = read_dataset(tmp_path / "data")
    model._setup_model()
    model.set_logger(Logger(None, []))
    before = model.q_net.q_net[0].weight.clone()

    model.train(20, 32)

    assert not (model.q_net.q_net[0].weight == before).all()


def test_without_minari_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ConfigError, match=re.escape(installing("offline"))):
        read_dataset(tmp_path)


def test_a_folder_that_is_no_data_set_or_not_empty_is_refused(tmp_path):
    pytest.importorskip("minari")
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(DataError, match="no Minari data set"):
        read_dataset(tmp_path)
    with pytest.raises(DataError, match="not empty"):
        write_dataset(filled(VECTOR, SPEED), tmp_path, "toy/random-v0")


def in_episode(change):
    """A change of the first episode's arrays."""

    def spoil(folder):
        with pytest.importorskip("h5py").File(folder / "main_data.hdf5", "r+") as file:
            change(file["episode_0"])

    return spoil


def put(name, values):
    def change(episode):
        del episode[name]
        episode.create_dataset(name, data=values)

    return in_episode(change)


def bomb(episode):
    del episode["rewards"]
    form = {"dtype": "f8", "chunks": (1 << 20,), "compression": "gzip"}
    episode.create_dataset("rewards", shape=(1 << 36,), **form)


def elsewhere(episode):
    del episode["rewards"]
    episode["rewards"] = pytest.importorskip("h5py").ExternalLink("/etc/passwd", "/x")


def told(**changes):
    def spoil(folder):
        said = json.loads((folder / "metadata.json").read_text())
        (folder / "metadata.json").write_text(json.dumps(said | changes))

    return spoil


def piped(folder):
    (folder / "metadata.json").unlink()
    os.mkfifo(folder / "metadata.json")


def cut(folder):
    os.truncate(folder / "main_data.hdf5", 5000)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (piped, "no regular file"),
        (cut, "cannot be read"),
        (told(total_steps=10**12), "counts 1,000,000,000,000 steps in"),
        (told(total_steps=3), "counts 3 steps, its episodes have 44"),
        (told(total_steps="\x1b[2J"), "no Minari data set"),
        (told(observation_space="[" * 5000), "no Minari data set"),
        (told(action_space='{"type": "Dict", "subspaces": {}}'), "cannot be kept"),
        (put("rewards", np.zeros(2)), r"parts of \[2, 11\] steps"),
        (put("rewards", np.full(11, np.nan)), "not finite"),
        (put("observations", np.zeros((12, 7), np.float32)), "does not fit"),
        (in_episode(lambda episode: episode.pop("actions")), "does not fit"),
        (in_episode(bomb), "unpacks to .* times its size"),
        (in_episode(elsewhere), "'rewards' leads elsewhere"),
    ],
)
def test_a_strangers_data_set_is_refused_in_one_line_and_nothing_of_it_is_lost(
    spoil, words, tmp_path
):
    pytest.importorskip("minari")
    replay = ReplayBuffer(44, VECTOR, spaces.Discrete(2), "cpu", 1)
    for step in range(44):
        row = np.full((1, 3), step % 9, np.float32)
        replay.add(row, row, np.array([1]), np.array([1.0]), np.array([step % 11 == 10]), [{}])
    write_dataset(replay, tmp_path / "data", "toy/random-v0")
    spoil(tmp_path / "data")
    with pytest.raises(DataError, match=words) as refused:
        read_dataset(tmp_path / "data")
    assert str(refused.value).isprintable()
