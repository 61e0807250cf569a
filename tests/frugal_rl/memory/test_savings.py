"""The table of savings: its labels are what training shows, and its page is made from it."""

import re
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import pytest
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.errors import ConfigError
from frugal_rl.memory import advice, rules_bytes, rules_training
from frugal_rl.memory.advice import can_serve
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.memory.savings import (
    BY_NAME,
    SAVINGS,
    Needs,
    Reader,
    as_markdown,
    filled,
    readers_of,
    typed,
)
from frugal_rl.observation.choices import Label
from frugal_rl.run.compose import compose_run, folder

TOY = (
    "env=toy", "tracking=disabled", "hardware.device=cpu", "hardware.threads=1", "algo.num_envs=6",
    "algo.n_steps=16", "algo.batch_size=48", "agent.actor=[16]", "agent.critic=[16]",
)  # fmt: skip
BEFORE = {
    "keep one process": ("memory=baseline", "vec=serial"),
    "merge trajectories in place": ("vec=episodes", "memory=baseline"),
}
"""What a saving is compared with, where that is not `memory=baseline` alone."""
SAME_PROBLEM = [s for s in SAVINGS if s.label is not Label.capacity]


@pytest.fixture(scope="module", autouse=True)
def anew():
    """What a process before this one found is not asked again (tools that break code fork)."""
    trained.cache_clear()


@cache
def trained(words: tuple[str, ...]) -> bytes:
    """All parameters after two iterations."""
    set_random_seed(0)
    run = replace(compose_run([*TOY, *words]), run_dir=gettempdir())
    env = run.env.make_vec(6, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, env)
    for _ in range(2):
        learner.iterate(lambda phase: nullcontext())
    env.close()
    values = learner.policy.state_dict().values()
    return b"".join(v.numpy(force=True).tobytes() for v in values)


@pytest.mark.parametrize("saving", SAME_PROBLEM, ids=lambda s: s.name)
def test_a_saving_is_lossless_exactly_where_training_stays_the_same_to_the_bit(saving):
    before = BEFORE.get(saving.name, ("memory=baseline",))
    keys = {word.partition("=")[0] for word in saving.words}
    kept = tuple(word for word in before if word.partition("=")[0] not in keys)

    same = trained(before) == trained((*kept, *filled(saving, 48, 4)))

    assert same == (saving.label is Label.lossless)


def test_the_page_holds_the_table_as_it_is():
    page = (folder("conf").parent / "docs" / "out_of_memory.md").read_text()

    assert f"savings -->\n{as_markdown()}<!--" in page


def test_savings_come_in_the_order_in_which_to_try_them():
    labels = [list(Label).index(s.label) for s in SAVINGS]

    assert labels == sorted(labels)
    assert len(BY_NAME) == len(SAVINGS)


def test_checks_take_their_words_from_the_table():
    for rules in (rules_bytes, rules_training):
        for literal in re.findall(r"memory(?:\.\w+)?=\w*", Path(rules.__file__).read_text()):
            assert literal == "memory.precision=float32"  # a saving undone, which is none
    assert typed("gather by index") == "memory.shuffle=gather"
    assert typed("micro-batches", 24) == "memory.micro_batch=24"


@pytest.mark.parametrize("saving", SAVINGS, ids=lambda s: s.name)
def test_a_saving_switches_on_what_the_profile_has_and_says_who_reads_it(saving):
    names = set(vars(MemoryProfile()))

    assert set(saving.switches) <= names
    assert all(readers_of(name) == saving.readers for name in saving.switches)
    assert bool(saving.readers) == bool(saving.switches)
    assert Reader.process not in saving.readers or len(saving.readers) == 1


@pytest.mark.parametrize(("units", "served"), [(True, True), (False, False)])
def test_bf16_is_no_way_out_where_nothing_has_units_for_it(units, served, monkeypatch):
    monkeypatch.setattr(advice, "has_bf16", lambda device: units)
    bf16 = BY_NAME["bfloat16 arithmetic"]

    assert bf16.needs is Needs.bf16_units
    assert can_serve(bf16, compose_run(list(TOY))) == served


def test_a_device_is_no_way_out_where_there_is_none():
    on_device = BY_NAME["rollout on the device"]

    assert not can_serve(on_device, compose_run(list(TOY)))
    assert can_serve(on_device, compose_run([*TOY[:2], "hardware.device=cuda"]))


@pytest.mark.parametrize(
    "words",
    [
        ("memory.storage=half",),
        ("memory.micro_batch=16", "memory.gradient_checkpointing=true"),
        ("memory.budget_gib=0.5",),
        ("memory=sparse", "memory.buffers=new"),
        ("algo.n_steps=32",),
    ],
    ids=" ".join,
)
def test_a_variant_is_the_run_that_its_words_compose(words):
    run = compose_run([*TOY, "memory.storage=dense"])
    keys = {word.partition("=")[0] for word in words}
    kept = [w for w in run.overrides if w.partition("=")[0] not in keys]

    varied, composed = run.variant(words), compose_run([*kept, *words])

    assert varied == composed
    assert varied.resolved == composed.resolved


def test_a_variant_refuses_what_its_words_would_be_refused_for():
    run = compose_run(list(TOY))

    with pytest.raises(ConfigError, match=r"memory\.graphs=always is not honoured"):
        run.variant(["memory.graphs=always"])
    with pytest.raises(ConfigError, match=r"memory\.micro_batch is -1"):
        run.variant(["memory.micro_batch=-1"])
