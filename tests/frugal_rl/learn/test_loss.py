"""PPO's loss and its records by hand: three samples, numbers that a reader can check."""

import math
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch

from frugal_rl.learn import update as updating
from frugal_rl.learn.on_policy_config import Terms
from frugal_rl.learn.ranks import Ranks
from frugal_rl.learn.update import (
    Losses,
    Record,
    Update,
    approximate_kl,
    explained_variance,
    normalised,
    ppo_loss,
    split,
    update_threads,
)

TERMS = Terms(
    clip_range=0.2,
    clip_range_vf=None,
    ent_coef=0.1,
    vf_coef=0.5,
    normalize_advantage=True,
    max_grad_norm=0.5,
    target_kl=None,
)
RATIOS = [1.5, 1.0, 0.5]
"""Probabilities of the actions taken, new over old: above, within and below the clip range."""


def terms(**changed) -> Terms:
    return Terms(**{**vars(TERMS), **changed})


class Policy:
    """Gives the numbers that it was made of; its one parameter moves them all."""

    def __init__(self, ratios, values, entropy, losses=None, metrics=None) -> None:
        self.weight = torch.ones((), requires_grad=True)
        self.log_prob = torch.log(torch.tensor(ratios))
        self.values, self.entropy = torch.tensor(values), torch.tensor(entropy)
        self.losses, self.metrics = losses or {}, metrics or {}
        self.head, self.asked = self, []
        self.modes: list[bool] = []

    def outputs(self, obs):
        return SimpleNamespace(
            logits=obs["x"],
            value=(self.weight * self.values)[obs["x"]][:, None],
            losses=self.losses,
            metrics=self.metrics,
        )

    def evaluate(self, logits, actions, entropy):
        self.asked.append((logits.tolist(), actions.tolist(), entropy))
        return (self.weight * self.log_prob)[logits], (self.weight * self.entropy)[logits]

    def set_training_mode(self, mode):
        self.modes.append(mode)


def batch(advantages=(1.0, 1.0, 1.0), returns=(1.0, 2.0, 3.0), old_values=(0.0, 2.0, 3.0)):
    return Minibatch(
        {"x": torch.arange(3)},
        torch.tensor([7, 8, 9]),
        torch.tensor(old_values),
        torch.zeros(3),
        torch.tensor(advantages),
        torch.tensor(returns),
    )


def loss(changed=None, advantages=(1.0, 1.0, 1.0), **policy) -> Losses:
    given = {"values": [1.0, 2.0, 6.0], "entropy": [0.5, 0.25, 0.75], **policy}
    made = Policy(RATIOS, **given)
    return ppo_loss(made, batch(), torch.tensor(advantages), terms(**(changed or {})))


def test_gains_are_clipped_above_and_losses_are_not():
    assert loss().policy.item() == pytest.approx(-(1.2 + 1.0 + 0.5) / 3)
    assert loss(advantages=(-1.0, -1.0, -1.0)).policy.item() == pytest.approx((1.5 + 1.0 + 0.8) / 3)
    wide = loss({"clip_range": 0.4})
    assert wide.policy.item() == pytest.approx(-(1.4 + 1.0 + 0.5) / 3)


def test_the_value_loss_is_the_mean_square_and_the_total_weighs_all_parts():
    found = loss()

    assert found.value.item() == pytest.approx((0 + 0 + 9) / 3)
    assert found.entropy.item() == pytest.approx(-0.5)
    assert found.total.item() == pytest.approx(-0.9 + 0.1 * -0.5 + 0.5 * 3.0)
    torch.testing.assert_close(found.log_ratio, torch.log(torch.tensor(RATIOS)))


def test_values_move_by_no_more_than_their_clip_range():
    found = loss({"clip_range_vf": 0.5})  # 0.5, 2.0 and 3.5 instead of 1, 2 and 6

    assert found.value.item() == pytest.approx((0.25 + 0 + 0.25) / 3)
    falling = loss({"clip_range_vf": 0.5}, values=[-4.0, 2.0, 3.0])
    assert falling.value.item() == pytest.approx(1.5**2 / 3)  # -0.5 beside a return of 1


