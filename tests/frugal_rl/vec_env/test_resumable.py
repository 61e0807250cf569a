"""A stranger's environments go on from their state as if nothing had happened, or say why not."""

import enum
import random
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl.errors import DataError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.run.checkpoint_file import pieces_of, read_file, verify_file
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.object_state import MOST_BYTES, Capture, Restore
from frugal_rl.vec_env.plain import SpecEnv
from frugal_rl.vec_env.registered import Registered
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.shared_memory import SharedMemory, Start


class Mood(enum.Enum):
    calm, wild = 1, 2


class Thing:
    """Something that comes and goes; two of them may hold one another."""

    __slots__ = ("friend", "mood", "place")

    def __init__(self, place):
        self.place, self.mood, self.friend = place, Mood.calm, self


class Crowd(gym.Env):
    """Objects, generators, a view and a queue; `secret` hides its state in a closure."""

    observation_space = spaces.Box(-1e9, 1e9, (6,))
    action_space = spaces.Discrete(3)

    def __init__(self, secret=False):
        self.board = np.zeros((2, 3))
        self.row = self.board[1]  # a view
        self.dice = random.Random()
        hidden = [0.0]
        self.count = (lambda: hidden.__setitem__(0, hidden[0] + 1) or hidden[0]) if secret else None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.dice.seed(int(self.np_random.integers(1 << 30)))
        self.things, self.past, self.seen = {}, deque(maxlen=3), {1, 2}
        self.board[:] = 0
        return self.see(), {}

    def see(self):
        calm = sum(t.mood is Mood.calm for t in self.things.values())
        total = sum(t.friend.place for t in self.things.values())
        more = self.count() if self.count else 0.0
        shown = [*self.row, calm + 0.5 * len(self.past), total, more]
        return np.array(shown, np.float32)

    def step(self, action):
        if self.np_random.random() < 0.5:
            thing = self.things[len(self.things)] = Thing(self.dice.random())
            if len(self.things) > 1:
                thing.friend = self.things[0]
        for thing in self.things.values():
            thing.mood = Mood(self.dice.randint(1, 2))
        self.board[1, action] += self.np_random.normal()
        self.past.append(action)
        return self.see(), float(self.row.sum()), len(self.things) > 9, False, {}


SPEC = ObservationSpec(
    (
        Stored("place", (2,), np.int16, 0, 99, "where it is", window=2),
        Static("map", (4,), np.uint8, 0, 9, "of this episode", table="maps"),
    )
)


class Explorer(SpecEnv):
    """Declared field by field; meets ever more maps."""

    action_space = spaces.Discrete(2)

    def __init__(self, extra=0):
        maps = StaticTable("maps", (TableField("map", (4,), np.uint8),))
        self.ballast = np.zeros(extra)
        super().__init__(SPEC, Tables({"maps": maps}), episode_steps=12)

    def begin(self):
        name = int(self.np_random.integers(100))
        ground = np.random.default_rng(name).integers(0, 9, 4, dtype=np.uint8)
        self.map = self.tables["maps"].intern(name, lambda: {"map": ground})
        self.place = np.zeros(2, np.int16)

    def advance(self, action):
        self.place[action] += self.np_random.integers(1, 4)
        return float(self.place.sum()), False, bool(self.place.max() > 20), {}

    def raw(self):
        return {"place": self.place, "maps_id": self.map}


class MapShown(gym.Env):
    """A stranger's: its map is static, which it does not say."""

    observation_space = spaces.Dict(
        place=spaces.Box(0, 99, (2,), np.int16), map=spaces.Box(0, 9, (4,), np.uint8)
    )
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.inner = Explorer()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shown(self.inner.reset(seed=seed)[0]), {}

    def shown(self, seen):
        return {"place": seen["place"][-1], "map": seen["map"]}

    def step(self, action):
        seen, *rest = self.inner.step(action)
        return self.shown(seen), *rest


@dataclass(frozen=True)
class Declared:
    """Whatever `make` makes, batched by a backend."""

    maker: Any
    spec_of: Any = SPEC

    def spec(self):
        return self.spec_of

    def action_space(self):
        return self.maker().action_space

    def make(self):
        return self.maker()


gym.register("Crowd-v0", Crowd, max_episode_steps=30)


