"""Environments of strangers that misbehave: named with seed, step and action, or replaced."""

import io
import os
import re
import sys
import time
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from rich.console import Console

from frugal_rl.errors import ConfigError, EncodingError, FrugalError, WorkerError
from frugal_rl.run.building import find_class
from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import train
from frugal_rl.vec_env.ending import close_all
from frugal_rl.vec_env.leaves import actions_from_zero
from frugal_rl.vec_env.registered import Registered

AT = 37


class Odd(gym.Env):
    """Counts its steps; in step 37 of its life, or 40, it does what `mode` says."""

    observation_space = spaces.Box(-1e9, 1e9, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, mode="fine"):
        self.mode, self.kept, self.life = mode, np.zeros(3, np.float32), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        if self.mode == "reset" and self.life > AT:
            raise KeyError("no level is left")
        if self.mode in ("alone", "alone at first") and (self.life > AT or "first" in self.mode):
            return self.look()
        return self.look(), {}

    def look(self):
        if self.mode != "in place":
            return np.full(3, self.count, np.float32)
        self.kept[:] = self.count
        return self.kept

    def step(self, action):
        self.count, self.life = self.count + 1, self.life + 1
        given = [self.look(), 1.0, self.count >= 10, False, {}]
        if self.life == (40 if self.mode in AT_THE_END else AT):
            given = WHAT.get(self.mode, lambda g: g)(given)
        return tuple(given)

    def close(self):
        if self.mode == "close":
            raise OSError("no such\x1b[31m window")


def raising(given):
    raise ZeroDivisionError("a fault of the environment")


def put(place, value):
    return lambda given: [*given[:place], value, *given[place + 1 :]]


WHAT = {
    "raises": raising,
    "quits": lambda given: sys.exit(),
    "hangs": lambda given: time.sleep(600),
    "exits": lambda given: os._exit(3),
    "nan": put(0, np.full(3, np.nan, np.float32)),
    "infinite reward": put(1, np.inf),
    "shape": put(0, np.zeros(4, np.float32)),
    "nothing": put(0, None),
    "words": put(0, np.array(["a", "b", "c"])),
    "ragged": put(0, [[1.0], [2.0, 3.0], 4.0]),
    "a word": put(3, "no"),
    "two ends": put(2, np.array([True, False])),
    "no end": put(3, None),
    "an end in an array": put(3, np.array([0])),
    "four values": lambda given: given[:4],
    "no reward": put(1, None),
    "two rewards": put(1, np.array([1.0, -2.5])),
    "reward in an array": put(1, np.array([1.0])),
    "no info": put(4, None),
    "odd statistics": put(4, {"stats": {"a": "text", "b": 2.0}, "success": "yes"}),
    "statistics that are none": put(4, {"stats": 3, "is_success": None}),
}
AT_THE_END = ("no info", "odd statistics", "statistics that are none")
"""What is looked at only when an episode ends, as they do after 10 steps."""
gym.register("Odd-v0", Odd)
SMALL = ("env=gymnasium", "env.id=Odd-v0", "tracking=disabled", "hardware.device=cpu",
         "hardware.threads=1", "evaluation.episodes=0", "algo.num_envs=2", "algo.n_steps=16",
         "algo.batch_size=16", "algo.n_epochs=1", "algo.total_steps=128", "agent.actor=[4]",
         "agent.critic=[4]", "checkpoint_every_steps=32")  # fmt: skip
WORKERS = ("vec=shared_memory", "vec.workers=2", "vec.start=fork")


class Seen:
    def __init__(self):
        self.lines = []

    def metrics(self, step, values):
        self.lines.append(values)

    summary = file = lambda self, values: None


def trained(mode, folder, *words):
    run = compose_run([*SMALL, f"+env.kwargs={{mode:{mode!r}}}", *words], check=False)
    seen = Seen()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(replace(run, run_dir=str(folder)), seen, console=Console(file=io.StringIO()))
    return seen.lines


def told(error):
    return " ".join([str(error), *getattr(error, "__notes__", [])])


WHERE = r"Environment \d, begun with seed \d+, step 6 of its episode, action \d"
REFUSED = {
    "raises": rf"a fault of the environment.*{WHERE}",
    "quits": rf"ended the program by sys.exit\(None\) while it was played.*{WHERE}",
    "shape": rf"declared as \(3,\) float32, but the environment gave \(4,\).*{WHERE}",
    "nothing": rf"but the environment gave.*{WHERE}",
    "words": rf"but the environment gave.*{WHERE}",
    "ragged": rf"but what the environment gave is no array.*{WHERE}",
    "a word": rf"gave 'no' as 'truncated', which is neither true nor false.*{WHERE}",
    "two ends": rf"gave \[True, False\] as 'terminated', which is neither.*{WHERE}",
    "alone": r"reset gave a ndarray, which is not.*an info.*Environment \d.*reset after \d+ step",
    "four values": rf"not enough values to unpack.*{WHERE}",
    "no reward": rf"gave None as its reward; one number.*{WHERE}",
    "two rewards": rf"gave \[1\.0, -2\.5\] as its reward; one number.*env\.wrappers.*{WHERE}",
    "reset": r"no level is left.*Environment \d, begun with seed \d+, in its reset after \d+ step",
    "nan": r"observation 'observation' \[0\] of environment \d is nan in step 36",
    "infinite reward": r"reward of environment \d is inf in step 36",
}


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        *((mode, ()) for mode in REFUSED),
        *((mode, WORKERS) for mode in ("raises", "quits", "shape", "reset")),
    ],
)
def test_an_environment_that_misbehaves_is_named_with_seed_step_and_action(mode, words, tmp_path):
    more = ("debug=true",) if mode == "nan" else ()
    with pytest.raises(Exception) as raised:
        trained(mode, tmp_path, *words, *more)
    said = told(raised.value)
    assert re.search(REFUSED[mode], said, re.DOTALL), said
    assert "resume=" in said
    assert not words or isinstance(raised.value, FrugalError)


