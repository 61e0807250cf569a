"""Priorities are learned: by evolution and by gradient, alone and under the trainer."""

import copy
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from frugal_rl.errors import ConfigError
from frugal_rl.memory.base import Base
from frugal_rl.memory.checks import check_run
from frugal_rl.memory.part import Confidence, Phase
from frugal_rl.memory.plan import draw_up, own_parts
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.run.compose import compose_run
from frugal_rl.run.preflight import check_chosen
from frugal_rl.run.session import evaluate_saved, train_planned
from frugal_rl.run.shares import shard
from frugal_rl.run.trainer import no_meter
from frugal_rl.testing.ranks import together
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise.decode import Decoder
from mine_rl_npv.priority.evolution import CovarianceAdaptation, EvolutionConfig
from mine_rl_npv.priority.features import CLIP, feature_names
from mine_rl_npv.priority.gradient import GradientConfig, PriorityGradient
from mine_rl_npv.priority.policy import PriorityNet
from mine_rl_npv.priority.search import Evolution, evolve
from mine_rl_npv.priority.task import PriorityTask, open_mine


@pytest.fixture(scope="module")
def mine():
    return open_mine(varied_instance(2, 7, 9), lp_features=False)


def test_covariance_adaptation_finds_the_top_of_a_narrow_ridge():
    scales = np.array([1.0, 10.0, 100.0, 3.0])
    search = CovarianceAdaptation(np.ones(4), EvolutionConfig(12, 0.5), seed=0)
    for _ in range(200):
        candidates = search.ask()
        search.tell(candidates, -((candidates * scales) ** 2).sum(axis=1))
    assert np.abs(search.mean).max() < 1e-3


def test_candidates_come_in_mirrored_pairs_and_a_saved_search_goes_on():
    search = CovarianceAdaptation(np.zeros(3), EvolutionConfig(6, 0.5), seed=1)
    candidates = search.ask()
    assert_allclose(candidates[::2] + candidates[1::2], 0, atol=1e-12)
    search.tell(candidates, candidates[:, 0])
    other = CovarianceAdaptation(np.zeros(3), EvolutionConfig(6, 0.5), seed=9)
    other.load(search.state())
    assert_array_equal(search.ask(), other.ask())


def test_features_are_comparable_between_mines(mine):
    assert mine.features.shape[1] == len(feature_names(False))
    assert np.abs(mine.features).max() <= CLIP
    with_lp = open_mine(varied_instance(2, 7, 9), lp_features=True)
    assert with_lp.features.shape[1] == len(feature_names(True))
    assert_array_equal(with_lp.features[:, : mine.features.shape[1]], mine.features)


def test_evolution_improves_a_schedule(mine):
    task = PriorityTask([mine], Decoder.two_pass, 1)
    net = PriorityNet(mine.features.shape[1], 3)
    run = Evolution(task, net, net.start(feature_names(False)), EvolutionConfig(12, 0.3), seed=0)
    start = mine.worth(mine.decode(net.scores(run.start, mine.features), Decoder.two_pass))
    for _ in range(25):
        run.generation()
    assert run.best_value > start
    again = mine.worth(mine.decode(net.scores(run.best, mine.features), Decoder.two_pass))
    assert again == run.best_value


def test_a_search_without_time_keeps_what_it_started_from(mine):
    task = PriorityTask([mine], Decoder.two_pass, 1)
    learned = evolve([mine], task, 0.0, seed=0)
    start = learned.net.start(feature_names(False))
    assert_array_equal(learned.weights, start)
    plan = mine.decode(learned.net.scores(start, mine.features), Decoder.two_pass)
    assert learned.value == mine.worth(plan)
    assert learned.decodes == 1


def test_the_gradient_improves_a_schedule(mine):
    task = PriorityTask([mine], Decoder.two_pass, 1)
    ascent = PriorityGradient([mine], task, 0, GradientConfig(pairs=8))
    start = ascent.noiseless()
    best = max([start] + [ascent.update()["mean"] * 0 + ascent.noiseless() for _ in range(30)])
    assert best > start


@pytest.mark.parametrize("algo", ["evolution", "schedule_gradient"])
def test_learners_run_under_the_trainer_and_resume_exactly(algo):
    run = compose_run(
        [
            "env=mine_cpit",
            "agent=priority",
            f"algo={algo}",
            "env.data=porphyry_tiny",
            "algo.threads=1",
        ]
    )

    def learner():
        vec_env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
        return run.algo.build(run, vec_env)

    one, other = learner(), learner()
    first = one.iterate(no_meter)
    assert one.num_steps > 0
    assert all(np.isfinite(list(first.values())))
    assert all(size > 0 for size in one.parts().values())
    one.rng.random()
    other.load(one.state())
    assert one.rng.bit_generator.state == other.rng.bit_generator.state
    assert one.iterate(no_meter) == other.iterate(no_meter)
    assert one.num_steps == other.num_steps


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("env=mine_cpit agent=priority", "agent=priority is learned on whole schedules"),
        ("env=mine_cpit agent=priority algo=dqn", "agent=priority is learned on whole schedules"),
        ("env=mine_cpit agent=mlp algo=evolution", "learned by agent=priority"),
        ("env=mine agent=priority algo=evolution", "env=mine_cpit env.actions=column"),
        ("env=toy algo=schedule_gradient", "env=mine_cpit env.actions=column"),
    ],
)
def test_agents_and_learners_that_do_not_belong_together_are_refused_at_once(words, said):
    with pytest.raises(ConfigError, match=said):
        check_chosen(compose_run(words.split()))
    check_chosen(compose_run(["env=mine_cpit", "agent=priority", "algo=evolution"]))


