"""Every command that is printed goes through a shell, and does what it says."""

import ast
import html
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from frugal_rl import invocation
from frugal_rl.errors import FolderInUseError
from frugal_rl.invocation import command_line, override, shell_word
from frugal_rl.memory.advice import command_of
from frugal_rl.memory.facts import facts_of
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.rules_bytes import total
from frugal_rl.report import plan_command
from frugal_rl.report.closing import next_commands
from frugal_rl.report.comparison import ReportOptions, write_report
from frugal_rl.report.files import TENSORBOARD, write_json
from frugal_rl.report.live import LiveRun
from frugal_rl.report.plan_command import PlanOptions, show_plan
from frugal_rl.report.wandb_sink import sync_command
from frugal_rl.run.cells import Cell, End
from frugal_rl.run.compose import compose_run
from frugal_rl.run.composing import check_words
from frugal_rl.run.launch import way_on
from frugal_rl.run.manifest import refuse_begun
from frugal_rl.run.saves import Saves
from frugal_rl.run.sweep_table import sum_up
from mine_rl_npv.tools.board import Board
from mine_rl_npv.tools.leaderboard import command_of as board_command
from mine_rl_npv.tools.solve_config import SolveConfig

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("plain", "two words", "it's [odd], $HOME & `all`", 'a "quoted" \\ one!', "a=b,c=(d) #e")
WORDS = (
    "env=nclone",
    "env.levels=[walk,jump]",
    "tracking.project='my first project'",
    "algo.learning_rate={_target_: frugal_rl.learn.schedules.Linear, start: 1e-3, end: 0.0}",
    "plugins=[npp_rl]",
)
ARGUMENTS = {
    "frugal_rl/report/ablation.py",
    "frugal_rl/report/search.py",
    "frugal_rl/run/cells.py",
    "frugal_rl/run/command.py",
    "frugal_rl/run/launch.py",
}
"""These start processes, which no shell reads."""
REFUSALS = {
    "fighting/tools/tournament.py",
    "frugal_rl/run/arguments.py",
    "frugal_rl/run/preflight.py",
}
"""These name what was typed."""
JOINED = {"frugal_rl/report/closing.py", "frugal_rl/run/sweep_table.py"}
"""These join their words into a line, as the tests below see."""

TYPED = {
    "frugal_rl/memory/advice.py",
    "frugal_rl/memory/auto.py",
    "frugal_rl/memory/rules_bytes.py",
    "frugal_rl/report/closing.py",
    "frugal_rl/report/pareto.py",
    "frugal_rl/report/plan_command.py",
    "frugal_rl/report/results.py",
    "frugal_rl/report/wandb_sink.py",
    "frugal_rl/run/launch.py",
    "frugal_rl/run/manifest.py",
    "frugal_rl/run/saves.py",
    "frugal_rl/run/sweep_table.py",
    "frugal_rl/run/trainer.py",
    "mine_rl_npv/tools/leaderboard.py",
}
"""These print commands with words that were typed, or with paths: each has a test below. Who adds a
file here adds its test."""
FIXED = {
    "fighting/cartridge/profile.py",
    "fighting/cartridge/start_states.py",
    "fighting/tools/checks.py",
    "frugal_rl/learn/off_policy_config.py",
    "frugal_rl/memory/watchdog.py",
    "frugal_rl/observation/found_spec.py",
    "frugal_rl/report/doctor.py",
    "frugal_rl/report/tensorboard_sink.py",
    "frugal_rl/report/wandb_report.py",
    "frugal_rl/run/ledger.py",
    "frugal_rl/run/library.py",
    "frugal_rl/run/play.py",
    "frugal_rl/run/preflight.py",
    "frugal_rl/run/zoo/entry.py",
    "frugal_rl/store/episodes.py",
    "frugal_rl/store/torchrl_storage.py",
    "frugal_rl/vec_env/registered.py",
    "mine_rl_npv/rules/layout.py",
    "mine_rl_npv/tools/peers.py",
    "mine_rl_npv/tools/solid.py",
    "nclone/levels/bests/__init__.py",
    "nclone/levels/pool.py",
    "nclone/levels/sources.py",
    "nclone/sim/cuda.py",
}
"""These print commands of fixed words, which exist; nothing in them needs quoting but an extra."""
ROOMS = ("frugal_rl", "nclone", "npp_rl", "mine_rl_npv", "fighting")
PRODUCT = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for room in ROOMS
    for path in (ROOT / room).rglob("*.py")
}
PRODUCT.pop("frugal_rl/invocation.py")
NAMES = "command|command_line|command_of|program|override|installing"
PRINTS = re.compile(rf"(?<![\w.])(?<!def )({NAMES})\(")
NAMED = re.compile(r"""(?<![\w.])command\(((?:['"][^'"]*['"](?:, )?)+)\)""")
"""A call with nothing but words: the command of a message."""


