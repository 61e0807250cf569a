"""Values that cannot work are refused like mistyped keys: one line with key, value and remedy."""

import math

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory import MemoryProfile
from frugal_rl.ranges import Range, above, at_least, between, check_ranges, one_of
from frugal_rl.run.compose import compose_run

REFUSED = {
    "algo.learning_rate": ("nan", "inf", "-inf", "-1", "0"),
    "algo.clip_range": ("-0.2", "0", "nan"),
    "algo.clip_range_vf": ("-1",),
    "algo.max_grad_norm": ("-1", "0", "inf"),
    "algo.gamma": ("1.01", "-0.1", "nan"),
    "algo.gae_lambda": ("2",),
    "algo.vf_coef": ("-0.5",),
    "algo.ent_coef": ("nan", "inf"),
    "algo.target_kl": ("0", "-1"),
    "algo.adam_eps": ("0", "-1e-5"),
    "algo.num_envs": ("0", "-4"),
    "algo.n_steps": ("0",),
    "algo.batch_size": ("0",),
    "algo.n_epochs": ("0",),
    "algo.total_steps": ("-1",),
    "agent.actor": ("[64,0]", "[-1]"),
    "agent.image_features": ("0",),
    "evaluation.num_envs": ("0", "-1"),
    "evaluation.episodes": ("-1",),
    "evaluation.every_steps": ("-1",),
    "evaluation.seed": ("-1", "4294967296"),
    "hardware.cores": ("0", "-2"),
    "hardware.threads": ("-1",),
    "hardware.device": ("gpu", "cuda:", "cuda:x", "''"),
    "hardware.ram_gib": ("0", "-1", "nan"),
    "hardware.vram_gib": ("-1", "inf"),
    "tracking.wandb": ("onlin", "true"),
    "launch.scheduler": ("pbs",),
    "memory.budget_gib": ("nan", "inf", "-1", "0"),
    "memory.micro_batch": ("-1",),
    "memory.watchdog_share": ("0", "1.5", "nan"),
    "checkpoint_every_steps": ("-1",),
    "seed": ("-1", "4294967296"),
}
CASES = [f"{key}={value}" for key, values in REFUSED.items() for value in values]
ALLOWED = (
    "algo.learning_rate=1e-9", "algo.gamma=1", "algo.gamma=0", "algo.target_kl=null",
    "algo.ent_coef=-0.01", "hardware.device=cuda:0", "hardware.vram_gib=0", "evaluation.episodes=0",
    "memory.watchdog_share=1", "seed=4294967295",
    "algo.learning_rate={_target_: frugal_rl.learn.schedules.Linear, start: 0.0003, end: 0}",
)  # fmt: skip


@pytest.fixture(scope="module")
def composed():
    """One composition; values are put in beside it, which takes a millisecond each."""
    return compose_run(["env=toy"]).resolved


def built(composed, word: str):
    from copy import deepcopy

    import yaml

    from frugal_rl.run.compose import run_from

    key, _, text = word.partition("=")
    values = deepcopy(dict(composed))
    *path, name = key.split(".")
    node = values
    for part in path:
        node = node[part]
    special = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    node[name] = special[text] if text in special else _number(yaml.safe_load(text))
    return run_from(values, (word,))


def _number(value):
    """YAML 1.1 reads `1e-9` as a word; Hydra's grammar as a number."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


@pytest.mark.parametrize("word", CASES)
def test_a_value_that_cannot_work_is_refused_by_its_key(composed, word):
    with pytest.raises(ConfigError) as error:
        built(composed, word)

    said = str(error.value)
    assert said.startswith(word.partition("=")[0])
    assert "; use " in said or "it takes" in said
    assert "\n" not in said


@pytest.mark.parametrize("word", ALLOWED)
def test_the_ends_of_a_range_are_where_they_are_said_to_be(composed, word):
    assert built(composed, word)


def test_a_typed_word_takes_the_same_way():
    with pytest.raises(ConfigError, match=r"algo\.learning_rate is -1.0; use a number above 0\."):
        compose_run(["env=toy", "algo.learning_rate=-1"])


def test_a_schedule_is_looked_into(composed):
    with pytest.raises(ConfigError, match=r"algo\.learning_rate\.start is -1"):
        built(
            composed,
            "algo.learning_rate={_target_: frugal_rl.learn.schedules.Linear, start: -1}",
        )


def test_a_profile_that_is_made_by_hand_is_looked_at_too():
    with pytest.raises(ConfigError, match=r"memory\.budget_gib is nan"):
        MemoryProfile(budget_gib=math.nan)


@pytest.mark.parametrize(
    ("limit", "inside", "outside", "words"),
    [
        (above(0), 0.1, 0, "a number above 0"),
        (at_least(1), 1, 0.9, "a number of at least 1"),
        (between(0, 1), 1, 1.1, "a number of at least 0 and at most 1"),
        (Range(0, 1, open_low=True, open_high=True), 0.5, 1, "a number above 0 and below 1"),
        (Range(high=3), 3, 4, "a number at most 3"),
        (Range(), -5, math.inf, "a finite number"),
        (one_of("a", "b"), "a", "c", "a or b"),
        (one_of("a", "b", pattern=r"c:\d"), "c:1", "c:", "a or b"),
    ],
)
def test_a_limit_says_what_it_takes(limit, inside, outside, words):
    assert limit.takes(inside)
    assert not limit.takes(outside)
    assert str(limit) == words


def test_what_declares_nothing_is_not_looked_at():
    from frugal_rl.run.config import Evaluation

    check_ranges(Evaluation(deterministic=False))
