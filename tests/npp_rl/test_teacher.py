"""Lessons: the searcher wins from where the learner got to, and only its own steps are learned."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from frugal_rl.errors import ConfigError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.compose import compose_run
from frugal_rl.run.shares import shard
from frugal_rl.run.trainer import no_meter
from frugal_rl.testing.ranks import together
from nclone.config import NppConfig
from nclone.levels.bundled import bundled_level
from nclone.search.proof import Prover
from nclone.sim.world import World
from nclone.spec import Observation
from npp_rl.teaching.config import Teacher
from npp_rl.teaching.demonstrations import record
from npp_rl.teaching.solutions import solutions
from npp_rl.teaching.teacher import Episode, joined, lessons

CONFIG = NppConfig(obs=Observation.state, levels=("walk", "switch_first"), start_frames=0)
ENCODING = Encoding.choose(CONFIG.spec(), Storage.lossless)
WORDS = [
    "env=nclone", "agent=mlp", "algo=dagger_ppo", "tracking=disabled", "hardware.threads=1",
    "env.obs=state", "algo.num_envs=2", "algo.n_steps=8", "algo.batch_size=16",
    "algo.n_epochs=1", "algo.total_steps=32", "algo.cloning.epochs=1", "algo.teacher.epochs=1",
    "algo.teacher.rounds=2", "algo.teacher.levels=2", "algo.cloning.validation=0",
]  # fmt: skip
LEFT = np.full(20, 1, np.uint8)


@pytest.fixture
def folder(tmp_path):
    for name, row in (("a", "..@..S.X"), ("b", ".X.@..S")):
        (tmp_path / f"{name}.txt").write_text(f"title: {name}\n........\n........\n{row}\n")
    return tmp_path


def test_the_search_goes_on_from_where_somebody_else_stopped():
    level = bundled_level("walk")
    proof = Prover().prove(level, after=LEFT)
    world = World([level], threads=1)
    world.step(LEFT[:, None], frames=4)
    world.step(proof.inputs.per_step()[:, None], frames=4)
    assert world.won[0]
    straight = Prover().prove(level).inputs
    world.reset()
    world.step(LEFT[:, None], frames=4)
    world.step(straight.per_step()[:, None], frames=4)
    assert not np.array_equal(straight.per_step(), proof.inputs.per_step())


def test_nothing_is_searched_after_the_end():
    inputs = Prover().prove(bundled_level("walk")).inputs
    proof = Prover().prove(bundled_level("walk"), after=inputs.per_step())
    assert proof.inputs is None
    assert proof.frames_spent == 0


def test_lessons_begin_with_the_learners_steps_and_win():
    lost = Episode(0, LEFT, won=False, died=False)
    won = Episode(1, LEFT, won=True, died=False)
    found = lessons(CONFIG, [lost, won], Teacher(budget_frames=20_000), seed=0)
    assert [lesson.level for lesson in found] == [0]
    np.testing.assert_array_equal(found[0].actions[: found[0].own], LEFT[: found[0].own])
    world = World([bundled_level("walk")], threads=1)
    world.step(found[0].actions[:, None], frames=4)
    assert world.won[0]


def test_only_the_teachers_steps_are_kept():
    found = lessons(CONFIG, [Episode(0, LEFT, False, False)], Teacher(), seed=3)
    lesson, which = found[0], np.array([0])
    assert lesson.own > 0
    whole = record(CONFIG, ENCODING, [lesson.actions], 0.99, None, which)
    late = record(CONFIG, ENCODING, [lesson.actions], 0.99, None, which, [lesson.own])
    assert 0 < len(late) <= len(lesson.actions) - lesson.own
    assert len(late) < len(whole)
    np.testing.assert_array_equal(late.actions, whole.actions[-len(late) :])
    np.testing.assert_array_equal(late.returns, whole.returns[-len(late) :])


def test_lessons_are_added_behind_the_solutions_and_the_oldest_go_first():
    config = replace(CONFIG, levels=("simplest",))
    first = record(config, ENCODING, solutions(config), 0.99, MemoryProfile())
    part = np.arange(30)
    rows = {name: row[part] for name, row in first.rows.items()}
    new = replace(first, rows=rows, actions=np.arange(30, dtype=np.uint8),
                  returns=first.returns[part], level=first.level[part])  # fmt: skip
    once = joined(first, new, 40, len(first))
    twice = joined(once, new, 40, len(first))
    assert len(once) == len(first) + 30
    assert len(twice) == len(first) + 40
    np.testing.assert_array_equal(twice.actions[len(first) :], [*range(20, 30), *range(30)])
    np.testing.assert_array_equal(twice.actions[: len(first)], first.actions)


def test_it_learns_tiny_levels_and_resumes_without_lessons(folder, tmp_path):
    run = compose_run([*WORDS, f"env.levels=[{folder}]"])
    env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, env)
    assert 1 <= len(learner.rounds) <= 2
    assert learner.rounds[0].episodes == 2
    metrics = learner.iterate(no_meter)
    assert metrics["teacher/samples"] == sum(r.samples for r in learner.rounds)
    resumed = replace(run, resume=str(tmp_path))
    again = run.algo.build(resumed, run.env.make_vec(2, run.encoding(), run.memory, None, "train"))
    assert again.rounds == ()
    again.load(learner.state())
    assert again.num_steps == learner.num_steps


def test_two_processes_are_taught_on_levels_of_their_own_and_learn_the_same(folder):
    run = compose_run([*WORDS, f"env.levels=[{folder}]"])
    asked = []

    def learn(ranks):
        own = replace(shard(run, ranks), ranks=ranks)
        env = own.env.make_vec(own.algo.num_envs, own.encoding(), own.memory, own.vec, "train")
        learner = own.algo.build(own, env)
        learner.join(ranks)
        learner.iterate(no_meter)
        asked.append(own.algo.num_envs)
        return learner.rounds, parameters_to_vector(learner.policy.parameters()).detach()

    (first, weights), (second, others) = together(2, learn)

    assert asked == [1, 1]
    assert first == second  # what came of the lessons is that of both
    assert first[0].episodes == 2
    assert torch.equal(weights, others)


def test_graphs_and_other_games_are_refused():
    run = compose_run([*WORDS, "env.obs=graph"])
    with pytest.raises(ConfigError, match=r"env\.obs=graph"):
        run.algo.build(run, None)
    other = compose_run(["env=toy", "algo=dagger_ppo"])
    with pytest.raises(ConfigError, match="env=nclone"):
        other.algo.build(other, None)
