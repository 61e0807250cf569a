"""What `scripts/plan.py` prints, as tables and as JSON, and its exit code."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory.duration import Duration
from frugal_rl.memory.part import Part
from frugal_rl.memory.plan import Plan, draw_up
from frugal_rl.report.plan_command import (
    Format,
    PlanOptions,
    compared,
    launcher_words,
    profiles,
    recommended,
    show_plan,
)
from frugal_rl.report.plan_why import part_named
from frugal_rl.run.compose import compose_run

BASE = ["env=toy", "tracking=disabled"]
JSON = PlanOptions(format=Format.json)


def test_a_plan_that_fits_says_so_and_gives_the_command(capsys):
    code = show_plan(compose_run([*BASE, "memory=parallel"]), PlanOptions(), None).status
    printed = capsys.readouterr().out

    assert code == 0
    assert "fits: " in printed
    assert "python scripts/train.py env=toy tracking=disabled memory=parallel" in printed
    assert "arithmetic only" in printed


def test_the_json_of_a_plan_that_does_not_fit_has_advice_and_the_command_that_follows_it(capsys):
    words = [*BASE, "memory=baseline", "algo.n_steps=300000", "memory.budget_gib=2"]
    code = show_plan(compose_run(words), JSON, None).status
    values = json.loads(capsys.readouterr().out)

    assert code == 3
    assert values["verdict"] == "does not fit"
    assert values["advice"][0]["overrides"] == ["memory=lossless"]
    assert values["command"].endswith("memory.budget_gib=2 memory=lossless")
    again = draw_up(compose_run(values["command"].split()[2:]))
    assert again.fits
    assert {c["id"] for c in values["checks"]} >= {"F01", "F09", "F11"}


def test_no_command_is_printed_that_would_be_refused(capsys):
    hopeless = compose_run([*BASE, "memory.budget_gib=0.1"])
    mended = compose_run([*BASE, "algo.batch_size=100000"])

    assert show_plan(hopeless, PlanOptions(), None).values["command"] == ""
    assert "raise the limit" in capsys.readouterr().out.splitlines()[-1]
    assert show_plan(mended, PlanOptions(), None).status == 3
    assert capsys.readouterr().out.splitlines()[-1].endswith(" algo.batch_size=4096")


def test_all_profiles_are_compared_and_impossible_ones_say_why(capsys):
    plans = dict(compared(compose_run(BASE)))

    assert set(plans) == set(profiles()) - {"auto"}
    assert isinstance(plans["lossless"], Plan)
    assert plans["lossless"].rollout_bytes < plans["baseline"].rollout_bytes
    assert "has no sizes for env=toy" in plans["small"]


def test_a_budget_recommends_the_cheapest_profile_that_fits(capsys):
    words = [*BASE, "algo.n_steps=20000"]
    roomy = compared(compose_run([*words, "memory.budget_gib=8"]))
    tight = compared(compose_run([*words, "memory.budget_gib=0.6"]))

    assert recommended(roomy) in ("parallel", "lossless")
    assert dict(tight)[recommended(tight)].label == "lossless"
    assert not dict(tight)["baseline"].fits


@pytest.mark.parametrize("form", list(Format))
def test_a_comparison_exits_with_three_where_nothing_fits(form, capsys):
    run = compose_run([*BASE, "memory.budget_gib=0.01"])

    assert show_plan(run, PlanOptions(compare=True, format=form), None).status == 3
    assert "No profile fits" in capsys.readouterr().out or form is Format.json


def test_a_cluster_is_asked_for_what_is_planned_and_a_tenth_more():
    run = compose_run(["env=toy", "hardware=laptop_32g_16g", "hardware.device=cpu"])
    plan = replace(draw_up(run), parts=(Part("all", "", 10 << 30),))

    words = launcher_words(run, plan)

    assert words[0] == "hydra/launcher=submitit_slurm"
    assert words[1:] == [
        "hydra.launcher.mem_gb=11",
        "hydra.launcher.cpus_per_task=8",
        "hydra.launcher.gpus_per_node=0",
    ]


@pytest.mark.parametrize(("timed", "asked"), [(True, ["hydra.launcher.timeout_min=100"]),
                                              (False, [])])  # fmt: skip
def test_a_cluster_is_asked_for_the_time_of_a_kind_that_was_timed(timed, asked):
    run = compose_run(["env=toy"])
    plan = replace(draw_up(run), duration=Duration(30.0, 6.0, 0.0, 100, timed))

    assert launcher_words(run, plan)[4:] == asked


def test_a_cluster_is_asked_for_all_processes_of_a_machine():
    """It was asked for one of them, and would have killed the job."""
    run = compose_run(["env=toy", "launch.processes=4", "launch.nodes=2", "hardware.cores=16"])
    plan = replace(draw_up(run), parts=(Part("all", "", 10 << 30, 1),))

    assert launcher_words(run, plan)[1:] == [
        "hydra.launcher.mem_gb=44",
        "hydra.launcher.cpus_per_task=16",
        "hydra.launcher.gpus_per_node=4",
    ]


NAMES = ("margin", "rollout: age", "rollout: action_mask", "interpreter and libraries")


@pytest.mark.parametrize(
    ("name", "hint"), [("rollout", "choose from rollout: .*, rollout: "), ("margins", "'margin'")]
)
def test_a_part_that_is_none_is_answered_by_those_that_begin_so_or_the_nearest(name, hint):
    with pytest.raises(ConfigError, match=f"why={name} is no part of this plan; .*{hint}"):
        part_named(SimpleNamespace(parts=[Part(n, "", 1) for n in NAMES]), name)
