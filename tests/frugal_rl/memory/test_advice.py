"""Advice by hand: what fits, what is worth measuring, which sizes are tried, in which words."""

from dataclasses import replace
from functools import cache

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory import advice
from frugal_rl.memory.advice import (
    advise,
    alike,
    can_serve,
    command_of,
    fits_with_margin,
    samples_of,
    shrunk_sizes,
)
from frugal_rl.memory.base import Base
from frugal_rl.memory.machine import Limit
from frugal_rl.memory.part import Confidence, Kind, Part
from frugal_rl.memory.plan import Plan, assemble
from frugal_rl.memory.probe import Probe
from frugal_rl.memory.savings import BY_NAME
from frugal_rl.observation.choices import Label
from frugal_rl.run.compose import compose_run

TOY = ["env=toy", "tracking=disabled", "hardware.device=cpu"]
NOTHING = Base.everywhere(0, Confidence.calibrated)
PROBE = Probe(1000, 50.0, 400, 404, 808, 10.0)


def plan_of(ram: int, limit: int, vram: int = 0, vram_limit: int = 0, **more) -> Plan:
    parts = (Part("all", "", ram, vram, kind=Kind.activations),)
    return Plan(parts, Limit(limit, "a budget", vram_limit), **more)


@pytest.mark.parametrize(
    ("ram", "vram", "fits"),
    [(950, 0, True), (951, 0, False), (950, 95, True), (950, 96, False), (951, 95, False)],
)
def test_a_way_out_leaves_a_twentieth_of_both_limits_free(ram, vram, fits):
    assert fits_with_margin(plan_of(ram, 1000, vram, 100)) == fits


def test_without_a_device_its_limit_of_nothing_does_not_count():
    assert fits_with_margin(plan_of(10, 1000, vram=0, vram_limit=0))


@pytest.fixture(scope="module", autouse=True)
def anew():
    """What a process before this one found is not asked again (tools that break code fork)."""
    small.cache_clear()


@cache
def small(*words: str):
    sizes = ["algo.num_envs=5", "algo.n_steps=3", "algo.batch_size=10"]
    return compose_run([*TOY, *sizes, *words])


def sizes_below(budget: str) -> list[dict[str, int]]:
    run = small(f"memory.budget_gib={budget}")
    return list(shrunk_sizes(run, assemble(run, NOTHING, PROBE)))


def test_sizes_are_powers_of_two_below_the_present_ones_the_largest_first():
    both = [(4, 2), (4, 1), (2, 2), (2, 1), (1, 2), (1, 1)]

    assert sizes_below("1e-9") == [
        {"num_envs": n, "n_steps": t, "batch_size": n * t} for n, t in both
    ]


@pytest.mark.parametrize(
    ("size", "below"),
    [
        (1, []),
        (2, [1]),
        (3, [2, 1]),
        (4, [2, 1]),
        (5, [4, 2, 1]),
        (8, [4, 2, 1]),
        (9, [8, 4, 2, 1]),
    ],
)
def test_halves_end_with_one_and_never_with_the_size_itself(size, below):
    assert list(advice._halves(size)) == below


def test_one_size_alone_is_tried_before_both():
    alone = [{"num_envs": 4}, {"n_steps": 2}]  # 4 x 3 and 5 x 2 still hold a minibatch of 10

    assert sizes_below("1")[:2] == alone


def test_a_size_of_one_is_not_made_smaller():
    one = ["algo.num_envs=1", "algo.n_steps=1", "algo.normalize_advantage=false"]
    run = compose_run([*TOY, *one, "algo.batch_size=1"])

    assert list(shrunk_sizes(run, assemble(run, NOTHING, PROBE))) == []


def test_samples_are_those_of_a_minibatch_but_no_more_than_a_rollout_has():
    assert samples_of(small()) == 10
    assert samples_of(small("algo.batch_size=100")) == 15


def test_a_command_keeps_what_was_typed_but_for_what_is_given_anew():
    run = compose_run([*TOY, "algo.num_envs=5", "agent.actor=[8]"])
    run = replace(
        run, overrides=(*run.overrides, "compare=true", "why=all", "plan=probe", "format=x")
    )
    words = "tracking=disabled hardware.device=cpu 'agent.actor=[8]' plan=probe"
    words += " algo.num_envs=2 seed=3"

    assert command_of(run, ["algo.num_envs=2", "seed=3"]).endswith(f"train.py env=toy {words}")
    assert "scripts/plan.py env=toy" in command_of(run, (), "plan")
    assert "--config-dir" not in command_of(run)
    beside = command_of(replace(run, config_dir="my conf"))
    assert "train.py --config-dir 'my conf' env=toy" in beside