def test_what_a_network_adds_is_added_and_logged():
    extra, seen = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    found = loss(losses={"attention": extra}, metrics={"share": seen})

    assert found.total.item() == pytest.approx(loss().total.item() + 2.0)
    assert {k: v.item() for k, v in found.metrics.items()} == {"attention": 2.0, "share": 5.0}
    assert not any(v.requires_grad for v in found.metrics.values())
    kept = (found.policy, found.value, found.entropy, found.log_ratio)
    assert not any(v.requires_grad for v in kept)
    assert found.total.requires_grad


@pytest.mark.parametrize(("ent_coef", "wanted"), [(0.0, False), (0.1, True), (-0.1, True)])
def test_entropy_needs_a_gradient_only_where_it_counts(ent_coef, wanted):
    policy = Policy(RATIOS, [0.0] * 3, [0.0] * 3)

    ppo_loss(policy, batch(), torch.ones(3), terms(ent_coef=ent_coef))

    assert policy.asked == [([0, 1, 2], [7, 8, 9], wanted)]


def test_advantages_are_normalised_over_a_minibatch_of_at_least_two():
    given = torch.tensor([1.0, 3.0])
    one = torch.tensor([4.0])

    torch.testing.assert_close(
        normalised(given, TERMS), torch.tensor([-1.0, 1.0]) / (math.sqrt(2) + 1e-8)
    )
    assert normalised(one, TERMS) is one
    assert normalised(given, terms(normalize_advantage=False)) is given


class Two(Ranks):
    """Two processes, of which the other one's advantages are known."""

    size = 2

    def __init__(self) -> None:
        self.averaged: list[torch.Tensor] = []

        self.asked: list[list[torch.Tensor]] = []

    def moments(self, minibatches):
        self.asked.append(minibatches)
        return [(torch.tensor(2.0), torch.tensor(4.0))] * len(minibatches)

    def average(self, values):
        self.averaged.append(values)
        values += 1


def test_the_deviation_is_that_of_all_processes():
    torch.testing.assert_close(
        normalised(torch.tensor([6.0]), TERMS, Two()), torch.tensor([4.0 / (4 + 1e-8)])
    )
    known = torch.tensor(5.0), torch.tensor(0.5)
    torch.testing.assert_close(
        normalised(torch.tensor([6.0]), TERMS, Two(), known), torch.tensor([1.0 / (0.5 + 1e-8)])
    )


@pytest.mark.parametrize(
    ("size", "lengths"), [(0, [3]), (3, [3]), (4, [3]), (2, [2, 1]), (1, [1, 1, 1])]
)
def test_a_minibatch_is_split_into_views_of_itself(size, lengths):
    whole = batch()
    advantages = whole.advantages * 2
    pieces = list(split(whole, advantages, size))

    assert [len(a) for _, a in pieces] == lengths
    for column in range(1, len(whole)):
        assert torch.equal(torch.cat([piece[column] for piece, _ in pieces]), whole[column])
    assert torch.equal(torch.cat([p.observations["x"] for p, _ in pieces]), torch.arange(3))
    assert torch.equal(torch.cat([a for _, a in pieces]), advantages)
    for piece, _ in pieces:
        assert piece.returns.untyped_storage().data_ptr() == (
            whole.returns.untyped_storage().data_ptr()
        )


