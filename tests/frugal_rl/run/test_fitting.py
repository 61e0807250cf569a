"""The agent of a memory profile's overlay, and words that files name beside those of the user."""

import re
import sys
from pathlib import Path

import pytest
from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from frugal_rl import cli
from frugal_rl.errors import FrugalError
from frugal_rl.memory.checks import check_run
from frugal_rl.memory.finding import Severity
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.refusal import refusal
from frugal_rl.run.compose import compose_plain, compose_run
from frugal_rl.run.fitting import fitting_agent, fitting_words

CONF = Path(__file__).resolve().parents[3] / "conf"
HINT = re.compile(r"(?<![\w.'-])(?:(?:algo|env|memory|agent|vec)(?:\.[\w.]+)?=[^\s,;)]+ ?)+")
"""Overrides side by side in a sentence."""
WITHOUT_EPOCHS = ("dqn", "qr_dqn", "sac")


def names(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def said_of(words):
    """Why words compose no run; empty where they do."""
    try:
        compose_run(words)
    except FrugalError as refused:
        return str(refused)
    return ""


def never(words):
    raise AssertionError(f"{words} were composed")


@pytest.mark.parametrize("memory", ["baseline", "lossless"])
def test_the_overlay_that_is_read_says_what_the_composed_one_says(memory):
    words = ["env=mine", f"memory={memory}", "seed=3"]
    cfg, _ = compose_plain("train", words)

    composed = fitting_agent(cfg, words)

    assert fitting_words(words, never) == ([composed] if composed else [])


def test_without_a_plain_name_of_the_environment_the_groups_are_composed():
    seen = []

    def composed(words):
        seen.append(words)
        return compose_plain("train", ["env=mine", "memory=baseline"])[0]

    assert fitting_words(["memory=baseline", "seed=3"], composed) == ["agent=cnn3d"]
    assert seen == [["memory=baseline"]]


def test_a_command_composes_its_words_once_before_hydra_does(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ["env=toy", "algo.batch_size=100000", "tracking=disabled"]
    monkeypatch.setattr(sys, "argv", ["frugal-rl", "plan", *words])
    plain, composed = Hydra.compose_config, []

    def counted(self, *given, **named):
        composed.append(given)
        return plain(self, *given, **named)

    monkeypatch.setattr(Hydra, "compose_config", counted)
    try:
        with pytest.raises(SystemExit):
            cli.main()
    finally:
        GlobalHydra.instance().clear()
        HydraConfig.instance().cfg = None

    assert len(composed) == 2


@pytest.mark.parametrize("algo", WITHOUT_EPOCHS)
@pytest.mark.parametrize("memory", ["baseline", "lossless"])
def test_sizes_for_an_environment_name_no_option_that_an_algorithm_lacks(memory, algo):
    assert "is no option" not in said_of(["env=mine", f"memory={memory}", f"algo={algo}"])


def hints_of(words):
    """The overrides that a run's refusal, its checks and its advice name."""
    try:
        run = compose_run(words)
        plan = draw_up(run)
    except FrugalError as refused:
        return HINT.findall(str(refused))
    found = [f for f in check_run(run, plan) if f.severity is not Severity.ok]
    texts = [alternative for f in found for alternative in f.override.split(" or ")]
    texts += [] if plan.fits else [str(refusal(run, plan))]
    return [hint for text in texts if "scripts/" not in text for hint in HINT.findall(text)]


@pytest.mark.slow
@pytest.mark.parametrize("env", names("env"))
@pytest.mark.parametrize("algo", names("algo"))
@pytest.mark.parametrize("more", [[], ["memory=baseline", "memory.budget_gib=0.4"]])
def test_every_override_that_is_named_composes(env, algo, more):
    words = [f"env={env}", f"algo={algo}", *more]
    for hint in hints_of(words):
        own = [word.rstrip(".") for word in hint.split()]
        keys = {word.partition("=")[0] for word in own}
        kept = [word for word in words if word.partition("=")[0] not in keys]
        assert not re.search("is no (option|choice)", said_of([*kept, *own])), hint
