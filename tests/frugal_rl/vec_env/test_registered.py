"""Any registered environment: its leaves by name, exact or refused in words."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from frugal_rl.errors import ConfigError, DataError, EncodingError
from frugal_rl.learn.networks import Embedding
from frugal_rl.memory.checks import check_run
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.found_spec import FoundField, FoundSpec
from frugal_rl.run.compose import compose_run
from frugal_rl.run.planning import plan
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.vec_env.leaves import LeavesEnv, leaves_of
from frugal_rl.vec_env.registered import Registered

SPACE = spaces.Dict(
    {
        "screen": spaces.Box(0, 255, (6, 5), np.uint8),
        "hand": spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiDiscrete([2, 4]))),
        "flags": spaces.MultiBinary(4),
    }
)


class Nested(gym.Env):
    """Hands out whatever lies in `shown`."""

    observation_space = SPACE
    action_space = spaces.Discrete(2)

    def __init__(self, wrong=False):
        self.wrong = wrong

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.see(), {}

    def see(self):
        shown = SPACE.sample()
        shown["screen"] = np.zeros((7, 5) if self.wrong else (6, 5), np.uint8)
        return shown

    def step(self, action):
        return self.see(), 1.0, bool(self.np_random.random() < 0.2), False, {}


gym.register("Nested-v0", Nested)


def test_nested_spaces_become_named_leaves_and_choices_become_flags():
    leaves = leaves_of(SPACE)
    shown = {"screen": np.ones((6, 5), np.uint8), "hand": (np.int64(2), np.array([1, 3]))}

    assert [leaf.name for leaf in leaves] == ["flags", "hand_0", "hand_1", "screen"]
    assert all(type(size) is int for leaf in leaves for size in leaf.shape)
    assert leaves[1].read(shown).tolist() == [False, True, False]
    assert leaves[2].read(shown).tolist() == [False, True, False, False, False, True]


@pytest.mark.parametrize("space", [spaces.Text(5), spaces.Sequence(spaces.Discrete(2))])
def test_spaces_without_a_fixed_size_are_refused_by_name(space):
    with pytest.raises(ConfigError, match=r"'words' is a .* space.*env.wrappers"):
        leaves_of(spaces.Dict({"words": space}))


def test_an_observation_outside_its_space_is_refused_by_name():
    env = Registered(id="Nested-v0", kwargs={"wrong": True, "disable_env_checker": True}).make()
    with pytest.raises(EncodingError, match=r"'screen' is declared as \(6, 5\).*\(7, 5\)"):
        env.reset(seed=0)
    with pytest.raises(EncodingError, match=r"'hand_0' has \[3\] choices"):
        leaves_of(SPACE)[1].read({"hand": (4, None)})


def test_a_vector_of_them_steps_and_its_rollout_looks_for_savings():
    config = Registered(id="Nested-v0")
    encoding = Encoding.choose(config.spec())
    vec_env = config.make_vec(3, encoding, MemoryProfile(), None, "train")
    rows = vec_env.reset(0)
    buffer = RolloutBuffer(
        4, encoding.policy_space(), vec_env.action_space, "cpu", n_envs=3, encoding=encoding
    )
    zeros = np.zeros(3)
    for _ in range(4):
        buffer.add(rows, zeros[:, None], zeros, zeros, zeros, zeros)
        rows = vec_env.step(np.zeros(3, np.int64)).rows

    assert isinstance(buffer.columns["screen"], FoundColumn)
    assert encoding.choice["hand_0"] == "bits"
    assert config.episode_steps > 0


class Cells(Nested):
    """Whole numbers in a row, which stock networks read as they are, and one of many choices."""

    observation_space = spaces.Dict(
        {"cells": spaces.Box(0, 255, (4,), np.uint8), "place": spaces.Discrete(65_536)}
    )


gym.register("Cells-v0", Cells)


@pytest.mark.parametrize(("scaled", "read"), [(False, 10.0), (True, 10 / 255)])
def test_networks_read_whole_numbers_as_stock_ones_do_unless_told_otherwise(scaled, read):
    spec = Registered(id="Cells-v0", scale_integers=scaled).spec()
    embedding = Embedding(spec.observed(), 8, lambda shape, width: nn.Identity())
    fields = {
        "cells": torch.full((1, 4), 10, dtype=torch.uint8),
        "place": torch.tensor([[32_768]]),
    }
    found = embedding(fields, lambda block, x: block(x))
    torch.testing.assert_close(found, torch.tensor([[read] * 4 + [0.5]]))


def test_an_environment_says_whether_it_states_a_limit(monkeypatch):
    known = gym.registry["CartPole-v1"]
    assert (Registered(id="CartPole-v1").episode_steps, Registered(id="CartPole-v1").unlimited) == (
        500,
        False,
    )
    monkeypatch.setattr(known, "max_episode_steps", None)
    assert Registered(id="CartPole-v1").unlimited
    assert not Registered(id="CartPole-v1", episode_steps=70).unlimited


def test_an_unknown_id_and_a_missing_package_are_told_apart():
    with pytest.raises(ConfigError, match=r"env\.id is empty"):
        Registered()
    with pytest.raises(ConfigError, match=r"env\.id=Nothing-v7 cannot be made.*env\.modules"):
        Registered(id="Nothing-v7").spec()
    with pytest.raises(ConfigError, match=r"env\.wrappers names 'no\.Wrapper'"):
        Registered(id="Nested-v0", wrappers=({"wrapper": "no.Wrapper"},)).spec()


def test_a_package_that_registers_nothing_is_told_with_the_module_that_may(tmp_path, monkeypatch):
    inner = tmp_path / "shelf" / "envs"
    inner.mkdir(parents=True)
    for folder in (inner.parent, inner):
        (folder / "__init__.py").touch()
    (tmp_path / "lone.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigError, match=r"none of that name.*env\.modules=\[shelf\.envs\]\."):
        Registered(id="Nothing-v7", modules=("shelf", "lone")).spec()
    with pytest.raises(ConfigError, match=r"lone,shelf\.envs\] registers none.*documentation says"):
        Registered(id="Nothing-v7", modules=("lone", "shelf.envs")).spec()


def test_a_study_tells_the_plan_what_rows_take(tmp_path):
    file = tmp_path / "nested.yaml"
    file.write_text(FoundSpec({"screen": FoundField("differences", 30, 3)}).text())
    spec = Registered(id="Nested-v0", spec_file=str(file)).spec()
    assert spec.by_name["screen"].codecs[0].expected_share == pytest.approx(0.1)

    file.write_text(FoundSpec({"picture": FoundField("differences", 30, 3)}).text())
    with pytest.raises(DataError, match=r"'picture'.*does not observe"):
        Registered(id="Nested-v0", spec_file=str(file)).spec()
    file.write_text("words")
    with pytest.raises(DataError, match="is no study"):
        Registered(id="Nested-v0", spec_file=str(file)).spec()


def test_an_entry_that_is_missing_and_names_that_collide_are_told():
    leaf = leaves_of(SPACE)[0]
    with pytest.raises(EncodingError, match=r"'flags' is declared.*dict without 'flags'"):
        leaf.read({"screen": 0})
    with pytest.raises(EncodingError, match=r"'hand_1' is declared.*tuple without 1"):
        leaves_of(SPACE)[2].read({"hand": (1,)})
    flag = spaces.Discrete(2)
    with pytest.raises(ConfigError, match=r"\('a', 'b'\) and \('a_b',\).*'a_b'"):
        leaves_of(spaces.Dict({"a": spaces.Dict({"b": flag}), "a_b": flag}))


def test_leaves_of_no_bytes_are_left_out():
    nothing = spaces.Box(0, 1, (0,))
    kept = leaves_of(spaces.Dict({"a": nothing, "b": spaces.Discrete(2)}))
    assert [leaf.name for leaf in kept] == ["b"]
    with pytest.raises(ConfigError, match="nothing to store"):
        leaves_of(spaces.Dict({"a": nothing}))


@pytest.mark.parametrize(
    ("space", "first", "last"),
    [
        (spaces.Discrete(3, start=5), 5, 7),
        (spaces.MultiDiscrete([2, 4], start=[1, -1]), [1, -1], [2, 2]),
        (spaces.Discrete(3), 0, 2),
    ],
)
def test_actions_count_from_zero_and_arrive_as_the_environment_counts_them(space, first, last):
    class Strict(Nested):
        action_space = space

        def step(self, action):
            assert space.contains(action)
            self.taken = np.asarray(action).tolist()
            return super().step(action)

    env = LeavesEnv(Strict())
    env.reset(seed=0)
    for given, wanted in ((0, first), (getattr(space, "nvec", getattr(space, "n", 0)) - 1, last)):
        env.step(given + np.zeros(space.shape, np.int64))
        assert env.unwrapped.taken == wanted


class Mapped(gym.Env):
    """A map that is too large for a perceptron, beside a number."""

    observation_space = spaces.Dict(
        {"map": spaces.Box(0, 1, (100, 100)), "x": spaces.Box(0, 1, (2,))}
    )
    action_space = spaces.Discrete(2)


gym.register("Mapped-v0", Mapped)


def test_what_a_network_leaves_out_of_a_strangers_observation_is_told():
    words = ["env=gymnasium", "env.id=Mapped-v0"]
    told = []
    for more in ([], ["agent.largest_field=10000"], ["agent.read=[x]"]):
        run = compose_run([*words, *more])
        found = check_run(run, plan(run))
        told += [f.message for f in found if f.id == "F45"]
    assert told == ["the network does not read map: more values than agent.largest_field", ""]


def steps_until_the_end(config):
    env = config.plain()
    env.reset(seed=0)
    steps, ended = 0, False
    while not ended and steps < 300:
        steps, ended = steps + 1, any(env.step(0)[2:4])
    return steps


def test_an_episode_ends_where_it_was_said():
    class Endless(Nested):
        def step(self, action):
            return self.see(), 0.0, False, False, {}

    gym.register("Endless-v0", Endless)
    assert steps_until_the_end(Registered(id="Endless-v0")) == 300
    assert steps_until_the_end(Registered(id="Endless-v0").tiny()) == 200
    assert steps_until_the_end(Registered(id="Endless-v0", episode_steps=7)) == 7
    given = Registered(id="Endless-v0", kwargs={"max_episode_steps": 9})
    assert (given.episode_steps, steps_until_the_end(given)) == (9, 9)
    assert steps_until_the_end(Registered(id="MountainCar-v0", episode_steps=250)) == 250
