"""Printed commands begin as the present one was typed, so that they work where it was."""

import ast
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from frugal_rl import cli, invocation
from frugal_rl.invocation import command_words, program_word
from frugal_rl.report.closing import next_commands
from frugal_rl.run.command import Script
from frugal_rl.run.compose import compose_run


@pytest.fixture(autouse=True)
def unknown(monkeypatch):
    monkeypatch.setattr(invocation, "_CALLED", [])


def test_a_script_answers_with_its_neighbour(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["../scripts/plan.py", "env=toy"])

    assert command_words("train")[1] == "../scripts/train.py"


def test_an_interpreter_that_is_not_on_the_path_is_named_by_its_place(monkeypatch, tmp_path):
    program = tmp_path / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(sys, "argv", ["scripts/plan.py"])
    monkeypatch.setenv("PATH", "/usr/bin")

    assert command_words("train") == [".venv/bin/python", "scripts/train.py"]
    monkeypatch.setenv("PATH", str(program.parent))
    assert command_words("train") == ["python", "scripts/train.py"]
    assert program_word("wandb") == "wandb"


def test_the_console_command_answers_with_itself(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/opt/bin/frugal-rl", "plan"])
    invocation.called_as(cli.beginning())

    assert Path(command_words("report")[0]).name == "frugal-rl"
    assert command_words("report")[1:] == ["report"]


def test_the_next_commands_keep_folder_and_plugins_of_the_run():
    run = compose_run(["env=nclone", "plugins=[fighting]", "algo.total_steps=1000"])
    run = replace(run, config_dir="my conf", run_dir="runs/a b")
    play, report, resume = next_commands(run, {"interrupted": True})

    for line in (play, resume):
        assert "--config-dir 'my conf'" in line
        assert "'plugins=[fighting]'" in line
    assert "resume=" in resume
    assert "runs/a b" in report
    further = list(next_commands(run, {}))[2]
    assert "algo.total_steps=2000" in further
    assert "algo.total_steps=1000 " not in further


SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.parametrize("script", ["plan", "train", "doctor"])
def test_a_python_without_the_package_hears_which_one_to_use(script):
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPTS / f"{script}.py"), "env=toy"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    said = done.stderr.splitlines()
    assert len(said) == 1
    assert said[0].startswith("No module named 'frugal_rl'. Use .venv/bin/python")


def test_every_script_says_so():
    beginnings = {
        path.read_text().partition('"""\n\n')[2].partition("# isort")[0]
        for path in SCRIPTS.glob("*.py")
    }

    assert len(beginnings) == 1
    assert "raise SystemExit" in beginnings.pop()


def test_a_process_of_its_own_is_started_as_this_one_was(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/opt/bin/frugal-rl", "train"])
    invocation.called_as(cli.beginning())

    assert invocation.starting("train", SCRIPTS) == [sys.executable, "/opt/bin/frugal-rl", "train"]
    invocation.called_as(None)
    monkeypatch.setattr(sys, "argv", ["scripts/ablate.py", "env=toy"])
    assert invocation.starting("train", SCRIPTS) == [sys.executable, "scripts/train.py"]
    monkeypatch.setattr(sys, "argv", ["my/program.py"])
    assert invocation.starting("train", SCRIPTS) == [sys.executable, str(SCRIPTS / "train.py")]


def test_a_job_in_a_launchers_process_prints_what_its_sweep_was_called_by(monkeypatch):
    invocation.called_as(invocation.Called(("frugal-rl",), ("-m", "frugal_rl")))
    command = Script("train", lambda cfg: None)
    invocation.called_as(None)  # as in a process that unpickled it

    command.job({}, SimpleNamespace(number=0, side_by_side=False, command=None))

    assert command_words("report") == ["frugal-rl", "report"]


PRINTED = re.compile(r"scripts/\w+\.py|\bpip install\b|\bfrugal-rl \w|\bwandb (sync|login)\b")
BY_HAND = {
    "frugal_rl/invocation.py": "makes them",
    "frugal_rl/__main__.py": "says so where nothing can be imported",
    "frugal_rl/cli.py": "is the command that it names",
    "frugal_rl/report/doctor.py": "is told only by the console command",
}


def constants(tree):
    """The texts of a module that are no docstrings of anything."""
    loose = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in loose)
    return [node.value for node in nodes if isinstance(node.value, str)]


@pytest.mark.parametrize("room", ["frugal_rl", "nclone", "npp_rl", "mine_rl_npv", "fighting"])
def test_no_message_writes_a_command_by_hand(room):
    root = SCRIPTS.parent
    for path in sorted((root / room).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name in BY_HAND or "/testing/" in name:
            continue
        wrong = [text for text in constants(ast.parse(path.read_text())) if PRINTED.search(text)]
        assert not wrong, f"{name} prints {wrong}; use frugal_rl.invocation.command or program"