@pytest.mark.parametrize(("algo", "size"), [("evolution", 3), ("schedule_gradient", 2)])
def test_ranks_learn_to_the_bit_what_one_does(algo, size):
    words = ["env=mine_cpit", "agent=priority", f"algo={algo}", "env.data=porphyry_tiny"]
    run = compose_run([*words, "algo.threads=1", "seed=4"])
    worlds = [run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train") for _ in range(4)]
    alone = run.algo.build(run, worlds.pop())
    start = copy.deepcopy(alone.state())
    decoded = Counter()

    def learn(ranks):
        own = replace(shard(run, ranks), ranks=ranks)
        learner = own.algo.build(own, worlds[ranks.rank])
        assert learner.seed == run.seed
        learner.load(start)  # threads share torch's random numbers, processes do not
        learner.task.pool = Counting(learner.task.pool, decoded, ranks.rank)
        return [learner.iterate(no_meter) for _ in range(3)], learner.state()

    expected = [alone.iterate(no_meter) for _ in range(3)]
    results = together(size, learn)

    assert results[0][0] == expected
    for _, state in results:
        weights = state["policy"]
        assert all(torch.equal(weights[name], w) for name, w in alone.state()["policy"].items())
        assert state["num_steps"] == alone.num_steps
    assert len(set(decoded.values())) == 1  # each its part
    assert len(decoded) == size


class Counting:
    """A pool that counts what a rank decodes."""

    def __init__(self, pool, counts, rank):
        self.pool, self.counts, self.rank = pool, counts, rank

    def map(self, work, items):
        self.counts[self.rank] += len(items)
        return self.pool.map(work, items)


@pytest.fixture(
    scope="module",
    params=["evolution", pytest.param("schedule_gradient", marks=pytest.mark.slow)],
)
def schooled(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    words = (
        "env=mine_cpit",
        "agent=priority",
        f"algo={request.param}",
        "env.data=porphyry_tiny",
        "algo.threads=1",
        "tracking=disabled",
        "algo.total_steps=60000",
        "evaluation.episodes=2",
        "evaluation.every_steps=30000",
        "checkpoint_every_steps=20000",
        "visualization=true",
    )
    run = replace(compose_run(words), run_dir=str(folder))
    train_planned(run, draw_up(run))
    return folder, words


def test_a_schedule_learner_is_planned_by_arithmetic_without_a_probe(schooled):
    folder, words = schooled
    run = compose_run(words)
    planned = {p.name: p.ram_bytes for p in run.algo.learner_parts(run)}
    held = json.loads((folder / "summary.json").read_text())["parts"]
    assert {name: size for name, size in held.items() if name in planned} == {
        name: size for name, size in planned.items() if name != "decoding"
    }

    def never(run):
        raise AssertionError("probed")

    assert own_parts(run) is not None
    with pytest.MonkeyPatch.context() as patch:
        peaks = dict.fromkeys(Phase, 300 << 20)
        bare = Base(peaks, Confidence.probed)
        patch.setattr("frugal_rl.memory.plan.measured_base", lambda run, found: bare)
        plan = plan_memory(run, never)
    assert plan.probed
    assert not any(part.name.startswith("rollout") for part in plan.parts)
    assert not {f.id for f in check_run(run, plan)} & {"F11", "F13"}


@pytest.mark.slow
def test_a_schedule_learner_trains_evaluates_saves_resumes_and_draws(schooled, tmp_path):
    folder, words = schooled
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    gaps = [line["schedule/gap_percent"] for line in lines if "schedule/gap_percent" in line]
    assert len(gaps) >= 3
    assert min(gaps) > 0
    assert sum("eval/npv" in line for line in lines) == 2
    assert {p.name for p in (folder / "checkpoints").iterdir()} >= {"best.pt", "last.pt"}
    assert (folder / "pictures" / "sections.png").is_file()
    resumed = replace(
        compose_run([*words, "algo.total_steps=90000", f"resume={folder}"]), run_dir=str(tmp_path)
    )
    assert train_planned(resumed, draw_up(resumed))["num_steps"] >= 90000
    asked = compose_run(["env=mine_cpit", f"checkpoint={folder}"], "evaluate")
    results = evaluate_saved(str(folder), replace(asked, run_dir=str(tmp_path / "evaluation")))
    assert results["policy"].score.means["npv"] > results["random"].score.means["npv"]


def test_schedule_learners_refuse_other_environments():
    run = compose_run(
        [
            "env=mine_daily_small",
            "agent=priority",
            "algo=evolution",
            "env.deposits=1",
            "env.eval_deposits=0",
        ]
    )
    with pytest.raises(ConfigError, match="env=mine_cpit"):
        run.algo.build(run, None)
