"""An environment that says nothing of its size is weighed by difference, once, and planned."""

from dataclasses import fields, replace
from itertools import cycle
from statistics import median
from types import SimpleNamespace
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory import first_look, once, sizes
from frugal_rl.memory.part import Part
from frugal_rl.memory.weight import weight_name, workers_name
from frugal_rl.run import weigh_workers as weighing
from frugal_rl.run.compose import compose_run
from frugal_rl.run.weigh import MOST_ENVS, weigh
from frugal_rl.run.weigh_workers import weigh_workers
from frugal_rl.sb3.workers import Sb3
from frugal_rl.vec_env.episodes import Episodes

MIB = 1 << 20
HELD = 3 * MIB


class Heavy(gym.Env):
    """Holds three MiB, and 40 more that all of them share; ends at once, prints, wants a seed."""

    observation_space = spaces.Box(0, 1, (2,), np.float64)
    action_space = spaces.Discrete(2)
    shared: ClassVar[list[np.ndarray]] = []
    made = 0

    def __init__(self):
        Heavy.made += 1
        if not self.shared:
            self.shared.append(np.ones(40 * MIB, np.uint8))
        self.own = np.ones(HELD, np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        print("a new episode")
        return np.zeros(2), {}

    def step(self, action):
        return np.zeros(2), 0.0, True, False, {}


gym.register("Heavy-v0", Heavy)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    monkeypatch.setattr(once, "failed", set())
    return compose_run(["env=gymnasium", "env.id=Heavy-v0", "algo.num_envs=6"])


def planned(run):
    return {p.name: p.ram_bytes for p in sizes.environment_parts(run, run.encoding())}


def test_what_environments_share_is_not_weighed(run):
    Heavy.made = 0

    assert weigh(run) == pytest.approx(HELD, rel=0.05)
    assert 3 <= Heavy.made <= MOST_ENVS + 2


def test_what_was_weighed_once_is_planned_for_each_environment(run, monkeypatch):
    asked = []
    monkeypatch.setattr(once, "ask_child", lambda *words: asked.append(words) or {"bytes": HELD})
    before = planned(run)

    first_look.weigh_environment(run)
    first_look.weigh_environment(run)

    assert len(asked) == 1
    assert "environments" not in before
    assert planned(run)["environments"] == 6 * HELD
    assert planned(run)["evaluation: environments"] == run.evaluation.num_envs * HELD


def test_one_that_only_this_process_knows_is_planned_without_it(run, monkeypatch):
    monkeypatch.setattr(once, "ask_child", lambda *words: None)

    first_look.weigh_environment(run)

    assert "environments" not in planned(run)


def test_one_that_cannot_be_weighed_is_planned_without_it_and_asked_once(run, monkeypatch, capsys):
    asked = []

    def fails(*question):
        asked.append(question)
        raise ConfigError("Weighing the environment ends without an answer.")

    monkeypatch.setattr(once, "ask_child", fails)
    first_look.weigh_environment(run)
    first_look.weigh_environment(run)

    assert len(asked) == 1
    assert "without an answer. The plan goes without it." in capsys.readouterr().err
    assert "environments" not in planned(run)


def test_one_that_refuses_an_action_is_weighed_all_the_same(run, monkeypatch):
    monkeypatch.setattr(Heavy, "step", lambda self, action: 1 / 0)

    assert weigh(run) == pytest.approx(HELD, rel=0.05)


@pytest.fixture
def workers(run):
    words = ["env=gymnasium", "env.id=Heavy-v0", "algo.num_envs=6", "vec=sb3", "vec.start=fork"]
    return compose_run(words)


def test_workers_that_were_weighed_once_are_planned_for_each_environment(workers, monkeypatch):
    asked, found = [], {"each": 50 * MIB, "once": 7 * MIB}
    monkeypatch.setattr(once, "ask_child", lambda *words: asked.append(words) or found)
    before = planned(workers)

    first_look.weigh_workers(workers)
    first_look.weigh_workers(workers)

    assert len(asked) == 1
    assert before["worker processes"] != planned(workers)["worker processes"]
    assert planned(workers)["worker processes"] == (6 * 50 + 7) * MIB
    assert planned(workers)["evaluation: workers"] == workers.evaluation.num_envs * 50 * MIB


def test_workers_whose_size_is_a_constant_are_not_weighed(run, monkeypatch):
    monkeypatch.setattr(once, "ask_child", lambda *words: pytest.fail("it was asked"))

    first_look.weigh_workers(run)


def test_what_an_environment_holds_in_its_worker_is_weighed_with_it(workers, monkeypatch):
    small = of_three(workers)
    monkeypatch.setitem(globals(), "HELD", HELD + 20 * MIB)
    large = of_three(workers)

    assert large["each"] - small["each"] == pytest.approx(20 * MIB, rel=0.1)
    assert large["once"] - small["once"] == pytest.approx(0, abs=3 * MIB)


def of_three(run):
    """Medians: a fork of the whole test process is measured with 2 MiB of noise now and then."""
    found = [weigh_workers(run) for _ in range(3)]
    return {name: median(f[name] for f in found) for name in ("each", "once")}


def test_what_the_plan_counts_of_environments_is_not_counted_in_workers_again(workers, monkeypatch):
    held = cycle(MIB * x for x in (100, 180, 240, 167))  # bare, two workers, four, the last two
    monkeypatch.setattr(weighing, "held_now", lambda: next(held))
    monkeypatch.setattr(weighing, "_started", lambda run: SimpleNamespace(close=lambda: None))
    alone = weigh_workers(workers)
    remembered.write(weight_name(workers.env), {"bytes": 2 * HELD})
    beside = weigh_workers(workers)

    assert alone == pytest.approx({"each": 30 * MIB, "once": 7 * MIB}, abs=1000)  # its rows count
    assert alone["each"] - beside["each"] == 2 * HELD
    assert alone["once"] == beside["once"]


def test_workers_inside_another_backend_are_planned_as_they_were_weighed(workers):
    episodes = replace(workers, vec=Episodes(inner=workers.vec))
    remembered.write(workers_name(episodes), {"each": 50 * MIB, "once": 7 * MIB})

    assert planned(episodes)["worker processes"] == (6 * 50 + 7) * MIB


def test_workers_are_planned_for_evaluations_that_they_play_only():
    words = ["env=nclone", "vec=sb3", "algo.num_envs=6"]

    found = planned(compose_run(words))

    assert found["worker processes"] > 0
    assert "evaluation: workers" not in found


def test_workers_that_nobody_weighed_hold_each_what_an_environment_shares_elsewhere(workers):
    class Sharing(type(workers.env)):
        def parts(self, num_envs, encoding, memory, vec):
            return [Part("mines", "opened", 90 * MIB, shared=True), Part("pits", "own", 7 * MIB)]

    sharing = Sharing(**{f.name: getattr(workers.env, f.name) for f in fields(workers.env)})
    run = replace(workers, env=sharing, vec=Sb3())
    name = "worker processes"
    before = planned(replace(run, env=workers.env))[name]

    assert planned(run)[name] == before + 6 * 90 * MIB
    assert planned(replace(run, vec=workers.vec))[name] == planned(workers)[name]  # forked
