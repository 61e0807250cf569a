"""Schedules, reward scale, tallies, returns of several steps: each against its definition."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.learn.episodic import EpisodeCollector
from frugal_rl.learn.held import Held
from frugal_rl.learn.optimizer import FlatAdam, padded
from frugal_rl.learn.rewards import RewardScale
from frugal_rl.learn.schedules import Constant, Linear, WarmUp, value_at
from frugal_rl.learn.tally import EpisodeTally, EventLog
from frugal_rl.store.returns import discounted, steps_counted
from frugal_rl.vec_env.interface import EndedEpisodes


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (Constant(3.0), [3, 3, 3, 3, 3]),
        (Linear(4.0), [4, 3, 2, 1, 0]),
        (Linear(1.0, 5.0), [1, 2, 3, 4, 5]),
        (WarmUp(8.0, 2.0, 4.0, 0.5), [2, 5, 8, 6, 4]),
        (WarmUp(8.0, 2.0, 5.0), [2, 8, 7, 6, 5]),
        (0.25, [0.25] * 5),
        (3, [3.0] * 5),
    ],
)
def test_a_schedule_takes_these_values_at_the_quarters_of_a_run(schedule, values):
    assert [value_at(schedule, done) for done in (0, 0.25, 0.5, 0.75, 1)] == pytest.approx(values)
    assert isinstance(value_at(schedule, 0.0), float)


@pytest.mark.parametrize("warm", [0.0, 1.0, -0.1, math.nan])
def test_a_warm_up_ends_within_the_run(warm):
    with pytest.raises(ConfigError, match="warm"):
        WarmUp(1.0, 0.0, 0.0, warm)


def slow_scale(rewards, dones, gamma, limit):
    """Stable-Baselines3's rule by its definition: the moments of all returns seen."""
    returns, mean, var, count = np.zeros(rewards.shape[1]), 0.0, 1.0, 1e-4
    for reward, done in zip(rewards, dones, strict=True):
        returns = returns * gamma + reward
        n = len(reward)
        both = count + n
        delta = returns.mean() - mean
        var = (var * count + returns.var() * n + delta**2 * count * n / both) / both
        mean, count = mean + delta * n / both, both
        returns[done] = 0
        yield np.clip(reward / np.sqrt(var + 1e-8), -limit, limit)


def test_rewards_are_divided_by_the_deviation_of_returns_and_clipped():
    rng = np.random.default_rng(0)
    rewards = rng.normal(2, 3, (30, 4)).astype(np.float32)
    rewards[0] = [0, 1e9, -1e9, 5]
    dones = rng.random((30, 4)) < 0.2
    for limit in (10.0, 0.5):
        scale = RewardScale(4, 0.9, limit)
        for given, done, wanted in zip(
            rewards, dones, slow_scale(rewards, dones, 0.9, limit), strict=True
        ):
            scaled = scale(given, done)
            np.testing.assert_allclose(scaled, wanted, rtol=1e-6)
            assert scaled.dtype == np.float32
            assert np.abs(scaled).max() <= limit


def test_a_scale_is_resumed_exactly_and_shares_nothing_with_its_state():
    one, two = RewardScale(2, 0.9), RewardScale(2, 0.9)
    done = np.array([False, True])
    one(np.array([1.0, 2.0], np.float32), done)
    state = one.state()
    two.load(state)
    following = np.array([3.0, -1.0], np.float32)
    state["returns"][:] = 99

    np.testing.assert_array_equal(one(following, done), two(following, done))
    assert one.state()["count"] == two.state()["count"] == pytest.approx(4 + 1e-4)
    assert RewardScale(1, 0.9).limit == 10.0


def ended(*lengths: float) -> EndedEpisodes:
    values = np.array(lengths)
    return EndedEpisodes(np.arange(len(lengths)), {"length": values, "success": values > 3})


def test_a_tally_is_the_mean_of_all_that_ended_since_it_was_read():
    tally = EpisodeTally()
    tally.add(None)
    tally.add(first := ended(2.0, 4.0))
    tally.add(ended(9.0))
    first.stats["length"][:] = 0

    assert tally.read() == {
        "episode/length": 5.0, "episode/success": pytest.approx(2 / 3), "episode/count": 3.0,
    }  # fmt: skip
    assert tally.read() == {"episode/count": 0.0}


def step(**events):
    return SimpleNamespace(events=events, done=np.array([True, False]))


def test_events_are_kept_where_a_network_asks_for_them_and_copied():
    log, seen = EventLog(), []
    network = SimpleNamespace(labels=lambda events, done: seen.append((events, done)) or {"x": 1})
    jump = np.array([1, 2])
    log.begin(("jump",))
    log.add(one := step(jump=jump, fall=jump))
    log.add(step(jump=jump + 1))
    jump[:] = one.done[:] = 0

    assert log.labels(network) == {"x": 1}
    ((events, done),) = seen
    assert {name: rows.tolist() for name, rows in events.items()} == {"jump": [[1, 2], [2, 3]]}
    assert done.tolist() == [[True, False], [True, False]]
    log.add(step(jump=jump))
    log.labels(network)
    assert seen[1][0]["jump"].shape == (1, 2)


def test_without_names_nothing_is_kept_and_a_missing_event_is_refused():
    log = EventLog()
    log.add(step(jump=1))
    assert log.labels(None) == {}
    log.begin(("jump",))
    with pytest.raises(ConfigError) as error:
        log.add(step())
    assert str(error.value) == (
        "agent.auxiliary needs the event 'jump', which these environments do not report; set its "
        "weights to 0, or use vec=batch with memory.level_data=shared."
    )


