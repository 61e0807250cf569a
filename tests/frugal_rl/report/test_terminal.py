"""What is printed can be pasted: unwrapped, unmarked, quoted for a shell."""

import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console, Group
from rich.table import Table

from frugal_rl.memory.advice import command_of
from frugal_rl.report.terminal import say, show
from frugal_rl.run.compose import compose_run

ROOT = Path(__file__).resolve().parents[3]
AWKWARD = (
    "env.levels=[walk,jump]",
    "tracking.project='my first project'",
    "plugins=[]",
    "algo.learning_rate={_target_: frugal_rl.learn.schedules.Linear, start: 1e-3, end: 0.0}",
)


def printed(line: str, width: int, terminal: bool) -> str:
    file = io.StringIO()
    say(line, Console(file=file, width=width, force_terminal=terminal, color_system=None))
    return file.getvalue()


@pytest.mark.parametrize("width", [20, 60, 80, 200])
@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_is_printed_whole_and_as_it_is(width, terminal):
    line = "python scripts/train.py 'env.levels=[walk,jump]' resume=runs/" + "long/" * 40

    assert printed(line, width, terminal) == line + "\n"


def scores() -> Table:
    table = Table("player", "success", "95 %", "mend", title="Scores")
    table.add_row("random play", "59.4%", "47.1% to 70.5%", "algo.total_steps=4014080")
    table.add_row("policy", "51.6%", "-", "")
    return table


@pytest.mark.parametrize("width", [40, 60, 120])
def test_no_word_of_a_table_is_cut_or_broken(width):
    file = io.StringIO()
    show(Group(Group(scores()), "below"), Console(file=file, width=width, color_system=None))
    lines = file.getvalue().splitlines()

    assert max(map(len, lines)) <= width
    for word in ("random", "play", "59.4%", "47.1%", "algo.total_steps=4014080", "success"):
        assert any(word in line for line in lines)
    assert "\u2026" not in file.getvalue()
    assert ("random play: success 59.4%; 95 %" in file.getvalue()) == (width < 120)


def test_escape_codes_in_a_name_are_not_obeyed():
    assert "\x1b" not in printed("runs/\x1b[31mred", 80, True)


@pytest.mark.parametrize("word", AWKWARD)
def test_a_printed_command_composes_the_same_run_again(word):
    run = compose_run(["env=nclone", word])

    words = shlex.split(command_of(run))

    assert words[:2] == ["python", "scripts/train.py"]
    assert compose_run(words[2:]).resolved == run.resolved


def test_a_config_folder_of_one_s_own_stays_in_the_command(tmp_path):
    (tmp_path / "env").mkdir()
    own = (ROOT / "conf" / "env" / "toy.yaml").read_text().replace("name: toy", "name: my toy")
    (tmp_path / "env" / "own.yaml").write_text(own)
    words = ["--config-dir", str(tmp_path), "env=own"]

    done = subprocess.run(
        [sys.executable, "scripts/plan.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    (command,) = [line for line in done.stdout.splitlines() if " scripts/train.py " in line]
    assert command.endswith(f"scripts/train.py --config-dir {tmp_path} env=own")
    python = shlex.split(command)[0]
    assert shutil.which(python) or (ROOT / python).exists()
