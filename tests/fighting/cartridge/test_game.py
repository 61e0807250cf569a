"""Any cartridge by one YAML: what rises can be paid, and every backend plays the same game."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from stable_baselines3.common.utils import set_random_seed

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.env import GameBoyEnv
from fighting.cartridge.game import CartridgeGame
from fighting.cartridge.start_states import read_state, write_state
from fighting.choices import Actions, Weights
from fighting.machine.emulator import StateError
from fighting.rom import DUEL, ROM_PATH
from fighting.spec import View
from fighting.tools import tried_out as trying
from fighting.tools.play import play
from fighting.tools.tried_out import Trial, judged, trial, tried_out
from frugal_rl.errors import ConfigError
from frugal_rl.memory.finding import Severity
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.compose import compose_run
from frugal_rl.run.play import PlayOptions
from frugal_rl.run.trainer import train
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.threads import Threads

RISING = {
    "schema": 1,
    "id": "rising",
    "title": "Duel as a game of points",
    "system": "dmg",
    "roms": [{"sha1": DUEL.hash.read_text().split()[0], "name": "Duel 2.0", "bundled": True}],
    "memory": {
        "points": {"addr": 0xC11C, "status": "verified", "source": "hits landed"},
        "own": {"addr": 0xC100, "status": "verified", "source": "own health"},
        "phase": {"addr": 0xC022, "status": "verified", "source": "phase"},
        "x": {"addr": 0xC102, "size": 2, "big": True, "status": "verified", "source": "place"},
    },
    "reward": {"points": "rise(points)", "hurt": "-fall(own) / 112"},
    "end": "phase != 2",
    "success": "points >= 3",
    "score": "points - start(points)",
    "time_limit": 10,
    "features": {"x": "x / 256 / 160", "hurt": "fall(own)", "best": "best(points)"},
    "start": [
        {"press": "start", "until": "phase == 2", "every": 20, "timeout": 600},
        {"save": "fight"},
    ],
    "actions": {
        "combos": [[], ["right"], ["right", "a"], ["b"]],
        "macros": {"rise": [["right"], 3, ["down"], 3, ["right", "b"], 2]},
    },
}


@pytest.fixture
def profile(tmp_path):
    def written(**changes):
        path = tmp_path / "rising.yaml"
        path.write_text(yaml.safe_dump({**RISING, **changes}))
        return str(path)

    return written


def batch(config, count, storage=Storage.lossless):
    encoding = Encoding.choose(config.spec(), storage, config.fields)
    return config.make_vec(count, encoding, MemoryProfile(), None, "train")


class Kept:
    """A log that keeps the last number of each name."""

    def __init__(self):
        self.numbers = {}

    def metrics(self, step, values):
        self.numbers |= values

    def summary(self, values):
        pass

    def file(self, path):
        pass


def walk(env, steps, action=2):
    return [env.step(np.full(env.num_envs, action)) for _ in range(steps)]


def test_a_score_that_rises_is_paid_and_told_by_parts(profile):
    env = batch(GameBoyConfig(profile=profile(), obs=View.ram, max_pool=False), 2)
    env.reset(0)
    paid, ended = np.zeros(2), []
    for _ in range(160):
        step = env.step(np.full(2, 2))
        paid += step.reward
        if step.ended is not None:
            ended += [
                {name: values[i] for name, values in step.ended.stats.items()}
                for i in range(len(step.ended.index))
            ]
    env.close()
    assert ended
    for stats in ended:
        assert stats["return"] == pytest.approx(stats["paid_points"] + stats["paid_hurt"], abs=1e-5)
        assert stats["paid_points"] == stats["score"] > 0
        assert stats["success"] == (stats["score"] >= 3)
        assert stats["length"] <= 149  # 10 s of four frames a step


def test_an_episode_is_cut_by_the_time_limit_and_ends_by_its_expression(profile):
    idle = GameBoyConfig(profile=profile(end=None, time_limit=1), obs=View.ram)
    env = batch(idle, 1)
    env.reset(0)
    told = [(bool(s.done[0]), bool(s.truncated[0])) for s in walk(env, 15, 0)]
    env.close()
    assert told == [(False, False)] * 14 + [(True, True)]
    ends = GameBoyConfig(profile=profile(end="steps >= 3"), obs=View.ram)
    env = batch(ends, 1)
    env.reset(0)
    told = [(bool(s.done[0]), bool(s.truncated[0])) for s in walk(env, 3, 0)]
    env.close()
    assert told == [(False, False)] * 2 + [(True, False)]


@pytest.mark.parametrize("obs", ["ram", "gray", "half_size", "rgb", "both"])
def test_single_environments_and_the_batch_play_the_same(profile, obs):
    config = GameBoyConfig(
        profile=profile(time_limit=1), obs=View(obs), stack=2, actions=Actions.macros, sticky=0.2
    )
    encoding = Encoding.choose(config.spec(), Storage.lossless, {})

    def made(vec):
        return lambda: config.make_vec(2, encoding, MemoryProfile(), vec, "train")

    check_vec_env(made(None), made(Serial()), steps=30)
    if obs == "ram":
        check_vec_env(made(Threads(1)), made(Serial()), steps=20)


def test_training_from_frames_that_are_found_equals_training_from_dense_ones_to_the_bit(profile):
    words = ["env=fighting_game_boy", f"env.profile={profile()}", "env.obs=gray", "env.threads=1"]
    words += ["env.stack=2", "algo.num_envs=2", "algo.n_steps=24", "algo.batch_size=16"]
    words += ["algo.n_epochs=1", "hardware.device=cpu", "hardware.threads=1"]
    weights, held = [], []
    for form in ("found", "dense"):
        run = compose_run([*words, "agent.image_features=16", f"env.fields.frame={form}"])
        set_random_seed(0)
        env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
        learner = run.algo.build(run, env)
        learner.iterate(lambda phase: nullcontext())
        env.close()
        weights.append({name: w.clone() for name, w in learner.policy.state_dict().items()})
        held.append(learner.rollout.nbytes)
    assert all(torch.equal(w, weights[1][name]) for name, w in weights[0].items())
    assert held[0] * 3 < held[1]
    assert compose_run(words).encoding().choice["frame"] == "found"  # by default


def test_a_game_continues_exactly_from_its_state(profile):
    config = GameBoyConfig(profile=profile(), obs=View.both, stack=1)
    env = batch(config, 2)
    env.reset(3)
    walk(env, 20)
    kept = env.state()
    after = [(s.reward.copy(), {n: r.copy() for n, r in s.rows.items()}) for s in walk(env, 10)]
    env.close()
    again = batch(config, 2)
    again.reset(9)
    again.load(kept)
    for (reward, rows), step in zip(after, walk(again, 10), strict=True):
        np.testing.assert_array_equal(reward, step.reward)
        for name, row in rows.items():
            np.testing.assert_array_equal(row, step.rows[name])
    again.close()


def test_a_game_that_nobody_watches_is_not_drawn(profile):
    watched = GameBoyEnv(GameBoyConfig(profile=profile(), obs=View.ram))
    assert not watched.game.emulators.drawn
    watched.reset(seed=0)
    assert watched.render().std() > 0
    watched.close()
    seen = profile(reward="pixel(80, 100) / 255")
    env = GameBoyEnv(GameBoyConfig(profile=seen, obs=View.ram, max_pool=False), seed=0)
    reward = env.step(0)[1]
    assert reward == pytest.approx(env.render()[100, 80, 0] / 255)
    env.close()


def test_switches_that_a_profile_overrules_are_refused(profile):
    with pytest.raises(ConfigError, match=r"env.reward has no effect: rising.yaml, line \d+"):
        batch(GameBoyConfig(profile=profile(), obs=View.ram, reward=Weights(time=0.1)), 1)
    with pytest.raises(ConfigError, match=r"env.obs=ram shows the profile's features"):
        GameBoyConfig(profile=profile(features={}), obs=View.ram).spec()


def test_a_saved_state_belongs_to_its_cartridge(profile, booted, tmp_path):
    rom = ROM_PATH.read_bytes()
    write_state(tmp_path / "fight.state", booted, rom)
    start = [{"state": "fight.state"}]
    GameBoyEnv(GameBoyConfig(profile=profile(start=start), obs=View.ram), seed=0).close()
    with pytest.raises(StateError, match=f"belongs to the cartridge {DUEL.hash.read_text()[:40]}"):
        read_state(tmp_path / "fight.state", rom[:-1] + b"\xff", "here")
    path = tmp_path / "fight.state"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(
        StateError, match=r"line \d+: start\[0\]: .* is not complete. Save the state"
    ):
        GameBoyEnv(GameBoyConfig(profile=profile(start=start), obs=View.ram))


def test_a_profile_is_trained_from_its_memory(profile, tmp_path):
    run = compose_run(
        [
            "env=fighting_game_boy",
            f"env.profile={profile()}",
            "env.obs=ram",
            "algo.num_envs=4",
            "algo.n_steps=16",
            "algo.batch_size=32",
            "algo.total_steps=128",
            "tracking=disabled",
            "evaluation.episodes=2",
            "evaluation.num_envs=2",
        ]
    )
    log = Kept()
    train(replace(run, run_dir=str(tmp_path / "run")), log)
    assert log.numbers["eval/episodes"] == 2
    assert "eval/paid_points" in log.numbers
    film = tmp_path / "game.gif"
    asked = compose_run(["env=fighting_game_boy", "tracking=disabled"])
    options = PlayOptions(checkpoint=str(tmp_path / "run"), video=str(film))
    (line,) = play(asked, options)
    assert line.startswith(f"Film: {film}")
    with Image.open(film) as gif:
        assert gif.n_frames > 1


def warned(config):
    found = judged(config, trial(config, 200))
    return [finding.id for finding in found if finding.severity is not Severity.ok]


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({}, []),
        ({"reward": "own > 200"}, ["F41"]),
        ({"end": "own > 200", "time_limit": None}, ["F42"]),
        ({"reward": "own / 112"}, ["F43"]),
        ({"features": {"none": "own > 200"}}, ["F44"]),
    ],
)
def test_random_play_says_what_a_profile_lacks(profile, changes, ids):
    config = GameBoyConfig(profile=profile(**changes), obs=View.ram)
    assert warned(config) == ids


def test_random_play_is_remembered_until_something_about_it_changes(profile, monkeypatch, tmp_path):
    monkeypatch.setattr("frugal_rl.remembered.folder", lambda: tmp_path / "kept")
    played = []
    met = Trial(rewarded=0.0, paid=0.0, ended=3, cut=1, changes=True)
    monkeypatch.setattr(trying, "trial", lambda config: played.append(config) or met)
    config = GameBoyConfig(profile=profile(), obs=View.ram)
    first, again = tried_out(config), tried_out(replace(config, threads=2, cache="states"))

    assert (len(played), first) == (1, again)
    assert [f.id for f in again if f.severity is not Severity.ok] == ["F41"]
    tried_out(replace(config, frame_skip=8))
    tried_out(replace(config, profile=profile(reward="own > 200")))
    assert len(played) == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"end": None, "time_limit": None}, "rising.yaml, line 1: .*no end: .* Add end:"),
        ({"reward": None}, "no reward: add reward:"),
        ({"memory": {"own": {"addr": 0x1000}}}, r"line \d+: memory.own.addr: address 0x1000 lies"),
        ({"reward": "rise(nothing)"}, r"line \d+, column 14: reward: no value 'nothing'"),
        ({"actions": {"combos": [["kick"]]}}, r"line \d+: actions.combos\[0\]: no button 'kick'"),
        (
            {"actions": {"combos": [[]], "macros": {"m": [["x"], 2]}}},
            r"macros.m\[0\]: no button 'x'",
        ),
        (
            {"start": [{"until": "own == 200", "timeout": 9}]},
            r"start\[0\]: `own == 200` did not happen",
        ),
        ({"roms": [{"sha1": "0" * 40}]}, "needs your own cartridge image: env.rom="),
        ({"colour": 1}, r"line \d+: colour: unknown key colour; there are"),
    ],
)
def test_nine_kinds_of_bad_profile_are_one_line_each_with_a_remedy(profile, changes, words):
    with pytest.raises(ConfigError, match=words) as caught:
        CartridgeGame(GameBoyConfig(profile=profile(**changes), obs=View.ram), 1)
    assert "\n" not in str(caught.value)
