"""The contracts hold for the toy, and fail for environments and codecs that break them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from frugal_rl.errors import EncodingError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.codecs.codec import DenseCodec
from frugal_rl.observation.codecs.half import HalfCodec
from frugal_rl.observation.encoder import Encoder, decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.testing import toy_twins
from frugal_rl.testing.codec import check_codec
from frugal_rl.testing.env import check_env
from frugal_rl.testing.toy import TOY_SPEC, Toy, ToyBatch, ToyEnv, map_rows
from frugal_rl.testing.vec_env import check_vec_env


def test_the_toy_keeps_the_contract_of_environments():
    check_env(Toy())


class Forgetful(ToyEnv):
    def raw(self):
        raw = super().raw()
        raw["turns"] = raw["turns"] + np.int16(1)
        return raw


class Wide(ToyEnv):
    def raw(self):
        raw = super().raw()
        raw["position"] = raw["position"].astype(np.int64)
        return raw


class Loud(ToyEnv):
    def raw(self):
        raw = super().raw()
        raw["speed"] = raw["speed"] + np.float32(7)
        return raw


@pytest.mark.parametrize("kind", [Forgetful, Wide, Loud])
def test_a_broken_environment_does_not_keep_it(kind):
    @dataclass(frozen=True)
    class Broken(Toy):
        def make(self, seed=None):
            env = kind(self.levels, self.episode_steps)
            if seed is not None:
                env.reset(seed=seed)
            return env

    with pytest.raises((AssertionError, EncodingError)):
        check_env(Broken(), gymnasium_checks=False)


class Rounding(DenseCodec):
    def encode(self, values):
        return np.round(values, 1)


def test_a_codec_that_rounds_does_not_pass_as_lossless():
    with pytest.raises(AssertionError):
        check_codec(Rounding(), np.array([[0.25]], np.float32), (1,))


def test_a_lossy_codec_must_state_its_bound():
    with pytest.raises(AssertionError, match="states its error bound"):
        check_codec(HalfCodec(), np.array([[0.25]], np.float32), (1,))


def test_different_seeds_are_different_trajectories():
    encoding = Encoding.choose(TOY_SPEC, Storage.lossless)

    class Shifted(ToyBatch):
        def reset(self, seed):
            return super().reset(seed + 1)

    with pytest.raises(AssertionError):
        check_vec_env(lambda: Shifted(3, encoding, 4, 20), lambda: ToyBatch(3, encoding, 4, 20))


def test_a_toy_batch_resumes_exactly_where_it_was_saved():
    encoding = Encoding.choose(TOY_SPEC, Storage.lossless)
    one, other = (ToyBatch(3, encoding, 9, 20) for _ in range(2))
    one.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(25):
        one.step(rng.integers(0, 4, 3))
    other.load(one.state())
    for _ in range(40):
        actions = rng.integers(0, 4, 3)
        a, b = one.step(actions), other.step(actions)
        for name, rows in a.rows.items():
            np.testing.assert_array_equal(rows, b.rows[name])


def test_torch_twins_of_the_toy_equal_its_numpy_functions():
    encoding = Encoding.choose(TOY_SPEC, Storage.lossless)
    env, history = ToyBatch(4, encoding, 4, 20), History(encoding, 4, 20)
    rows = history.reset(env.reset(0))
    rng = np.random.default_rng(0)
    for _ in range(30):
        step = env.step(rng.integers(0, 4, 4))
        rows, _ = history.push(step.rows, step.done)
    observed = decode(encoding, rows, env.tables)
    walls = torch.from_numpy(observed["walls"])
    position = torch.from_numpy(observed["position"])
    moves = torch.from_numpy(rows["moves"])
    picture = toy_twins.picture({"walls": walls, "position": position}, {})
    assert torch.equal(picture, torch.from_numpy(observed["picture"]))
    assert torch.equal(toy_twins.turns({"moves": moves}, {}), torch.from_numpy(observed["turns"]))


def test_every_storage_of_the_toy_trains_on_what_it_acts_on():
    for storage in Storage:
        encoding = Encoding.choose(TOY_SPEC, storage)
        env = Toy().make_vec(2, encoding, MemoryProfile(), None, "train")
        edge = Encoder(encoding, env.tables, 2)
        raw = env.game.observe() if env.reset(0) else {}
        rows = edge.encode(raw)
        again = Encoder(encoding, env.tables, 2).encode(raw)
        for name, row in rows.items():
            np.testing.assert_array_equal(row, again[name])


def test_maps_differ():
    assert len({map_rows(i)["walls"].tobytes() for i in range(8)}) > 4
