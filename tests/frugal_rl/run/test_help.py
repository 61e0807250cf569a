"""`--help` shows groups, and options with what their files say, of the choices that were typed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from frugal_rl import cli
from frugal_rl.errors import ConfigError
from frugal_rl.run.compose import compose_run
from frugal_rl.run.help import descriptions, help_text
from frugal_rl.run.zoo.words import OPTIONS


def lines(*words, about="Train.", config_name="train"):
    return help_text(about, config_name, words).splitlines()


def option(key, *words):
    return next(line for line in lines(*words) if line.startswith(f"  {key}="))


def test_a_group_is_one_line_with_its_choices():
    (env,) = [line for line in lines("env=toy") if line.startswith("  env=")]

    assert env.split()[0] == "env=toy"
    assert "nclone, toy" in env


def test_the_zoos_entries_are_offered_with_all_their_words():
    (zoo,) = [line for line in lines("env=toy") if "algo=zoo" in line]

    assert all(f"zoo.{name}=" in zoo for name in OPTIONS)
    assert not any("zoo" in line for line in lines(config_name="report"))


def test_options_are_those_of_the_choices():
    assert "Distinct maps." in option("env.levels", "env=toy")
    assert not any(line.startswith("  env.levels=") for line in lines("env=gymnasium"))
    assert (
        option("memory.storage", "env=toy", "memory=baseline").split()[0]
        != (option("memory.storage", "env=toy").split()[0])
    )


def test_every_option_that_is_shown_composes():
    shown = [line.split()[0] for line in lines("env=toy") if line.startswith("  ") and "=" in line]
    words = [word for word in shown if word.startswith(("algo.", "agent.", "memory.", "env."))]

    assert len(words) > 50
    assert compose_run([*words, "env=toy"]).algo == compose_run(["env=toy"]).algo


def test_a_comment_belongs_to_the_key_below_it_and_to_no_other():
    said = descriptions("train", {"memory": "lossless", "algo": "ppo"})

    assert said["memory.frame_stack"] == "once | copies"
    assert said["memory.internal_observations"] == ""
    assert said["algo.n_steps"].startswith("Steps of each environment")
    assert said["evaluation.film"].startswith("Film an episode")


def test_a_files_own_comment_belongs_to_no_key():
    said = descriptions("train", {"memory/fit": "mine_baseline"})

    assert said["fit_epochs"] == ""


def test_a_terminal_gets_lines_no_wider_than_it_is(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "90")
    options = lines("env=toy")[
        lines("env=toy").index("options: KEY=VALUE, as they stand for these choices") :
    ]

    assert max(map(len, options)) <= 90


def test_a_mistyped_word_beside_help_is_refused():
    with pytest.raises(ConfigError, match="env=nclon is no choice"):
        lines("env=nclon")


def test_commands_without_groups_show_their_options():
    assert any(line.startswith("  format=") for line in lines(config_name="report"))
    assert not any(line.startswith("groups") for line in lines(config_name="report"))


def completed(line, tmp_path):
    """What a TAB offers at the end of a line."""
    program = tmp_path / "frugal-rl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m frugal_rl "$@"\n')
    program.chmod(0o755)
    asked = f'source "{cli.COMPLETION}"; COMP_LINE="{line}"; COMP_POINT={len(line)}; _frugal_rl; '
    words = ["bash", "-c", asked + 'printf "%s\\n" "${COMPREPLY[@]}"']
    path = f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
    answer = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_tab_completes_commands_and_choices(tmp_path):
    assert completed("frugal-rl tr", tmp_path) == ["train "]
    assert completed("frugal-rl train env=ncl", tmp_path) == ["nclone "]
    assert completed("frugal-rl train algo.total_st", tmp_path) == ["algo.total_steps="]
    assert completed("frugal-rl train env=toy --js", tmp_path) == ["--json "]