def pasted(line: str) -> list[str]:
    """The words that a shell makes of a line."""
    code = f"printf '%s\\0' {line}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, check=True, cwd="/")
    return done.stdout.decode().split("\0")[:-1]


@pytest.fixture(params=FOLDERS)
def place(request, tmp_path, monkeypatch):
    """A folder with an awkward name, and `frugal-rl` as the command."""
    invocation.called_as(invocation.Called(("frugal-rl",), ("-m", "frugal_rl")))
    folder = tmp_path / request.param
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def composed_once():
    return compose_run(WORDS, check=False)


@pytest.fixture
def run(place, composed_once):
    """A run in that folder, with a `--config-dir` below it."""
    return replace(composed_once, run_dir=str(place), config_dir=str(place / "conf"))


def trained(line, place):
    """The overrides of a printed command that trains, which keeps its `--config-dir`."""
    words = pasted(line)
    assert words[:4] == ["frugal-rl", "train", "--config-dir", str(place / "conf")]
    return words[4:]


def test_words_come_out_of_a_shell_as_they_went_in(place):
    words = ["a", str(place), f"x={place}", "", "~env", "*", "a;b", "it's", "$(id)"]

    assert pasted(command_line(words)) == words


def test_what_stands_at_the_end_of_a_run(place, run):
    (place / "wandb" / "offline-run-1").mkdir(parents=True)
    lines = {k.strip(): v for k, v in (x.split(":", 1) for x in next_commands(run, {}))}
    play, report, sync = (pasted(lines[k]) for k in ("play", "report", "W&B"))
    again = compose_run(trained(lines["resume"], place), check=False)

    assert (again.resume, list(again.env.levels)) == (str(place), ["walk", "jump"])
    assert play[:4] == ["frugal-rl", "play", "--config-dir", str(place / "conf")]
    assert play[4:7] == [WORDS[0], WORDS[-1], f"checkpoint={invocation.value(place)}"]
    assert play[7:] in ([], ["video=film.mp4"])  # without a display
    assert report == ["frugal-rl", "report", f"runs=[{invocation.value(place)}]"]
    assert sync[1:] == ["sync", str(place / "wandb" / "offline-run-1")]
    assert pasted(sync_command(place))[1:] == ["sync", str(place)]


def test_what_a_plan_prints(place, run, capsys):
    show_plan(run, PlanOptions(), None)
    line = capsys.readouterr().out.splitlines()[-1]

    assert trained(line, place) == list(WORDS)


def test_where_curves_lie(place, run):
    tracking = replace(run.tracking, tensorboard=True)
    lines = next_commands(replace(run, tracking=tracking), {"interrupted": True})
    (curves,) = (line for line in lines if line.startswith("curves:"))
    words = pasted(curves.removeprefix("curves:"))

    assert Path(words[0]).name == "tensorboard"
    assert words[1:] == ["--logdir", str(place / TENSORBOARD)]


@pytest.mark.parametrize("plans", [["lossless"], []])
def test_what_a_comparison_of_profiles_says_to_type(plans, place, run, capsys, monkeypatch):
    each = [(name, draw_up(run)) for name in plans]
    monkeypatch.setattr(plan_command, "compared", lambda run, probe: each)
    show_plan(run, PlanOptions(compare=True), None)
    words = pasted(capsys.readouterr().out.splitlines()[-1])

    script = "train" if plans else "plan"
    assert words[:4] == ["frugal-rl", script, "--config-dir", str(place / "conf")]
    assert words[4:] == [*WORDS, "memory=lossless"]


def test_what_a_check_says_to_type(place, run):
    words = pasted(total(facts_of(run, draw_up(run))).command)

    assert words[:4] == ["frugal-rl", "plan", "--config-dir", str(place / "conf")]
    assert words[4:] == [*WORDS, "compare=true"]


def test_how_a_folder_that_is_taken_goes_on(place):
    (place / "checkpoints").mkdir()
    (place / "checkpoints" / "last.pt").write_bytes(b"")
    with pytest.raises(FolderInUseError) as error:
        refuse_begun(place, None)

    (word,) = pasted(re.search(r"Go on with it: (.*); or", str(error.value))[1])
    assert word == f"resume={invocation.value(place)}"


