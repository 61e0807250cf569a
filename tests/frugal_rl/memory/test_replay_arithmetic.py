"""A replay by hand: rows, scalars, priorities, networks, minibatch, and the size that fits."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.learn import off_policy_config
from frugal_rl.learn.held import Held
from frugal_rl.learn.off_policy_kinds import QrDqnConfig, TqcConfig
from frugal_rl.learn.trace import Shown
from frugal_rl.learn.trace_replay import Networks
from frugal_rl.memory import replay
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.machine import Limit
from frugal_rl.memory.part import Confidence, Part
from frugal_rl.memory.replay import (
    ReplayNetworks,
    replay_parts,
    replay_size,
)
from frugal_rl.memory.replay_data import RowSeen
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Stored
from frugal_rl.run.compose import compose_run

SPEC = ObservationSpec(
    (
        Stored("speed", (3,), np.float32, -1, 1),
        Stored("frame", (20, 30), np.uint8, 0, 255, window=4),
        Stored("moves", (2,), np.int8, 0, 4, window=EPISODE),
    )
)
STEPS = 9


NETWORKS = ReplayNetworks(700, 300, 50.0, 20.0)


def run_of(spec=SPEC, batch: int = 10, place: RolloutLocation = RolloutLocation.ram, **algo):
    encoding = Encoding.choose(spec)
    action = spaces.Box(-1, 1, (2,), np.float32)
    return SimpleNamespace(
        encoding=lambda: encoding,
        env=SimpleNamespace(episode_steps=STEPS, action_space=lambda: action),
        algo=SimpleNamespace(batch_size=batch, **algo),
        memory=SimpleNamespace(budget_gib=None, rollout_location=place),
        hardware=SimpleNamespace(ram_gib=1, vram_gib=None, cores=3, device="cpu"),
    )


def parts(size: int = 1000, **more) -> dict[str, Part]:
    return {p.name: p for p in replay_parts(run_of(**more), size, NETWORKS)}


def test_small_rows_are_kept_whole_with_a_byte_or_two_of_how_they_follow():
    found = parts()

    assert found["replay: speed"].ram_bytes == 1000 * (12 + 1)
    assert found["replay: speed"].formula == "1,000 x (12 + 1 B)"
    assert found["replay: moves"].ram_bytes == 1000 * (10 * 2 + 1)  # an episode of 9 has 10 rows
    assert found["replay: age"].ram_bytes == 1000 * (4 + 1)
    assert {p.confidence for n, p in found.items() if n != "replay: frame" and "re" in n[:2]} == {
        Confidence.exact
    }


def test_large_rows_are_a_twentieth_with_their_tables_and_never_more_than_whole():
    part = parts()["replay: frame"]

    assert part.ram_bytes == 1000 * (30 + 6 + 1)  # 600 bytes, and a window
    assert part.formula == "1,000 x 37 B of 600; at most 592.8 KiB where nothing repeats"
    assert part.confidence is Confidence.calibrated


@pytest.mark.parametrize(("length", "each"), [(255, 255 + 1), (256, 13 + 6)])
def test_rows_are_chained_from_256_bytes_on(length, each):
    spec = ObservationSpec((Stored("row", (length,), np.uint8, 0, 255),))

    assert parts(spec=spec)["replay: row"].ram_bytes == 1000 * each
    assert "replay: age" not in parts(spec=spec)


def test_large_rows_lie_on_the_device_once_more_where_they_are_asked_to():
    found = parts(place=RolloutLocation.device)
    there = found["replay: frame on the device"]

    assert (there.ram_bytes, there.vram_bytes) == (0, 1000 * 51)  # 1.7 times a twentieth of 600
    assert there.formula == "1,000 x 51 B of 600"
    assert found["replay: frame, places there"].ram_bytes == 1000 * 8
    assert set(found) - set(parts()) == {there.name, "replay: frame, places there"}


def test_what_was_seen_of_large_rows_is_what_lies_on_the_device(monkeypatch):
    seen = {"frame": RowSeen(40.0, 0.5, 1.0)}
    monkeypatch.setattr(replay, "rows_seen", lambda run: (seen, "as in the last run"))
    part = parts(place=RolloutLocation.device)["replay: frame on the device"]

    assert part.vram_bytes == 1000 * (68 + 10)  # 1.7 x 40, and half a row for each 32
    assert part.confidence is Confidence.calibrated


def test_a_window_of_rows_that_are_kept_whole_takes_a_byte_more():
    spec = ObservationSpec((Stored("row", (5,), np.uint8, 0, 255, window=2),))

    assert parts(spec=spec)["replay: row"].ram_bytes == 1000 * (5 + 2)
    assert parts(spec=spec)["replay: row"].formula == "1,000 x (5 + 2 B)"


def test_scalars_are_an_action_a_reward_and_two_flags():
    part = parts()["replay: scalars"]

    assert (part.ram_bytes, part.formula) == (1000 * (2 * 4 + 4 + 2), "1,000 x 14 B")


@pytest.mark.parametrize(
    ("size", "leaves"), [(1, 2), (2, 2), (3, 4), (1000, 1024), (1024, 1024), (1025, 2048)]
)
def test_priorities_are_a_tree_over_a_power_of_two(size, leaves):
    part = parts(size, prioritised=True)["replay: priorities"]

    assert part.ram_bytes == 2 * leaves * 8
    assert part.formula == f"{2 * leaves:,} nodes x 8 B"
    assert "replay: priorities" not in parts(size, prioritised=False)


def test_networks_are_weights_gradients_and_moments_and_targets_weights_alone():
    part = parts()["networks"]

    assert part.ram_bytes == 4 * (4 * 700 + 300)
    assert part.formula == "700 weights x (weight, gradient, 2 moments) + 300 targets, float32"
    assert part.confidence is Confidence.calibrated


def test_a_minibatch_is_rows_before_and_after_and_what_was_traced_of_each_sample():
    found, rows = parts(batch=7), 12 + 600 + 20 + 4

    assert found["minibatch"].ram_bytes == 7 * 2 * rows
    assert found["minibatch"].formula == f"7 x 2 x {rows} B"
    assert found["activations"].ram_bytes == 7 * 50
    assert found["activations"].formula == "7 samples x 50 B"
    assert found["holes in the heap"].ram_bytes == 7 * 20
    assert found["minibatch"].confidence is Confidence.calibrated


@pytest.mark.parametrize("algo", ["dqn", "qr_dqn", "sac", "td3", "tqc", "crossq"])
def test_weights_are_counted_as_a_learner_holds_them(algo):
    pytest.importorskip("sb3_contrib")
    env = ["env=toy"] if "dqn" in algo else ["env=gymnasium", "env.id=Pendulum-v1"]
    run = compose_run([*env, f"algo={algo}", "algo.buffer_size=100", "algo.num_envs=2"])
    vec_env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
    held = run.algo.build(run, vec_env).parts()["parameters"] / 4
    vec_env.close()
    found = run.algo.traced(run)

    assert found.learning + found.targets == pytest.approx(held, rel=0.06)  # CrossQ normalises


@pytest.mark.parametrize(("algo", "quantiles"), [("dqn", 1), ("qr_dqn", 200)])
def test_a_network_of_values_is_its_embedding_its_layers_and_one_output_each(algo, quantiles):
    words = ["env=gymnasium", "env.id=CartPole-v1", "algo.buffer_size=900", "agent.actor=[8,5]"]
    run = compose_run([*words, f"algo={algo}"])
    embedding, outputs = run.agent.embedding(run.encoding()), 2 * quantiles
    read = sum(p.numel() for p in embedding.parameters())
    weights = read + (embedding.width + 1) * 8 + (8 + 1) * 5 + (5 + 1) * outputs
    found = run.algo.traced(run)

    assert (found.learning, found.targets) == (weights, weights)


def test_networks_are_traced_once_and_then_remembered(monkeypatch, tmp_path):
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    run = compose_run(["env=toy", "algo=dqn", "algo.batch_size=24"])
    found = run.algo.traced(run)

    monkeypatch.setattr(off_policy_config, "trace_replay", None)  # a second trace would fail
    assert run.algo.traced(run) == found
    with pytest.raises(AttributeError):
        run.variant(["algo.batch_size=25"]).algo.traced(run)


def test_what_was_traced_of_one_algorithm_or_minibatch_is_not_taken_for_another():
    env = ["env=gymnasium", "env.id=Pendulum-v1", "algo.buffer_size=900", "algo.num_envs=2"]
    sac, td3, large = (
        compose_run([*env, *words])
        for words in (["algo=sac"], ["algo=td3"], ["algo=sac", "algo.batch_size=512"])
    )
    small = sac.algo.traced(sac)
    assert sac.algo.traced(sac) == small

    assert td3.algo.traced(td3).targets > small.targets  # its actor has one, too
    held = large.algo.traced(large).bytes_per_sample
    assert held != small.bytes_per_sample
    assert large.algo.batch_size * held > sac.algo.batch_size * small.bytes_per_sample


def test_a_large_minibatch_of_pictures_holds_what_its_convolutions_give():
    words = ["env=nclone", "env.obs=pixels", "algo=dqn", "algo.buffer_size=900"]
    run = compose_run([*words, "algo.batch_size=512"])
    embedding, given = run.agent.embedding(run.encoding()), []
    for module in embedding.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(lambda *seen: given.append(seen[-1].nbytes))
    embedding(Shown(run, 1, torch.device("cpu")), lambda block, x: block(x))

    assert given
    found = Networks(run, run.algo, run.agent).traced()
    assert found.bytes_per_sample > 2 * sum(given)  # and behind the activation


def test_a_step_holds_more_than_an_update_on_few_samples():
    networks = replace(NETWORKS, step_bytes=700)
    for batch, count in ((10, 700), (20, 1000)):
        found = {p.name: p for p in replay_parts(run_of(batch=batch), 1000, networks)}
        assert found["activations"].ram_bytes == count


PER_STEP = (12 + 1) + (30 + 6 + 1) + (20 + 1) + (4 + 1) + 14


@pytest.fixture
def beside(monkeypatch):
    """512 bytes of simulators and a process of 100; a limit of what `room` says more."""
    monkeypatch.setattr(replay, "environment_parts", lambda run, e: [Part("games", "", 512)])
    monkeypatch.setattr(replay, "TYPICAL_BYTES", 100)
    fixed = sum(p.ram_bytes for p in parts(0).values()) + 612
    asked = []

    def limited(room: int):
        limit = Limit(fixed + room, "a budget")
        monkeypatch.setattr(replay, "find_limit", lambda *given: asked.append(given) or limit)
        return asked

    return limited


@pytest.mark.parametrize(
    ("room", "most", "size"),
    [(1000 * PER_STEP, 10**9, 800), (1000 * PER_STEP - 1, 10**9, 799), (1000 * PER_STEP, 50, 50)],
)
def test_a_replay_takes_four_fifths_of_what_is_left(room, most, size, beside):
    asked = beside(room)

    assert replay_size(run_of(), most, NETWORKS) == size
    assert asked == [(None, 1, None, 3, "cpu")]


def test_a_replay_that_holds_no_minibatch_is_refused_with_what_stands_beside_it(beside):
    beside(13 * PER_STEP)
    assert replay_size(run_of(), 10**9, NETWORKS) == 10
    beside(12 * PER_STEP)

    with pytest.raises(MemoryBudgetError) as error:
        replay_size(run_of(), 10**9, NETWORKS)

    assert str(error.value) == (
        "algo.buffer_size=auto finds no room: 25.8 KiB of 26.9 KiB are needed beside the replay. "
        "Raise memory.budget_gib, or lower algo.num_envs."
    )


@pytest.mark.parametrize("name", ["QRDQN", "TQC"])
def test_pairs_of_quantiles_are_what_the_loss_holds(name):
    contrib = pytest.importorskip("sb3_contrib")
    kind = {"QRDQN": QrDqnConfig, "TQC": TqcConfig}[name]
    shape = (64, 200) if name == "QRDQN" else (64, 2, 25)
    learned = torch.zeros(shape, device="meta", requires_grad=True)
    target = torch.zeros((64, 1, 46) if name == "TQC" else shape, device="meta")
    with Held() as held:
        contrib.common.utils.quantile_huber_loss(learned, target).backward()
    planned = 64 * kind.quantile_pairs * 4 * replay.PAIR_COPIES
    assert held.peak == pytest.approx(planned, rel=0.03)
