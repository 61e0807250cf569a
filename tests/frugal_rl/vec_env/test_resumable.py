"""A stranger's environments go on from their state as if nothing had happened, or say why not."""

import enum
import random
from collections import OrderedDict, deque

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl.errors import DataError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.checkpoint_file import pieces_of, read_file, verify_file
from frugal_rl.vec_env.object_state import Capture, Restore
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


def test_what_cannot_be_copied_says_so():
    secret = Registered(id="Crowd-v0", kwargs={"secret": True})
    vec_env = secret.make_vec(1, Encoding.choose(secret.spec()), MemoryProfile(), None, "train")
    vec_env.reset(0)
    with pytest.raises(NotImplementedError, match=r"cannot be copied.*went on otherwise"):
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
            Restore(nodes, [Crowd()]).put(0, [])


def test_a_dictionary_in_a_file_makes_dictionaries_only():
    def put(name):
        return Restore([["list", [1]], ["dict", name, []]], [Crowd()]).put(0, [])

    assert put("collections:OrderedDict") == [OrderedDict()]
    with pytest.raises(NotImplementedError, match="Env is no dictionary"):
        put("gymnasium.core:Env")


def test_what_two_objects_share_stays_shared():
    shared = np.arange(3.0)
    capture = Capture()
    capture.add([shared, shared, {"a": shared}])
    first, second, third = Restore(capture.nodes, [Crowd()]).put(0)
    assert first is second is third["a"]