def test_every_command_that_a_message_names_is_one():
    found = {ast.literal_eval(f"({w},)") for text in PRODUCT.values() for w in NAMED.findall(text)}
    assert len(found) > 5
    for script, *words in found:
        assert (ROOT / "scripts" / f"{script}.py").is_file(), script
        check_words(script, [word for word in words if not word.endswith("...")])


def test_every_file_that_prints_a_command_is_known_here():
    found = {path for path, text in PRODUCT.items() if PRINTS.search(text)}
    assert found == TYPED | FIXED


def test_how_a_run_goes_on(place, run):
    (place / "checkpoints").mkdir()
    (place / "checkpoints" / "last.pt").write_bytes(b"")
    saves = Saves(run, None, newest=place / "checkpoints" / "last.pt")
    for said in (saves.hint(), way_on(run, "")):
        line = re.search(r"""(["']?)resume=.*""", said)[0]
        (word,) = pasted(line)
        assert word in {f"resume={invocation.value(p)}" for p in (place, saves.newest)}


def test_what_a_sweep_prints(place, capsys):
    Cell(WORDS, End.failed, "why").write(place / "0_toy")
    sum_up(place)
    lines = capsys.readouterr().out.splitlines()
    again = next(x for x in lines if x.startswith("The same command with "))
    again = again.removeprefix("The same command with ").split(" goes on with")[0]
    report = next(x for x in lines if x.startswith("report:")).removeprefix("report:")

    assert pasted(again) == [f"hydra.sweep.dir={invocation.value(place)}"]
    assert pasted(report) == ["frugal-rl", "report", f"runs=[{invocation.value(place)}]"]


def test_what_a_report_and_the_live_page_show(place, run):
    config = dict(run.resolved) | {"config_dir": str(place / "conf")}
    write_json(place / "run.json", {"config": config, "overrides": [*run.overrides]})
    (place / "metrics.jsonl").touch()
    options = ReportOptions((str(place),), str(place / "out"))
    markdown, page = write_report(options)
    shown = LiveRun(place).state()["command"]
    written = re.findall(r"^frugal-rl train.*$", markdown.read_text(), re.MULTILINE)
    block = re.findall(r"<pre>(.*?)</pre>", page.read_text(), re.DOTALL)[-1]
    seen = [x for x in html.unescape(block).splitlines() if x.startswith("frugal-rl")]

    assert written == seen == [shown]
    assert trained(shown, place) == list(WORDS)


@pytest.mark.parametrize("inside", [True, False])
def test_what_installs_an_extra(place, monkeypatch, inside):
    """A checkout has its pinned versions; the wheel, in any folder, knows its own."""
    monkeypatch.chdir(ROOT if inside else place)
    words = pasted(invocation.installing("viz"))
    pinned = ["-c", "constraints.txt", "-e", ".[viz]"]

    assert Path(words[0]).name == "pip"
    assert words[1:] == ["install", *(pinned if inside else ["frugal-rl[viz]"])]


def test_what_a_search_finds(place, run):
    words = ("algo.learning_rate=0.001", "agent.actor=[64,32]")
    kept = [word for word in WORDS if not word.startswith("algo.learning_rate")]

    assert trained(command_of(run, words), place) == [*kept, *words]


def test_what_makes_a_leaderboard_again(place):
    board = replace(Board(), results=str(place), methods=("toposort", "best"))
    config = replace(SolveConfig(), leaderboard=str(place), board=board)
    words = pasted(board_command(config))

    assert words[:2] == ["frugal-rl", "solve"]
    assert words[2] == f"leaderboard={invocation.value(place)}"
    assert set(words[3:]) >= {
        "board.methods=[toposort,best]", f"board.results={invocation.value(place)}"
    }  # fmt: skip


def test_paths_that_go_on_are_printed_by_one_function_alone():
    pattern = re.compile(r"(resume|checkpoint|runs|hydra\.\w+\.dir)=\[?\{")
    found = {path for path, text in PRODUCT.items() if pattern.search(text)}
    assert found <= ARGUMENTS | REFUSALS | JOINED


@pytest.mark.parametrize("word", ["a", "a b", "it's", 'a"b', 'it\'s "b"', "a$b's", "!'", ""])
def test_a_word_is_quoted_in_the_fewest_marks(word):
    assert pasted(shell_word(word)) == [word]
    assert override("resume", "runs/a").endswith("=runs/a")
    assert override("resume", "a b") == "\"resume='a b'\""
