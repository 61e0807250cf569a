"""Former words: a saved run is read as what it means today, a typed one is told the new word."""

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

import pytest

from frugal_rl.errors import CheckpointError, ConfigError
from frugal_rl.run.building import find_class
from frugal_rl.run.compose import compose_run
from frugal_rl.run.identity import check_same_run, identity
from frugal_rl.run.renamed import CLASSES, MODULES, current, current_values
from frugal_rl.run.saved import saved_run


def test_a_saved_configuration_is_read_with_the_words_of_today():
    old = {"env": {"obs": "ways", "levels": ["ways"]}, "agent": {"observation": "ways"}}
    assert current_values(old) == {
        "env": {"obs": "routes", "levels": ["ways"]},
        "agent": {"observation": "routes"},
    }


def test_a_former_word_on_the_command_line_is_refused_with_the_new_one():
    with pytest.raises(ConfigError, match=r"env\.obs=ways is called routes now: type env\.obs=r"):
        compose_run(["env=nclone", "env.obs=ways"])


def test_a_checkpoint_with_a_former_word_is_the_same_run():
    run = compose_run(["env=nclone", "env.obs=routes"])
    old = {**identity(run), "env": {**identity(run)["env"], "obs": "ways"}}
    check_same_run(run, old, "old.pt")
    values = dict(run.resolved)
    values["env"] = {**values["env"], "obs": "ways"}
    assert saved_run({"config": values}, compose_run(["env=nclone"])).env.obs.value == "routes"


@pytest.mark.parametrize(
    ("words", "part", "option", "other"),
    [
        (["env=toy"], "agent", "pixel_mean", "agent.pixel_mean=0.5"),
        (["env=fighting", "env.obs=ram"], "env", "pool", "env.pool=[a_run]"),
    ],
)
def test_a_checkpoint_from_before_an_option_goes_on_with_what_it_did(words, part, option, other):
    run = compose_run(words)
    known = identity(run)
    old = {**known, part: {k: v for k, v in known[part].items() if k != option}}
    check_same_run(run, old, "old.pt")
    with pytest.raises(CheckpointError, match=rf"trained with {part}\.{option}="):
        check_same_run(compose_run([*words, other]), old, "old.pt")


def test_whether_opened_mines_are_kept_makes_no_other_run():
    run = compose_run(["env=mine_daily_small"])
    for other in ({}, {"kept": False}):
        env = {k: v for k, v in identity(run)["env"].items() if k != "kept"}
        check_same_run(run, {**identity(run), "env": {**env, **other}}, "old.pt")


@pytest.mark.parametrize("old", sorted(m for m in MODULES if m.startswith("npp_rl")))
def test_a_class_of_a_moved_module_is_found_under_its_former_name(old):
    module, _, name = current(f"{old}.ClonedPpoLearner").rpartition(".")
    assert (module, name) == (MODULES[old], "ClonedPpoLearner")


@pytest.mark.parametrize("old", sorted(CLASSES))
def test_a_class_that_moved_alone_is_found_under_its_former_name(old):
    _, _, name = old.rpartition(".")
    assert find_class(old) is getattr(import_module(CLASSES[old]), name)


def test_two_moves_are_followed_one_after_the_other():
    assert current("npp_rl.cloned_ppo.ClonedPpo") == "npp_rl.teaching.config.ClonedPpo"
    assert current("frugal_rl.train.ppo.PpoConfig") == "frugal_rl.learn.ppo_config.PpoConfig"


@pytest.mark.parametrize("old", sorted(MODULES))
def test_a_former_module_is_refused_with_the_room_of_today(old):
    assert find_spec(MODULES[old]) is not None
    with suppress(ModuleNotFoundError):
        if find_spec(old) is not None:
            return  # a room has this name today
    with pytest.raises(ModuleNotFoundError, match=r" is called | is gone: ") as refused:
        import_module(old)
    assert MODULES[old].rpartition(".")[0] in str(refused.value)


def test_the_room_that_was_the_rollouts_names_the_stores():
    with pytest.raises(
        ModuleNotFoundError, match=r"frugal_rl\.rollout is gone: .* frugal_rl\.store"
    ):
        import_module("frugal_rl.rollout")


def test_a_module_that_never_was_gets_pythons_own_words():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'frugal_rl\.nothing'"):
        import_module("frugal_rl.nothing")