def test_a_plan_like_another_takes_its_measurements():
    run = small()
    measured = assemble(run, Base.everywhere(7000, Confidence.probed), PROBE)
    guessed = replace(measured, probed=False)

    assert alike(run, measured).parts == measured.parts
    assert alike(run, guessed).base.found is False
    assert alike(run, replace(measured, base=None)).probe is None


def labelled_words(ways) -> dict[tuple[str, ...], Label]:
    return {way.overrides: way.label for way in ways}


@pytest.fixture(scope="module")
def before():
    """A run with every saving off, its measured plan, and all ways to make it smaller."""
    run = small("memory=baseline")
    plan = assemble(run, NOTHING, PROBE)
    return run, plan, advise(run, plan, count=99)


def test_ways_of_a_label_come_by_their_peak_each_with_what_it_costs(before):
    _, _, ways = before
    lossless = [w for w in ways if w.label is Label.lossless]

    assert [w.plan.ram_bytes for w in lossless] == sorted(w.plan.ram_bytes for w in lossless)
    assert lossless[0].cost == "nothing: the same numbers"
    assert {w.cost for w in ways if w.label is Label.precision} == {"rounded values"}
    assert [(w.overrides, w.cost) for w in ways if w.label is Label.capacity] == [
        (("algo.num_envs=4",), "a smaller problem: num_envs 4"),
        (("algo.n_steps=2",), "a smaller problem: n_steps 2"),
    ]
    assert next(w for w in ways if w.label is Label.capacity).plan.transitions == 4 * 3


def test_what_is_not_advised_has_no_unit_or_must_be_measured_is_no_way(before):
    words = {word for way in before[2] for word in way.overrides}

    assert "memory.storage=lossless" in words
    assert "memory.micro_batch=10" in words  # an eighth, but no less than 32 or all there are
    assert "memory.rollout_location=memmap" not in words
    assert "memory.allocator=pinned" not in words
    assert "memory.rollout_location=device" not in words
    assert "memory.gradient_checkpointing=true" not in words  # what was measured is out of date


def test_three_ways_are_given_where_no_more_are_asked_for(before, monkeypatch):
    run, plan, ways = before
    monkeypatch.setattr(type(run), "variant", lambda self, extra: self)

    assert len(advise(run, plan)) == 3
    assert len(advise(run, plan, count=5)) == 5
    assert len(ways) > 5


def test_where_rewards_alone_are_too_many_only_a_smaller_problem_is_advised(before, monkeypatch):
    scalars = 5 * 3 * (1 + 5 * 4 + 1)
    run, plan, _ = before
    monkeypatch.setattr(type(run), "variant", lambda self, extra: self)
    exact = replace(plan, limit=Limit(scalars, "a budget"))
    above = replace(plan, limit=Limit(scalars - 1, "a budget"))

    assert Label.lossless in labelled_words(advise(run, exact, count=99)).values()
    assert {*labelled_words(advise(run, above, count=99)).values()} == {Label.capacity}


@pytest.mark.parametrize(
    ("ram", "vram", "worth"),
    [(1700, 0, True), (1702, 0, False), (500, 844, True), (500, 845, False), (1702, 844, False)],
)
def test_a_learner_is_measured_where_most_of_its_activations_would_do(
    ram, vram, worth, before, monkeypatch
):
    """1,000 bytes of activations, of which 750 might go; 950.95 of memory, 95 of the device."""
    run, asked = before[0], []
    parts = (
        Part("activations", "", 1000 - vram, vram, kind=Kind.activations),
        Part("others", "", ram - (1000 - vram), kind=Kind.rollout),
    )
    plan = Plan(parts, Limit(1001, "", 100), probed=True, base=NOTHING, probe=PROBE)
    monkeypatch.setattr(type(run), "variant", lambda self, extra: extra)
    monkeypatch.setattr(advice, "alike", lambda run, plan: plan)
    monkeypatch.setattr(advice, "draw_up", lambda *given: asked.append(given) or plan)
    monkeypatch.setattr(advice, "scalar_bytes", lambda *sizes: 0)
    monkeypatch.setattr(advice, "has_bf16", lambda device: False)

    advise(run, plan, probe=len)

    assert asked == [(("memory.gradient_checkpointing=true",), len)] * worth


def test_a_way_that_composes_no_run_is_left_out(before, monkeypatch):
    run, plan, _ = before

    def refuse(self, extra):
        raise ConfigError("no such thing")

    monkeypatch.setattr(type(run), "variant", refuse)

    assert {w.label for w in advise(run, plan, count=99)} == {Label.capacity}


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:0"])
def test_a_saving_is_served_by_the_device_that_the_run_names(device):
    run = replace(small(), hardware=replace(small().hardware, device=device))

    assert can_serve(BY_NAME["rollout on the device"], run) == (device != "cpu")
    assert can_serve(BY_NAME["gather by index"], run)
