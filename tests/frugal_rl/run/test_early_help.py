"""`--help` imports little, and what was kept of it is never stale."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from frugal_rl import remembered
from frugal_rl.run import early_help, kept_help

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"gymnasium", "numpy", "psutil", "rich", "torch"}
SCRIPTS = sorted(path.stem for path in (ROOT / "conf").glob("*.yaml"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home, with no cache in it yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """A folder of configurations that may be changed."""
    folder = tmp_path / "conf"
    shutil.copytree(ROOT / "conf", folder)
    monkeypatch.setattr(kept_help, "conf_folders", lambda: [folder])
    return folder


def imported(*words):
    """What a command printed, and the libraries that it imported."""
    command = [sys.executable, "-X", "importtime", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return done.stdout, {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("words", [["scripts/plan.py"], ["-m", "frugal_rl", "plan"]])
def test_help_imports_hydra_alone_and_the_second_time_nothing(words, home, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    first, libraries = imported(*words, "--help", "env=toy")
    second, fewer = imported(*words, "--help", "env=toy")

    assert first == second
    assert "  env.levels=" in first
    assert "hydra" in libraries
    assert not HEAVY & libraries
    assert not (HEAVY | {"hydra", "omegaconf"}) & fewer


def test_help_of_other_words_is_kept_beside_it(home):
    for number in range(kept_help.MOST + 2):
        kept_help.write("plan", f"recipe {number}", f"text {number}")

    assert kept_help.read("plan", f"recipe {kept_help.MOST + 1}") == f"text {kept_help.MOST + 1}"
    assert kept_help.read("plan", "recipe 2") == "text 2"
    assert kept_help.read("plan", "recipe 1") is None
    assert kept_help.read("train", "recipe 2") is None


def test_every_file_word_and_width_is_a_part_of_the_recipe(conf):
    first = kept_help.recipe(["plan"])

    assert kept_help.recipe(["plan"]) == first
    assert kept_help.recipe(["plan", "env=toy"]) != first
    (conf / "env" / "toy.yaml").write_text((conf / "env" / "toy.yaml").read_text() + "# changed\n")
    second = kept_help.recipe(["plan"])
    assert second != first
    (conf / "agent" / "mine.yaml").write_text("")
    assert kept_help.recipe(["plan"]) not in (first, second)


def test_other_code_is_another_recipe(conf, monkeypatch):
    first = kept_help.recipe(["plan"])
    monkeypatch.setattr(remembered, "code_digest", lambda *names: "other")

    assert kept_help.recipe(["plan"]) != first


@pytest.mark.parametrize("value", ["${oc.env:HOME}", "${now:%H}", "${my.resolver:1}"])
def test_what_the_environment_decides_is_not_kept(conf, value):
    assert kept_help.recipe(["plan"])
    (conf / "env" / "mine.yaml").write_text(f"data: {value}\n")

    assert kept_help.recipe(["plan"]) is None


def test_a_word_that_refers_elsewhere_is_not_kept(conf):
    assert kept_help.recipe(["seed=${oc.env:X}"]) is None


def test_a_plugin_of_hydra_that_may_look_elsewhere_is_not_trusted(conf, monkeypatch):
    monkeypatch.setattr(kept_help, "_plugins_of_hydra", lambda: {"hydra_elsewhere"})

    assert kept_help.recipe(["plan"]) is None


@pytest.mark.parametrize("word", ["--json", "zoo.env=a", "algo=zoo", "nothing", "--config-dir"])
def test_words_that_are_more_than_overrides_are_left_to_the_script(word, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["scripts/plan.py", "--help", word])

    early_help.answer("plan", "Plan.")

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_command_answers_early(script, home, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"scripts/{script}.py", "-h"])

    with pytest.raises(SystemExit) as ended:
        early_help.answer(script, "About it.")

    assert not ended.value.code
    assert capsys.readouterr().out.startswith("About it.\n\nusage: ")
