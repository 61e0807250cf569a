"""The agent trains on real levels: first ratio, storage forms, one update, evaluation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.memory.sizes import rollout_parts
from frugal_rl.observation.choices import Storage
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.trainer import no_meter
from nclone.config import NppConfig
from nclone.spec import Observation
from npp_rl.choices import GraphEncoding, ObjectiveValues, Readout
from npp_rl.config import AttentionAgent, AuxiliaryTasks
from npp_rl.teaching.config import ClonedPpo, Cloning
from npp_rl.teaching.demonstrations import record
from npp_rl.teaching.solutions import solutions

LEVELS = ("walk", "fall", "switch_first", "locked_door")


@pytest.fixture
def agent(small):
    return AttentionAgent(
        graph=GraphEncoding(**small.graph, readout=tuple(Readout)),
        objectives=ObjectiveValues(**small.objectives),
        window_features=8,
        hazard_features=8,
        **small.agent,
    )


def make_run(agent, storage=Storage.lossless, graph="", algo=None):
    env = NppConfig(obs=Observation.graph, levels=LEVELS, fields={"graph": graph} if graph else {})
    algo = algo or PpoConfig(num_envs=6, n_steps=10, batch_size=30, n_epochs=1, total_steps=600)
    memory = MemoryProfile(storage=storage)
    return RunConfig(env, agent, algo, memory, None, hardware=Hardware(device="cpu", threads=1))


def make_learner(run):
    set_random_seed(0)
    run_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, None, "train")
    return run.algo.build(run, run_env)


def test_the_first_importance_ratio_is_one(agent):
    learner = make_learner(make_run(agent))
    learner.collector.collect(learner.policy)

    learner.policy.set_training_mode(True)
    for batch in learner.rollout.get(60):
        out = learner.policy.outputs(batch.observations)
        log_prob, _ = learner.policy.head.evaluate(out.logits, batch.actions, True)
        ratio = torch.exp(log_prob - batch.old_log_prob)

    assert (ratio - 1).abs().max() < 2e-6  # batches of other sizes add in another order


def test_dense_ragged_and_interned_graphs_learn_the_same_parameters(agent):
    weights = {}
    for graph in ("dense", "ragged", "interned"):
        learner = make_learner(make_run(agent, graph=graph))
        set_random_seed(1)
        learner.iterate(no_meter)
        weights[graph] = torch.cat([p.detach().flatten() for p in learner.policy.parameters()])
    start = torch.cat(
        [p.detach().flatten() for p in make_learner(make_run(agent)).policy.parameters()]
    )

    for graph in ("dense", "ragged"):
        assert (weights[graph] - weights["interned"]).abs().max() < 1e-4
    assert (weights["interned"] - start).abs().max() > 1e-4


def test_the_entropy_bonus_is_logged_in_every_update_with_any_number_of_environments(agent):
    for envs, batch in ((2, 20), (6, 16), (1, 10)):
        algo = PpoConfig(num_envs=envs, n_steps=10, batch_size=batch, n_epochs=2, total_steps=600)
        run = make_run(agent, algo=algo)
        run = replace(run, env=replace(run.env, levels=("locked_door",)))
        learner = make_learner(run)
        for _ in range(2):
            metrics = learner.iterate(no_meter)
            assert metrics["train/attention_entropy"] > 0
            assert metrics["train/attention_entropy_loss"] == pytest.approx(
                -0.01 * metrics["train/attention_entropy"], rel=1e-4
            )


def test_one_graph_observation_has_the_bytes_of_the_specification():
    spec = NppConfig(obs=Observation.graph).spec()
    graph = sum(f.nbytes for f in spec.fields if f.name.startswith("graph_"))
    assert graph == 1_746_000


def test_cloning_gives_ppo_its_first_weights(agent):
    algo = ClonedPpo(
        num_envs=4, n_steps=8, batch_size=32, n_epochs=1, total_steps=64,
        cloning=Cloning(epochs=2, validation=0.0), critic_iterations=1,
    )  # fmt: skip
    run = make_run(agent, algo=algo)
    run = replace(run, env=replace(run.env, levels=("simplest",)))
    learner = make_learner(run)
    plain = make_learner(replace(run, algo=replace(algo, cloning=Cloning(epochs=0))))

    assert learner.history[-1].loss < learner.history[0].loss
    difference = [
        (a - b).abs().max().item()
        for a, b in zip(learner.policy.parameters(), plain.policy.parameters(), strict=True)
    ]
    assert max(difference) > 1e-3
    metrics = learner.iterate(no_meter)
    assert np.isfinite(metrics["train/loss"])
    assert "cloning/accuracy" in metrics


def test_the_policy_rests_after_cloning_and_the_plan_counts_the_demonstrations(agent):
    algo = ClonedPpo(
        num_envs=4, n_steps=8, batch_size=32, n_epochs=1, total_steps=64, ent_coef=0.1,
        cloning=Cloning(epochs=2), critic_iterations=1,
    )  # fmt: skip
    assert [algo.terms(done).ent_coef for done in (0.5, 33 / 64, 1.0)] == [0.0, 0.1, 0.1]
    assert replace(algo, cloning=Cloning(epochs=0)).terms(0.0).ent_coef == 0.1

    run = make_run(agent, algo=algo)
    run = replace(run, env=replace(run.env, levels=("simplest",)))
    demos = record(run.env, run.encoding(), solutions(run.env), 0.99)
    (part,) = algo.parts(run)
    assert part.ram_bytes > 2 * sum(rows.nbytes for rows in demos.rows.values())
    assert algo.tiny().parts(run) == []


def test_auxiliary_losses_are_learned_from_labels_that_travel_with_their_samples(agent):
    tasks = AuxiliaryTasks(death=0.05, milestone=0.02, objective=0.03)
    algo = PpoConfig(num_envs=16, n_steps=64, batch_size=256, n_epochs=2, total_steps=6000)
    run = make_run(replace(agent, auxiliary=tasks), algo=algo)
    learner = make_learner(run)
    heads = learner.policy.network.auxiliary
    before = [p.detach().clone() for p in heads.parameters()]
    metrics = learner.iterate(no_meter)

    assert {"train/aux_death_loss", "train/aux_milestone_steps_loss"} <= set(metrics)
    assert metrics["train/aux_death_loss"] > 0
    assert any(not torch.equal(a, b) for a, b in zip(before, heads.parameters(), strict=True))

    rollout = learner.rollout
    index = np.arange(rollout.buffer_size * rollout.n_envs)
    n, t = np.divmod(index, rollout.buffer_size)
    drawn = rollout.samples(index).observations["aux_death"].numpy()
    np.testing.assert_array_equal(drawn, rollout.labels["aux_death"][t, n])
    assert set(np.unique(drawn)) > {0}

    planned = {p.name: p.ram_bytes for p in rollout_parts(run, run.encoding())}
    assert planned["rollout: labels"] == rollout.parts()["rollout/labels"] == 4 * 16 * 64


def test_a_death_label_looks_ten_steps_ahead(agent):
    """Labels count from the very step: one before death is within ten steps, eleven is not."""
    run = make_run(replace(agent, auxiliary=AuxiliaryTasks(death=1.0)))
    network = make_learner(run).policy.network
    died = np.zeros((30, 1), np.bool_)
    died[20] = True
    labels = network.labels({"died": died, "milestone": np.full((30, 1), -1, np.int8)}, died)

    assert labels["aux_death"][:, 0].tolist() == [0] * 11 + [1] * 10 + [-1] * 9