def played(vec_env, steps, seed):
    """Bytes of all that random play shows."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        step = vec_env.step(rng.integers(0, 2, vec_env.num_envs))
        seen += [step.reward.tobytes(), step.done.tobytes()]
        seen += [rows.tobytes() for rows in (*step.rows.values(), *step.final_rows.values())]
    return seen


def made(name, vec):
    config = Registered(id=name)
    return config.make_vec(3, Encoding.choose(config.spec()), MemoryProfile(), vec, "train")


@pytest.mark.parametrize("name", ["Crowd-v0", "CartPole-v1", "FrozenLake-v1"])
def test_a_state_in_a_file_goes_on_as_the_run_did(name, tmp_path):
    first = made(name, Serial())
    first.reset(3)
    played(first, 50, 0)
    file = tmp_path / "state"
    file.write_bytes(b"".join(pieces_of({"state": first.state()})))
    wanted = played(first, 50, 1)

    second = made(name, SharedMemory(workers=2, start=Start.fork))
    second.reset(8)
    second.load(read_file(verify_file(file))["state"])
    again = second.state()
    assert played(second, 50, 1) == wanted
    second.load(again)
    assert played(second, 50, 1) == wanted
    second.close()


WITHOUT_WINDOW = ObservationSpec((replace(SPEC.fields[0], window=1), SPEC.fields[1]))
TOY = Toy()


@pytest.mark.parametrize(
    "env",
    [Declared(Explorer), Declared(MapShown, WITHOUT_WINDOW), Declared(TOY.make, TOY.spec())],
    ids=["declared", "static fields found", "a game of our own"],
)
def test_static_rows_and_all_else_go_on_as_they_did(env):
    vecs = (Serial(), SharedMemory(workers=2, start=Start.fork))
    encoding = Encoding.choose(env.spec())
    first, second = (vec.build(env, 3, encoding, MemoryProfile()) for vec in vecs)
    first.reset(3)
    played(first, 50, 0)
    state = first.state()
    wanted = contents(first, 50, 1)
    second.load(state)
    assert contents(second, 50, 1) == wanted
    second.close()


def contents(vec_env, steps, seed):
    """All that random play shows, static rows as what they hold."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        step = vec_env.step(rng.integers(0, 2, vec_env.num_envs))
        seen += [step.reward.tobytes(), step.done.tobytes()]
        shown = decode(vec_env.encoding, step.rows, vec_env.tables)
        seen += [value.tobytes() for value in shown.values()]
    return seen


def test_what_cannot_be_copied_says_so():
    secret = Registered(id="Crowd-v0", kwargs={"secret": True})
    vec_env = secret.make_vec(1, Encoding.choose(secret.spec()), MemoryProfile(), None, "train")
    vec_env.reset(0)
    with pytest.raises(NotImplementedError, match=r"cannot be copied.*went on otherwise"):
        vec_env.state()


def test_an_environment_that_would_fill_the_checkpoint_is_not_copied():
    env = Declared(lambda: Explorer(extra=MOST_BYTES // 8))
    vec_env = Serial().build(env, 1, Encoding.choose(SPEC), MemoryProfile())
    vec_env.reset(0)
    with pytest.raises(NotImplementedError, match=r"cannot be copied.*arrays hold 4 MiB or more"):
        vec_env.state()


def test_another_number_of_environments_is_refused():
    vec_env = made("CartPole-v1", Serial())
    vec_env.reset(0)
    state = vec_env.state()
    state["environments"].pop()
    with pytest.raises(DataError, match="2 environments were saved, these are 3"):
        vec_env.load(state)


def test_only_classes_of_the_simulators_packages_are_made():
    for name in ("subprocess:Popen", "os:_Environ", "builtins:eval", "gymnasium:nothing"):
        nodes = [["list", [1]], ["object", name, []]]
        with pytest.raises(NotImplementedError, match="no class of the environment's packages"):
            Restore(nodes, Crowd()).put(0, [])


def test_a_dictionary_in_a_file_makes_dictionaries_only():
    def put(name):
        return Restore([["list", [1]], ["dict", name, []]], Crowd()).put(0, [])

    assert put("collections:OrderedDict") == [OrderedDict()]
    with pytest.raises(NotImplementedError, match="Env is no dictionary"):
        put("gymnasium.core:Env")


def test_what_two_objects_share_stays_shared():
    shared = np.arange(3.0)
    capture = Capture()
    capture.add([shared, shared, {"a": shared}])
    first, second, third = Restore(capture.nodes, Crowd()).put(0)
    assert first is second is third["a"]
