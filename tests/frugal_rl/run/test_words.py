"""Words of a command line: the nearest one to a mistake, what is asked for, what is an override."""

import os
import re

import pytest

from frugal_rl.errors import ConfigError, DiskError
from frugal_rl.report.speech import Mode
from frugal_rl.run.arguments import (
    asks,
    asks_for_help,
    check_form,
    check_letters,
    check_place,
    in_our_words,
    overrides,
    sweeps,
    switches_first,
    take_mode,
    typed_folders,
    typed_words,
)
from frugal_rl.run.composing import named_plugins
from frugal_rl.run.disk import FAULTS, UNREACHED, disk_in_words
from frugal_rl.run.elsewhere import NEAREST, NO_OPTION
from frugal_rl.run.mistyped import absent, meant
from frugal_rl.run.nearness import (
    SHOWN_OPTIONS,
    in_one_line,
    in_plain_digits,
    nearest,
    nearest_key,
    several_numbers,
)
from frugal_rl.run.search_path import choices, searching


def test_a_command_does_not_start_where_there_is_no_folder(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    check_place()
    gone.rmdir()
    with pytest.raises(ConfigError, match="was deleted; change into one that is there"):
        check_place()


@pytest.mark.parametrize("number", [*UNREACHED, *FAULTS])
def test_what_cannot_be_reached_is_told_with_its_path(number):
    with pytest.raises(DiskError) as told, disk_in_words():
        raise OSError(number, os.strerror(number), "/a/pa\x1bth")
    words = str(told.value)
    assert words.startswith("/a/pa\\x1bth ")
    assert f"({os.strerror(number)}). " in words
    assert words.isprintable()


def test_a_mistake_of_the_program_stays_one():
    with pytest.raises(FileNotFoundError), disk_in_words():
        raise FileNotFoundError(2, "No such file or directory", "/a/path")


@pytest.mark.parametrize(
    ("word", "options", "hint"),
    [
        ("lossles", ["lossless", "sparse"], "did you mean 'lossless'?"),
        ("zebra", ["lossless", "sparse"], "choose from lossless, sparse"),
        ("enviroment", ["env", "experiment", "vec"], "did you mean 'env'?"),
        ("zebra", ["b", "a"], "choose from a, b"),
        ("zebra", [], "there is nothing to choose from"),
    ],
)
def test_a_mistyped_word_is_answered_by_the_nearest_or_by_all(word, options, hint):
    assert nearest(word, options) == hint


def test_of_many_options_a_few_of_the_nearest_are_shown():
    options = [f"option_{n:02}" for n in range(20)]
    hint = nearest("zzzz", options)
    assert hint.startswith("choose from option_")
    assert hint.count(",") == SHOWN_OPTIONS - 1
    assert hint.endswith(" and 15 more")


def test_the_nearest_of_many_options_come_in_order_of_nearness():
    options = [f"xyq{n}{n}{n}{n}{n}{n}" for n in range(10)] + [
        "xyzqqqqqqqqqq",
        "xyzzqqqqqqqqqq",
        "xqqqqq",
    ]
    assert nearest("xyzz", options).startswith("choose from xyzzqqqqqqqqqq, xyzqqqqqqqqqq, xyq")


def test_twelve_options_are_shown_whole():
    options = [f"abc{n:02}" for n in range(12)]
    assert nearest("zzzz", options) == f"choose from {', '.join(options)}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("algo.num_env", "did you mean 'algo.num_envs'?"),
        ("env.zebra", "did you mean 'env.levels'?"),
        ("env.levls", "did you mean 'env.levels'?"),
        ("nothing.levels", "did you mean 'env.levels'?"),
        ("algos", "did you mean 'algo'?"),
    ],
)
def test_a_mistyped_key_is_answered_by_its_siblings_first(name, hint):
    known = {"algo", "algo.num_envs", "algo.n_steps", "env", "env.levels"}
    assert nearest_key(name, known) == hint


def test_what_hydra_says_becomes_one_line_without_its_tips():
    error = ValueError(
        "Could not override 'x'.\n  To append use +x\nNote: more\nSee https://h\nfull_key: x\n"
    )
    assert in_one_line(str(error)) == "Could not override 'x'. To append use +x"


