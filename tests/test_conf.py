"""Every file in conf/ says when to choose it, composes, and sits where its package is right."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from frugal_rl.errors import ConfigError
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.auto import prepare
from frugal_rl.memory.base import tiny
from frugal_rl.memory.plan import draw_up
from frugal_rl.report.log import open_log
from frugal_rl.run.building import build_as
from frugal_rl.run.compose import compose_run, folder
from frugal_rl.run.composing import compose_plain, plain
from frugal_rl.run.trainer import train

CONF = folder("conf")
FILES = sorted(p for p in CONF.rglob("*.yaml") if "local" not in p.parts)
PROFILES = sorted(p.stem for p in (CONF / "memory").glob("*.yaml"))


def choices(group: str) -> list[str]:
    return sorted(p.stem for p in (CONF / group).glob("*.yaml"))


ENVIRONMENTS = [
    *(e for e in choices("env") if "_" not in e),
    *(f"nclone env.obs={obs}" for obs in ("routes", "graph", "pixels", "full")),
    "fighting env.obs=gray", "mine_cpit",
]  # fmt: skip
UNREADABLE = {("mine", "attention"), ("mine", "sparse")}
"""The column network beside a stored grid: neither columns nor what they follow from is kept."""
SMALL = ["algo.num_envs=4", "algo.n_steps=4", "algo.batch_size=8"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(CONF)))
def test_the_first_line_says_when_to_choose_it(path: Path):
    lines = path.read_text().splitlines()
    first = lines[1] if lines[0].startswith("# @package") else lines[0]

    assert re.match(r"# \S.{15,}[.:]", first), first


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(CONF)))
def test_profiles_and_experiments_are_global_and_nothing_else_is(path: Path):
    parts = path.relative_to(CONF).parts
    wants_global = parts[0] in ("memory", "experiment") or "fit" in parts

    assert path.read_text().startswith("# @package _global_\n") == wants_global


def test_the_primary_values_stand_before_the_groups_so_that_a_profile_beats_them():
    lines = yaml.safe_load((CONF / "train.yaml").read_text())["defaults"]

    assert lines[0] == "_self_"
    groups = [next(iter(line)) for line in lines[1:]]
    assert groups.index("agent") < groups.index("env") < groups.index("memory")
    assert groups.index("algo") < groups.index("memory")


@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_declares_every_switch_and_its_own_name(profile):
    cfg, _ = compose_plain("train", [f"memory={profile}"])
    values = plain(cfg)["memory"]
    target = values.pop("_target_")

    built = build_as(MemoryProfile, values, "memory")

    assert target == "frugal_rl.memory.MemoryProfile"
    assert set(values) == set(MemoryProfile.__dataclass_fields__)
    assert built.profile == profile


@pytest.mark.parametrize("profile", PROFILES)
def test_the_words_that_a_profile_offers_are_those_of_the_switch(profile):
    lines = [
        line.strip() for line in (CONF / "memory" / f"{profile}.yaml").read_text().splitlines()
    ]
    for above, line in pairwise(lines):
        words, key = above.removeprefix("# ").partition(":")[0], line.partition(":")[0]
        if " | " in words:
            switch = MemoryProfile.__dataclass_fields__[key].default
            assert set(words.split(" | ")) == {choice.value for choice in type(switch)}, key


def test_a_profile_beats_the_algorithm_and_the_command_line_beats_the_profile():
    profile, _ = compose_plain("train", ["memory=parallel"])
    typed, _ = compose_plain("train", ["memory=parallel", "algo.num_envs=7"])

    assert profile.algo.num_envs == 128
    assert typed.algo.num_envs == 7


def test_profiles_differ_only_where_their_table_says_so():
    lossless, baseline = (
        plain(compose_plain("train", [f"memory={p}"])[0])["memory"]
        for p in ("lossless", "baseline")
    )
    same = {k for k in lossless if lossless[k] == baseline[k]}

    assert same == {
        "_target_", "label", "rollout_location", "precision", "micro_batch",
        "gradient_checkpointing", "budget_gib", "max_hours", "allow", "watchdog_share",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["plan", "evaluate"])
def test_the_other_commands_are_train_and_a_few_keys(name):
    train, _ = compose_plain("train", [])
    other, _ = compose_plain(name, [])

    assert set(train) < set(other)


def test_overlays_name_an_environment_and_a_profile_that_exist():
    for path in (CONF / "memory" / "fit").glob("*.yaml"):
        env, _, profile = path.stem.partition("_")
        assert env in choices("env")
        assert profile in PROFILES


def refused(words: list[str]) -> bool:
    """Whether the profile asks for sizes that nobody knows of this environment; said in words."""
    env, profile = words[0].removeprefix("env="), words[-1].removeprefix("memory=")
    values = yaml.safe_load((CONF / "memory" / f"{profile}.yaml").read_text())["memory"]
    label = values.get("label")
    if label != "capacity" or (CONF / "memory" / "fit" / f"{env}_{profile}.yaml").is_file():
        return False
    with pytest.raises(ConfigError, match=f"memory={profile} .*Profiles that fit: "):
        compose_run(words)
    return True


@pytest.mark.parametrize("profile", [p for p in PROFILES if p != "auto"])
@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_profile_with_every_environment_is_planned_or_refused_in_words(env, profile):
    words = [*f"env={env}".split(), f"memory={profile}"]
    if refused(words):
        return

    run = compose_run([*words, *SMALL])

    assert draw_up(run).rollout_bytes > 0
    assert run.memory.profile == profile


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_profile_with_every_environment_runs_or_is_refused_in_words(env, profile, tmp_path):
    words = [*f"env={env}".split(), f"memory={profile}"]
    if refused(words):
        return

    run, plan = prepare(compose_run([*words, *SMALL, "tracking=disabled"]))
    run = replace(tiny(run), run_dir=str(tmp_path))
    with open_log(run, plan) as log:
        if (env, profile) in UNREADABLE:
            with pytest.raises(ConfigError, match=r"reads 'columns'.*Choose env\.fields\.columns="):
                train(run, log)
            return
        summary = train(run, log)

    assert summary["num_steps"] >= run.algo.total_steps
    assert (tmp_path / summary["checkpoint"]).is_file()


@pytest.mark.parametrize("env", choices("env"))
def test_the_fields_that_an_environment_lists_are_those_of_its_observation(env):
    cfg, _ = compose_plain("train", [f"env={env}"])
    listed = set(cfg.env.get("fields") or {})
    run = compose_run([f"env={env}"])

    assert {f.name for f in run.env.spec().fields} <= listed


def test_compose_run_names_the_choices_that_were_made(monkeypatch):
    seen = {}
    monkeypatch.setattr("frugal_rl.run.compose.run_from", lambda v, *_: seen.update(v))

    compose_run(["memory=sparse", "env=toy"])

    assert (seen["choices"]["memory"], seen["choices"]["env"]) == ("sparse", "toy")


@pytest.mark.parametrize("env", ["nclone", "fighting"])
def test_what_fits_ppo_to_an_environment_is_given_to_no_other_algorithm(env: str):
    assert compose_run([f"env={env}"]).algo.ent_coef > 0
    assert compose_run([f"env={env}", "algo=dqn"]).algo.batch_size == 32