class Optimiser:
    """Notes what it is asked."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.steps = policy, []
        self.gradient = torch.zeros(1)

    def zero_grad(self) -> None:
        self.policy.weight.grad = None

    def step(self, norm: float) -> None:
        self.steps.append((norm, self.policy.weight.grad.item()))


def learner(micro_batch: int = 0, **policy) -> Update:
    made = Policy(RATIOS, **{"values": [1.0, 2.0, 6.0], "entropy": [0.5, 0.25, 0.75], **policy})
    return Update(made, Optimiser(made), micro_batch)


class Rollout:
    """The same three samples, as often as they are asked for."""

    values, returns = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 4.0])

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def order(self, batch_size: int):
        self.sizes.append(batch_size)
        return [np.arange(3), np.arange(3)]

    def advantages_at(self, indices):
        return batch((1.0, 2.0, 3.0)).advantages[indices]

    def samples(self, indices):
        assert indices.tolist() == [0, 1, 2]
        return batch((1.0, 2.0, 3.0))


def test_pieces_add_up_to_the_gradient_and_the_losses_of_the_whole():
    found = []
    for size in (0, 1, 2):
        update, rollout = learner(size), Rollout()
        metrics = update.run(rollout, 2, 1, TERMS)
        found.append((metrics, update.optimizer.steps))
    (whole, steps), *pieces = found

    assert len(steps) == 2
    for metrics, taken in pieces:
        assert metrics == pytest.approx(whole)
        assert taken == [(0.5, pytest.approx(gradient)) for _, gradient in steps]


def test_an_update_makes_all_epochs_and_tells_how_far_it_is(monkeypatch):
    told = []
    update, rollout = learner(), Rollout()
    doing = updating.doing

    def noted(*words):
        told.append(words)
        return doing(*words)

    monkeypatch.setattr(updating, "doing", noted)
    update.run(rollout, 2, 3, TERMS)

    assert rollout.sizes == [2, 2, 2]
    assert len(update.optimizer.steps) == 6
    assert update.policy.modes == [True]
    assert told == [("updating", 3 * 2, "minibatches")]  # 3 samples are two minibatches of 2


@pytest.mark.parametrize(("normalise", "messages"), [(True, 3), (False, 0)])
def test_processes_ask_for_the_advantages_of_an_epoch_at_once(normalise, messages):
    update = learner()
    update.ranks = ranks = Two()

    update.run(Rollout(), 2, 3, terms(normalize_advantage=normalise))

    assert len(update.optimizer.steps) == 6
    assert [len(minibatches) for minibatches in ranks.asked] == [2] * messages
    for minibatches in ranks.asked:
        assert all(torch.equal(m, batch((1.0, 2.0, 3.0)).advantages) for m in minibatches)


def test_an_update_stops_before_the_step_that_follows_too_large_a_divergence():
    kl = float(np.mean([r - 1 - math.log(r) for r in RATIOS]))
    for limit, steps in ((kl / 1.5 * 1.01, 2), (kl / 1.5 * 0.99, 0)):
        update = learner()
        update.run(Rollout(), 3, 1, terms(target_kl=limit))

        assert len(update.optimizer.steps) == steps


def test_processes_average_gradients_and_divergence_and_stop_together():
    update = learner()
    update.ranks = ranks = Two()
    record = Record()

    assert update.learn(batch(), terms(target_kl=0.9), record)  # 1.14 after the average
    assert not update.learn(batch(), terms(target_kl=0.7), record)
    assert ranks.averaged[1] is update.optimizer.gradient
    assert len(update.optimizer.steps) == 1
    assert ranks.averaged[0].dtype == torch.float64


def test_a_piece_is_let_go_of_before_the_next_one():
    alive = []

    class Watching(Update):
        def loss(self, batch, advantages, terms):
            alive.append([made() is not None for made in seen])
            losses = super().loss(batch, advantages, terms)
            seen.append(weakref.ref(losses.total))
            return losses

    seen, plain = [], learner(1)
    Watching(plain.policy, plain.optimizer, 1).learn(batch(), TERMS, Record())

    assert alive == [[], [False], [False, False]]


def test_whole_is_the_same_without_pieces():
    update = learner(2)

    assert (update.whole().micro_batch, update.whole().policy) == (0, update.policy)
    assert update.whole().optimizer is update.optimizer
    assert update.parts() == {}


def losses_of(policy: float, log_ratio: list[float], **metrics: float) -> Losses:
    numbers = (torch.tensor(policy + i) for i in range(4))
    kept = {name: torch.tensor(value) for name, value in metrics.items()}
    total, policy_loss, value, entropy = (*numbers,)
    return Losses(total, policy_loss, value, entropy, torch.tensor(log_ratio), kept)


def test_a_summary_weighs_pieces_and_looks_at_the_ratios_of_the_last_epoch():
    record = Record()
    record.add(losses_of(0.0, [5.0]), 1.0)
    record.new_epoch()
    record.add(losses_of(4.0, [0.0, math.log(1.5)], share=1.0), 0.25)
    record.add(losses_of(8.0, [math.log(1.1), math.log(0.7)], share=4.0), 0.75)

    found = record.summary(Rollout(), TERMS)

    mean = (0 * 1 + 4 * 0.25 + 8 * 0.75) / 2
    ratios = [1.0, 1.5, 1.1, 0.7]
    assert found == pytest.approx(
        {
            "train/policy_loss": mean + 1,
            "train/value_loss": mean + 2,
            "train/entropy": -(mean + 3),
            "train/loss": mean,
            "train/clip_fraction": 0.5,
            "train/approx_kl": np.mean([r - 1 - math.log(r) for r in ratios]),
            "train/explained_variance": 0.75,
            "train/share": 2.5,
        },
        abs=1e-6,
    )


def test_the_last_divergence_is_that_of_all_pieces_of_the_last_minibatch():
    record = Record()
    record.add(losses_of(0.0, [9.0]), 1.0)
    record.add(losses_of(0.0, [0.5]), 0.6)
    record.add(losses_of(0.0, [0.1]), 0.4)
    kl = [math.exp(r) - 1 - r for r in (0.5, 0.1)]

    assert record.last_kl() == pytest.approx(np.mean(kl))
    record.add(losses_of(0.0, [0.2]), 1.0)
    assert record.last_kl() == pytest.approx(math.exp(0.2) - 1.2)


def test_divergence_and_explained_variance_by_their_definition():
    assert approximate_kl(torch.log(torch.tensor([2.0]))) == pytest.approx(1 - math.log(2))
    assert explained_variance(np.array([0.0, 1.0]), np.array([0.0, 2.0])) == pytest.approx(0.75)
    assert math.isnan(explained_variance(np.array([0.0, 1.0]), np.array([2.0, 2.0])))
    assert explained_variance(np.array([0.0, 2.0]), np.array([2.0, 0.0])) == pytest.approx(-3.0)


@pytest.mark.parametrize(
    ("wanted", "samples", "threads"),
    [(0, 1999, 1), (0, 2000, 3), (2, 1999, 2), (2, 2000, 2)],
)
def test_a_small_update_takes_one_thread_and_a_large_one_all(wanted, samples, threads, monkeypatch):
    monkeypatch.setattr(updating.os, "sched_getaffinity", lambda pid: {0, 1, 2} if not pid else {})
    layer = torch.nn.Linear(7, 1000)  # 8,000 weights: 16 million products with 2,000 samples

    assert update_threads(wanted, layer, samples) == threads


@pytest.mark.parametrize(("processes", "threads"), [(2, 3), (4, 1), (9, 1)])
def test_processes_share_the_cores_of_a_machine(processes, threads, monkeypatch):
    monkeypatch.setattr(updating.os, "sched_getaffinity", lambda pid: set(range(7)))

    assert update_threads(0, torch.nn.Linear(7, 1000), 2000, processes) == threads
    assert update_threads(5, torch.nn.Linear(7, 1000), 2000, processes) == 5


@pytest.mark.parametrize(("cores", "threads"), [(5, 5), (None, 1)])
def test_where_nobody_tells_which_cores_are_ours_all_are(cores, threads, monkeypatch):
    monkeypatch.delattr(updating.os, "sched_getaffinity")
    monkeypatch.setattr(updating.os, "cpu_count", lambda: cores)

    assert update_threads(0, torch.nn.Linear(7, 1000), 2000) == threads