def test_keys_that_people_type_otherwise_are_ours():
    words = ["env.spec=a.yaml", "env.spec_file=b", "seed=3", "bare"]
    assert in_our_words(words) == ["env.spec_file=a.yaml", "env.spec_file=b", "seed=3", "bare"]


@pytest.mark.parametrize(
    ("words", "mode", "left"),
    [
        (["env=toy"], Mode.people, ["env=toy"]),
        (["--json", "env=toy"], Mode.json, ["env=toy"]),
        (["env=toy", "--quiet"], Mode.quiet, ["env=toy"]),
    ],
)
def test_how_to_speak_is_taken_out_of_the_words(words, mode, left):
    assert take_mode(words) is mode
    assert words == left


def test_two_ways_to_speak_are_refused():
    with pytest.raises(ConfigError, match="cannot be had together"):
        take_mode(["--json", "--quiet"])


@pytest.mark.parametrize("word", ["-m", "--multirun"])
def test_a_sweep_is_asked_for_by_its_flag(word):
    assert sweeps(["env=toy", word])
    assert not sweeps(["env=toy", "algo.m=1"])


@pytest.mark.parametrize(
    "word", ["--cfg", "-c", "--info", "-i", "--version", "--hydra-help", "-sc"]
)
def test_what_asks_hydra_something_is_known(word):
    assert asks([word])
    assert not asks_for_help([word])


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_is_ours(word):
    assert asks_for_help(["env=toy", word])
    assert not asks(["env=toy", word])


def test_overrides_set_add_or_remove():
    words = ["env=toy", "+x=1", "++y=2", "~z", "~w=3", "-m", "--cfg", "job", "bare", "--a=b"]
    assert overrides(words) == ["env=toy", "+x=1", "++y=2", "~z", "~w=3"]


@pytest.mark.parametrize("flag", ["--config-path", "-cp", "--config-name", "-cn"])
def test_words_of_another_configuration_are_not_judged(flag):
    assert typed_words(["env=toy", flag, "other"]) == []
    assert typed_words(["env=toy"]) == ["env=toy"]


@pytest.mark.parametrize(
    ("words", "folders"),
    [
        (["--config-dir", "a"], ["a"]),
        (["-cd", "a", "env=toy"], ["a"]),
        (["--config-dir=a"], ["a"]),
        (["-cd", "a", "--config-dir=b"], ["a", "b"]),
        (["env=toy", "-cd"], []),
    ],
)
def test_a_folder_of_configurations_stands_behind_a_blank_or_an_equals_sign(words, folders):
    assert typed_folders(words) == folders


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["env=toy", "-m", "~x"],
        ["--config-dir", "somewhere"],
        ["-cn", "train"],
        ["hydra.launcher.n_jobs=2"],
        ["--multirun"],
    ],
)
def test_words_of_a_right_form_pass(words):
    check_form(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nclone"], "nclone is no override, which are written key=value: env=nclone?"),
        (["env:toy"], "env:toy is no override, which are written key=value: env=toy?"),
        (["--env=toy"], "--env=toy is no option; write env=toy"),
        (["--env", "toy"], "--env is no option; write env=toy"),
        (["-seed=3"], "-seed=3 is no option; write seed=3"),
        (["--resume"], "--resume is no option; write resume="),
    ],
)
def test_words_of_another_form_are_refused_with_the_right_one(words, said):
    with pytest.raises(ConfigError) as refused:
        check_form(words)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], []),
        (["env=toy"], []),
        (["plugins=lantern"], ["lantern"]),
        (["plugins=[lantern,torch_house]"], ["lantern", "torch_house"]),
        (["+plugins=[lantern]", "env=toy"], ["lantern"]),
        (["plugins=[]"], []),
        (["env.plugins=[no]"], []),
    ],
)
def test_packages_that_are_named_are_found_before_anything_is_composed(words, named):
    assert named_plugins(words) == named


@pytest.mark.parametrize("word", ["plugins=[a", "plugins=[a,]]", "plugins='a"])
def test_a_list_that_is_not_closed_is_refused_in_words(word):
    with pytest.raises(ConfigError, match="cannot be read: close its brackets and quotes"):
        named_plugins([word])


def test_letters_that_the_locale_does_not_know_are_refused_with_the_remedy():
    word = "plugins=f\N{LATIN SMALL LETTER U WITH DIAERESIS}r".encode()
    with pytest.raises(ConfigError, match=r"plugins=für holds letters .*set PYTHONUTF8=1"):
        check_letters([word.decode("ascii", "surrogateescape")])  # as Python does in the locale C