def test_steps_count_up_to_the_first_that_ended_an_episode():
    ends = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]], np.bool_)
    counted = steps_counted(ends)
    returns, discounts = discounted(np.full((4, 3), 2, np.float32), counted, 0.5)

    assert counted.tolist() == [3, 1, 2, 3]
    assert returns.tolist() == [[3.5], [2.0], [3.0], [3.5]]
    assert discounts.tolist() == [[0.125], [0.5], [0.25], [0.125]]
    assert returns.dtype == discounts.dtype == np.float32


def parameters() -> list[torch.nn.Parameter]:
    torch.manual_seed(0)
    frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    return [torch.nn.Parameter(torch.randn(5, 4)), frozen, torch.nn.Parameter(torch.randn(16))]


def test_each_parameter_begins_on_a_cache_line_and_is_a_view():
    made = parameters()
    flat = FlatAdam(made, 0.1, 1e-5, fused=False)

    assert [padded(p) for p in made] == [32, 16, 16]
    assert flat.starts == [0, 32]
    assert flat.places() == {id(made[0]): 0, id(made[2]): 32}
    assert flat.flat.numel() == 48
    assert flat.parts() == {"parameters": 192, "gradients": 192, "optimiser": 384}
    flat.flat.data[32:48] = 7
    flat.gradient[0:20] = 3
    assert made[2].tolist() == [7] * 16
    assert made[0].grad.tolist() == [[3] * 4] * 5
    assert made[1].grad is None


def slow_adam(values, gradients, limits, rates, eps):
    """Adam (Kingma and Ba 2015) after clipping by the norm of all gradients, as defined."""
    m, v = np.zeros_like(values), np.zeros_like(values)
    for t, (g, limit, rate) in enumerate(zip(gradients, limits, rates, strict=True), 1):
        g = g * min(1.0, limit / (np.linalg.norm(g) + 1e-6))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        values = values - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + eps)
    return values


def test_steps_are_adams_on_a_gradient_that_is_clipped_over_all_parameters():
    made, rng = parameters(), np.random.default_rng(0)
    trained = [made[0], made[2]]
    before = np.concatenate([p.detach().numpy().ravel() for p in trained]).astype(np.float64)
    gradients, limits, rates = rng.normal(0, 3, (3, 36)), (0.5, 100.0, 4.0), (0.1, 0.1, 0.02)
    flat = FlatAdam(made, 0.1, 1e-3, fused=False)
    for gradient, limit, rate in zip(gradients, limits, rates, strict=True):
        flat.set_learning_rate(rate)
        flat.zero_grad()
        made[0].grad += torch.tensor(gradient[:20].reshape(5, 4))
        made[2].grad += torch.tensor(gradient[20:])
        flat.step(limit)
    after = np.concatenate([p.detach().numpy().ravel() for p in trained])

    np.testing.assert_allclose(after, slow_adam(before, gradients, limits, rates, 1e-3), rtol=1e-5)
    assert made[1].tolist() == [1, 1, 1]
    norms = np.linalg.norm(gradients, axis=1)
    assert flat.take_largest_norm() == pytest.approx(norms.max(), rel=1e-6)
    assert flat.take_largest_norm() == 0.0


def test_an_optimiser_is_resumed_with_its_moments_and_shares_nothing_with_its_state():
    one, two = (FlatAdam(parameters(), 0.1, 1e-5, fused=False) for _ in range(2))
    one.gradient.fill_(1.0)
    one.step(1.0)
    state = one.state()
    two.flat.data.copy_(one.flat)
    two.load(state)
    for adam in (one, two):  # the first one's step moves what its state was taken from
        adam.gradient.fill_(2.0)
        adam.step(1.0)

    assert torch.equal(one.flat, two.flat)
    assert one.moments["step"] == two.moments["step"] == 2


def test_a_collection_tells_its_mean_reward_and_what_ended():
    made = EpisodeCollector.__new__(EpisodeCollector)
    made.tally, made.mean_reward = EpisodeTally(), 0.25
    made.tally.add(ended(2.0))

    assert made.metrics() == {
        "trajectories/mean_reward": 0.25, "episode/length": 2.0, "episode/success": 0.0,
        "episode/count": 1.0,
    }  # fmt: skip


def test_what_lies_in_the_heap_is_counted_apart_from_what_is_mapped():
    with Held(mapped_from=1 << 20) as held:
        small = torch.empty(1 << 18, dtype=torch.uint8)
        large = torch.empty(1 << 21, dtype=torch.uint8)
        again = torch.empty(1 << 18, dtype=torch.uint8)
        del small, large
        torch.empty(1 << 18, dtype=torch.uint8)

    assert held.heap_peak == 2 << 18
    assert again.nbytes == 1 << 18
    assert held.peak == (1 << 21) + (2 << 18)


def test_a_minibatch_shows_as_many_distinct_rows_as_was_said_and_no_more_than_it_has():
    with Held(distinct=3):
        ids = torch.zeros(10, dtype=torch.int64, device="meta")
        unique, inverse = torch.unique(ids, return_inverse=True)
        few = torch.unique(ids[:2])

    assert (len(unique), unique.dtype, len(few)) == (3, torch.int64, 2)
    assert inverse.shape == (10,)


def test_a_convolution_holds_its_pictures_and_kernels_once_more_while_it_runs():
    picture, kernel, bias = torch.zeros(2, 3, 8, 8), torch.zeros(4, 3, 3, 3), torch.zeros(4)
    with Held() as held:
        out = torch.nn.functional.conv2d(picture, kernel, bias)

    inside = picture.nbytes + kernel.nbytes + out.nbytes
    assert held.peak == held.held + inside
    assert held.held >= out.nbytes