@pytest.mark.parametrize("words", [(), WORKERS], ids=["serial", "workers"])
@pytest.mark.parametrize(
    "mode",
    [
        "reward in an array",
        "no info",
        "odd statistics",
        "statistics that are none",
        "no end",
        "an end in an array",
    ],
)
def test_what_can_be_understood_is(mode, words, tmp_path):
    assert len(trained(mode, tmp_path, *words)) == 4


@pytest.mark.parametrize("words", [(), WORKERS], ids=["serial", "workers"])
def test_one_that_cannot_be_closed_ends_no_run(words, tmp_path):
    assert len(trained("close", tmp_path, *words)) == 4
    with pytest.warns(UserWarning, match=r"not closed .*OSError: 'no such\\x1b\[31m window'"):
        close_all([Odd("close"), Odd()])


class QuitsWhenMade(Odd):
    def __init__(self):
        sys.exit(7)


def test_one_that_quits_as_it_is_made_or_begins_is_told():
    gym.register("Quits-v0", QuitsWhenMade)
    with pytest.raises(WorkerError, match=r"sys\.exit\(7\) while env\.id=Quits-v0 was made"):
        Registered(id="Quits-v0").spec()


def test_a_module_that_quits_as_it_is_imported_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a_script_of_a_test.py").write_text("import sys; sys.exit()")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"'a_script_of_a_test'.* ends the program by sys\.exit"):
        Registered(id="CartPole-v1", modules=("a_script_of_a_test",))
    with pytest.raises(ConfigError, match=r"importing a_script_of_a_test ends the program"):
        find_class("a_script_of_a_test.Env", "env", ["a_script_of_a_test"])
    with pytest.raises(ConfigError, match=r"wrappers names 'a_script_of_a_test.W', which cannot"):
        Registered(id="CartPole-v1", wrappers=({"wrapper": "a_script_of_a_test.W"},)).spec()


def test_one_that_begins_oddly_is_named_with_its_seed(tmp_path):
    with pytest.raises(EncodingError, match="reset gave a ndarray") as raised:
        trained("alone at first", tmp_path)
    assert "In the very first reset, with seed 0." in told(raised.value)


@pytest.mark.parametrize(
    "space",
    [spaces.Dict(a=spaces.Discrete(2)), spaces.Text(3), spaces.Box(-1, 1, (0,)),
     spaces.MultiDiscrete([[2, 3], [4, 5]]), spaces.MultiBinary([2, 2])],
)  # fmt: skip
def test_actions_that_nobody_chooses_are_refused_with_the_remedy(space):
    with pytest.raises(
        ConfigError, match=r"which no algorithm chooses: put .* env\.wrappers"
    ) as no:
        actions_from_zero(space)
    assert str(no.value).isprintable()


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Box(-np.inf, np.inf, (2,)), "scales its actions to their bounds"),
        (
            spaces.Box(np.zeros(2, np.float32), np.array([1, np.inf], np.float32)),
            "scales its actions to their bounds",
        ),
        (spaces.Box(0, 5, (2,), np.int32), "takes whole numbers"),
    ],
)
@pytest.mark.parametrize("algo", ["sac", "td3"])
def test_vectors_that_cannot_be_scaled_to_are_refused(space, words, algo):
    run = compose_run(["env=gymnasium", "env.id=Pendulum-v1", f"algo={algo}"], check=False)
    run.algo.check(run.env.action_space())
    with pytest.raises(ConfigError, match=words):
        run.algo.check(space)


@pytest.mark.parametrize("mode", ["hangs", "exits"])
def test_one_that_hangs_or_ends_its_process_is_replaced(mode, tmp_path):
    lines = trained(mode, tmp_path, *WORKERS, "vec.timeout=1")
    assert lines[-1]["vec/restarts"] == 2


def test_one_that_changes_its_observation_in_place_gives_what_others_give(tmp_path):
    ours, theirs = (trained(mode, tmp_path / mode) for mode in ("in place", "fine"))
    timed = {k for k in ours[0] if k.startswith("time/")}
    assert [{k: v for k, v in line.items() if k not in timed} for line in ours] == [
        {k: v for k, v in line.items() if k not in timed} for line in theirs
    ]