def test_a_switch_may_stand_anywhere():
    typed = ["env=toy", "-m", "--config-dir", "mine", "seed=1,2", "--multirun"]
    assert switches_first(typed) == [
        "-m",
        "--multirun",
        "env=toy",
        "--config-dir",
        "mine",
        "seed=1,2",
    ]


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("1M", " Write it without a unit: 1000000."),
        ("100k", " Write it without a unit: 100000."),
        ("99%", " Write it without a unit: 0.99."),
        ("8GiB", " Write it without a unit: 8."),
        ("30min", " Write it without a unit."),
        ("eight", ""),
        ("1e6", ""),
    ],
)
def test_a_number_with_a_unit_is_told_without(typed, hint):
    assert in_plain_digits(typed) == hint


def test_capitals_and_a_blank_behind_the_sign_are_understood():
    assert nearest("PPO", ["ppo", "sac"]) == "did you mean 'ppo'?"
    assert absent("WANDB_MODE", {"seed"}) == "a variable of the shell stands before the command"
    assert absent("agent.hidden", {"agent.actor"}) == "did you mean 'agent.actor'?"
    with pytest.raises(ConfigError, match=r"key=value: env=toy\?"):
        check_form(["env=", "toy"])


def test_the_folder_of_a_group_is_not_the_folder_of_configurations(tmp_path):
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "own.yaml").touch()
    with searching([], [str(tmp_path / "env")]):
        assert meant("env", "own", {"toy"}).endswith(f"the folder above it is meant: {tmp_path}")


@pytest.mark.parametrize(
    ("group", "name", "hint"),
    [
        ("algo", "A2C", "algo=ppo algo.n_epochs=1 comes nearest"),
        ("tracking", "none", "did you mean 'disabled'?"),
        ("vec", "DummyVecEnv", "did you mean 'serial'?"),
        ("env", "cartpole", "did you mean env=gymnasium env.id=CartPole-v1?"),
        ("env", "Frozen-Lake-v0", "a Gymnasium id is written env=gymnasium env.id=Frozen-Lake-v0"),
        ("env", "frozen_lake", "did you mean env=gymnasium env.id=FrozenLake-v1?"),
        ("env", "ty", "did you mean 'toy'?"),
        ("env", "zzz", "choose from nclone, toy"),
    ],
)
def test_what_other_programs_call_a_choice_is_told_as_it_is_here(group, name, hint):
    assert meant(group, name, {"nclone", "toy"} if group == "env" else {"sac", "online"}) == hint


def test_every_choice_that_a_hint_names_is_there():
    for group, hints in NEAREST.items():
        for hint in hints.values():
            named = re.findall(r"'(\w+)'|\b(?:algo|agent)=(\w+)", hint)
            assert {a or b for a, b in named} <= choices(group) | {""}, hint


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("1-3", " A job for each of them is -m 'seed=range(1,4)'."),
        ("0..9", " A job for each of them is -m 'seed=range(0,10)'."),
        ("3-1", ""),
        ("-3", ""),
        ("1-3-5", ""),
    ],
)
def test_several_numbers_for_one_are_told_to_be_jobs(value, hint):
    assert several_numbers("seed", value) == hint


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["CartPole-v1"], "env=gymnasium env.id=CartPole-v1"),
        (["nclone"], "env=nclone"),
        (["parallel"], "memory=parallel"),
        (["env", "nclone"], "env=nclone"),
        (["compare"], "compare=true"),
        (["model.zip"], "checkpoint=model.zip"),
        (["runs/toy"], "checkpoint=runs/toy or runs=[runs/toy]"),
        (["walk"], "walk=VALUE"),
    ],
)
def test_a_word_alone_is_answered_by_the_override_that_it_may_mean(words, hint):
    with pytest.raises(ConfigError, match=re.escape(f"written key=value: {hint}?")):
        check_form(words)


@pytest.mark.parametrize("name", ["algo.policy_kwargs", "policy_kwargs"])
def test_what_is_no_option_here_is_told_how_it_is_had(name):
    assert absent(name, {"algo.clip_range", "agent"}) == NO_OPTION["policy_kwargs"]
