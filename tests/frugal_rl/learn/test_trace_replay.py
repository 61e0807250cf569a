"""What networks hold that learn from a replay: traced, and measured where they convolve."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.learn import trace_replay
from frugal_rl.learn.gauge import Line
from frugal_rl.learn.trace_replay import Networks, replay_networks
from frugal_rl.run.compose import compose_run

PICTURES = ("env=fighting", "env.obs=gray", "agent=nature_cnn", "algo=dqn", "algo.batch_size=9")


def test_a_replay_learner_of_pictures_is_traced_through_their_convolutions():
    run = compose_run(PICTURES)
    found = Networks(run, run.algo, run.agent).traced()
    convolved = 2 * 4 * 32 * ((run.env.spec().by_name["frame"].shape[0] - 8) // 4 + 1) ** 2

    assert found.bytes_per_sample > convolved > 0


@pytest.fixture
def asked(monkeypatch):
    """What other processes are asked; they answer that a sample holds 7 bytes."""
    modules = []
    monkeypatch.setattr(trace_replay, "_found", {})
    monkeypatch.setattr(
        trace_replay,
        "ask_child",
        lambda module, run, doing: modules.append(module) or {"bytes_per_sample": 7.0},
    )
    return modules


def test_a_replay_learner_that_convolves_is_measured_and_others_are_not(asked):
    tiny = (*PICTURES, "algo.batch_size=8")
    for words, count in ((PICTURES, 1), (tiny, 0), (("env=toy", "algo=dqn"), 0)):
        run = compose_run(words)
        found = replay_networks(run, run.algo, run.agent)
        traced = Networks(run, run.algo, run.agent).traced()

        assert asked == ["frugal_rl.run.replay_process"] * count
        assert found == (replace(traced, bytes_per_sample=7.0) if count else traced)
        asked.clear()


def test_a_replay_learner_that_no_other_process_can_make_is_traced(asked, monkeypatch):
    def refuse(*given):
        raise ConfigError("the environment is registered by the calling script")

    monkeypatch.setattr(trace_replay, "ask_child", refuse)
    run = compose_run(PICTURES)

    assert replay_networks(run, run.algo, run.agent) == Networks(run, run.algo, run.agent).traced()


def test_gradients_are_counted_with_the_weights_and_a_step_makes_two_of_the_largest():
    run = compose_run(["env=gymnasium", "env.id=CartPole-v1", "algo=dqn", "algo.batch_size=1"])
    networks = Networks(run, run.algo, run.agent)
    found, sizes = networks.traced(), [p.nbytes for p in networks.learning.parameters()]

    assert found.bytes_per_sample < sum(sizes)
    assert found.step_bytes == 2 * max(sizes)


def test_an_update_that_convolves_is_measured_from_a_tiny_one_to_its_own_size(monkeypatch):
    run = compose_run([*PICTURES[:-1], "algo.batch_size=40"])
    networks = Networks(run, run.algo, run.agent, torch.device("cpu"))
    held = {8: 100, 40: 900}

    def line(call, few, largest):
        call(few)()
        assert all(p.grad is not None for p in networks.learning.parameters())
        return Line(0.0, (held[largest] - held[few]) / (largest - few))

    monkeypatch.setattr(trace_replay, "Gauge", lambda device: SimpleNamespace(line=line))
    assert networks.measured_bytes_per_sample() == 25.0
