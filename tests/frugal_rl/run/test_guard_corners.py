"""Numbers that are none where they are easily overlooked: each is named, none is ever best."""

import io
from dataclasses import dataclass, replace

import numpy as np
import pytest
from rich.console import Console

from frugal_rl.errors import EncodingError, NumbersError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks
from frugal_rl.memory import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import Evaluation, Hardware, RunConfig
from frugal_rl.run.finite import not_finite
from frugal_rl.run.keeping import newest_sound
from frugal_rl.run.saves import Saves
from frugal_rl.run.trainer import train
from frugal_rl.testing import toy
from frugal_rl.testing.faults import Poison
from frugal_rl.testing.toy import Toy

NAN = float("nan")
ALGO = PpoConfig(num_envs=4, n_steps=8, batch_size=16, n_epochs=1, total_steps=32 * 6)


class Nowhere:
    def metrics(self, step, values):
        pass

    summary = file = lambda self, values: None


def toy_run(folder, env, **changes):
    run = RunConfig(
        env, MlpAgent(actor=(8,), critic=(8,)), ALGO, MemoryProfile(), None,
        evaluation=Evaluation(episodes=0), hardware=Hardware("cpu", 1), seed=3,
        run_dir=str(folder), resolved={"seed": 3}, checkpoint_every_steps=32,
    )  # fmt: skip
    return replace(run, **changes)


def stopped(run):
    with pytest.raises(NumbersError) as error:
        train(run, Nowhere(), console=Console(file=io.StringIO(), width=200))
    return str(error.value)


@dataclass(frozen=True)
class Changed(Toy):
    """A toy whose environments of one split are changed by `poison`, a function."""

    poison: object = None
    of: str = "train"

    def make_vec(self, num_envs, encoding, memory, vec, split):
        made = super().make_vec(num_envs, encoding, memory, vec, split)
        if split == self.of:
            self.poison(made)
        return made


def test_the_first_observation_of_all_is_looked_at(tmp_path):
    def poison(env):
        real = env.reset

        def reset(seed):
            rows = real(seed)
            rows["speed"][1, 1] = NAN
            return rows

        env.reset = reset

    words = stopped(toy_run(tmp_path, Changed(poison=poison)))
    assert "The observation 'speed' [1] of environment 1 is nan where its episode begins" in words
    assert "reset with seed 3" in words


def test_a_static_field_is_named_with_its_table(tmp_path, monkeypatch):
    real = toy.map_rows

    def rows(level):
        made = real(level)
        made["doors"] = np.full((2, 2), NAN, np.float32)
        return made

    monkeypatch.setattr(toy, "map_rows", rows)
    words = stopped(toy_run(tmp_path, Toy()))
    assert "The static field 'doors' of table 'map' holds nan at [0, 0]." in words


@pytest.mark.parametrize("where", ["reward", "speed"])
def test_an_evaluation_is_watched_and_none_is_never_the_best(where, tmp_path):
    def poison(env):
        Poison(where, 5, 0).into(env)

    tried = Evaluation(episodes=2, num_envs=1, every_steps=64)
    run = toy_run(tmp_path, Changed(poison=poison, of="eval"), evaluation=tried)
    words = stopped(run)
    assert "of environment 0 is nan in step 5 since evaluating began" in words
    assert "continue with resume=" in words
    assert newest_sound(tmp_path).content["best"] == -float("inf")
    assert not (tmp_path / "checkpoints" / "best.pt").exists()


def cut_at(step, rows, index):
    """As if a limit had ended an episode there, its last observation none."""
    step.final_index = np.array([index])
    step.final_rows = {name: np.array(row[[index]]) for name, row in rows.items()}
    step.final_rows["speed"][:] = NAN


def test_the_last_observation_of_an_episode_that_a_limit_ended_is_named(tmp_path):
    def poison(env):
        real, count = env.step, iter(range(10**6))

        def step(actions):
            given = real(actions)
            if next(count) == 43:  # between two looks
                cut_at(given, given.rows, 2)
            return given

        env.step = step

    words = stopped(toy_run(tmp_path, Changed(poison=poison)))
    assert "In step 43 a limit ended an episode of environment 2" in words
    assert not list(not_finite(newest_sound(tmp_path).content["learner"]))


PENDULUM = ("env=gymnasium", "env.id=Pendulum-v1", "tracking=disabled", "hardware.device=cpu",
            "hardware.threads=1", "evaluation.episodes=0", "algo.num_envs=2", "algo.n_steps=16",
            "algo.batch_size=16", "algo.n_epochs=1", "algo.total_steps=96",
            "checkpoint_every_steps=32", "agent.actor=[8]", "agent.critic=[8]")  # fmt: skip


def test_no_environment_is_given_an_action_that_is_none(tmp_path, monkeypatch):
    run = replace(compose_run(PENDULUM, check=False), run_dir=str(tmp_path))
    real, given = type(run.env).make_vec, []

    def make_vec(self, num_envs, *rest):
        env = real(self, num_envs, *rest)
        step = env.step
        env.step = lambda actions: (given.append(np.array(actions)), step(actions))[1]
        name = next(r.name for r in env.encoding.rows)
        return Poison(name, 36, 1).into(env)  # nobody looks again before step 48

    monkeypatch.setattr(type(run.env), "make_vec", make_vec)
    words = stopped(run)
    assert "of environment 1 is nan in step 36 since the run began" in words
    assert np.isfinite(given).all()
    assert len(given) == 37


def test_a_rank_that_saves_nothing_itself_names_what_the_first_one_saved(tmp_path):
    run = toy_run(tmp_path, Toy())
    second = Saves(run, None, Ranks(1, 2))
    assert "No checkpoint was saved yet" in second.hint()
    train(run, Nowhere(), console=Console(file=io.StringIO()))
    assert f"resume={tmp_path / 'checkpoints' / 'last.pt'}" in second.hint()


def far(env):
    """Numbers that float64 holds and float32 does not, in the eleventh step."""
    real, steps = env.step, iter(range(1000))

    def step(actions):
        given = real(actions)
        rows = {**given.rows, "speed": given.rows["speed"].astype(np.float64)}
        if next(steps) == 10:
            rows["speed"][2, 1] = -1e300
        return replace(given, rows=rows)

    env.step = step


def test_a_number_that_float32_does_not_hold_is_named_like_one_that_is_none(tmp_path):
    words = stopped(toy_run(tmp_path, Changed(poison=far), debug=True))
    assert "'speed' [1] of environment 2 is -1e+300, which is none in float32, in step 10" in words
    assert newest_sound(tmp_path).content["num_steps"] == 32


def test_a_field_that_cannot_be_stored_is_named_with_environment_and_step(tmp_path):
    def poison(env):
        real, calls = env.encoder.encode, iter(range(1000))

        def encode(raw, *lasting, **more):
            if next(calls) == 5:
                raw["speed"][1] = NAN
            return real(raw, *lasting, **more)

        env.encoder.encode = encode

    run = toy_run(tmp_path, Changed(poison=poison), memory=MemoryProfile(storage=Storage.half))
    with pytest.raises(EncodingError, match=r"Field '\w+' of environment 1: .*nan") as error:
        train(run, Nowhere(), console=Console(file=io.StringIO()))
    assert any(" of the environments since " in note for note in error.value.__notes__)
