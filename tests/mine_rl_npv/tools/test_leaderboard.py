"""A board over a folder: every cell judged from files, kept when finished, told when it fails."""

import json
import shlex
from pathlib import Path

import numpy as np
import psutil
import pytest

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.minelib_write import write_instance
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.tools import cells, leaderboard
from mine_rl_npv.tools.board import Board
from mine_rl_npv.tools.cells import Cell, run_cell
from mine_rl_npv.tools.leaderboard import best_bound, command_of, gap_percent
from mine_rl_npv.tools.planner import answer
from mine_rl_npv.tools.solve_config import Method, SolveConfig


@pytest.fixture
def mines(tmp_path):
    write_instance(varied_instance(3, 5, 6), tmp_path / "mines/one/first")
    return tmp_path / "mines"


@pytest.fixture
def here(monkeypatch):
    """Cells in this process: no second interpreter has to load."""

    def run(cell, output, most_seconds):
        return cells._row(cell, output)

    monkeypatch.setattr(cells, "_in_process", run)


def config(mines, tmp_path, *methods, **more):
    board = Board(methods=methods, results=str(tmp_path / "out"), **more)
    return SolveConfig(leaderboard=str(mines), board=board)


def test_a_folder_becomes_tables_files_and_pictures(mines, tmp_path, here):
    told, outcome = answer(config(mines, tmp_path, "lp", "greedy", "toposort"))
    assert set(outcome.values) == {"first upit", "first cpit", "first pcpsp"}
    out = tmp_path / "out"
    for name in ("upit-upit", "cpit-greedy", "pcpsp-toposort"):
        assert (out / f"first-{name}.sol").is_file()
        assert json.loads((out / f"first-{name}.json").read_text())["value"] > 0
    lines = [line for line in told.splitlines() if line.startswith("| ")]
    judged = [line for line in lines if ".sol" in line]
    assert len(judged) == 5  # a pit, and two schedules of each problem
    assert all("| yes |" in line for line in judged)
    page = (out / "leaderboard.html").read_text()
    assert page.count("<img") == 4
    assert "http" not in page.split("</style>")[1].replace("https://", "")


def test_the_best_schedule_of_a_problem_is_first(mines, tmp_path, here):
    told, _ = answer(config(mines, tmp_path, "random", "toposort", problems=("cpit",)))
    order = [line.split()[1] for line in told.splitlines() if ".sol" in line]
    assert order == ["toposort", "random"]


def test_a_cell_with_cuts_brings_the_board_a_tighter_bound(mines, tmp_path, here):
    board = Board(("greedy", "greedy+cuts"), ("cpit",), str(tmp_path / "out"))
    outcome = answer(SolveConfig(leaderboard=str(mines), board=board, bound_decisions=3))[1]
    plain, tight = outcome.values["first cpit"]
    assert plain["value"] == tight["value"]
    assert tight["value"] <= tight["bound"] < plain["bound"]


def test_a_schedule_that_its_file_does_not_show_is_named(mines, tmp_path, here, monkeypatch):
    real = cells._row

    def boastful(cell, output):
        return real(cell, output) | {"value": 1e9}

    monkeypatch.setattr(cells, "_row", boastful)
    told, _ = answer(config(mines, tmp_path, "greedy", problems=("cpit",)))
    assert "its value is" in told
    assert "| yes |" not in told


def test_finished_cells_are_kept_until_their_settings_or_files_change(mines, tmp_path, here):
    cell = Cell(str(mines / "one/first"), "cpit", "greedy", 1.0, 0, 0, 1, True)
    out = tmp_path / "out"
    first = run_cell(cell, out, 60)
    assert "kept" not in first
    assert run_cell(cell, out, 60) == first | {"kept": True}
    path = mines / "one/first.cpit"
    path.write_text(path.read_text() + "% a comment\n")
    assert "kept" not in run_cell(cell, out, 60)
    (out / "first-cpit-greedy.sol").unlink()
    assert "kept" not in run_cell(cell, out, 60)


def test_a_cell_of_its_own_process_tells_its_memory_or_its_end(mines, tmp_path):
    cell = Cell(str(mines / "one/first"), "cpit", "greedy", 1.0, 0, 0, 1, True)
    assert run_cell(cell, tmp_path, 0.0)["trouble"].startswith("stopped after")
    ballast = np.ones(1 << 27, np.uint8)  # of this process, not of the cell's
    row = run_cell(cell, tmp_path, 300)
    assert 20 < row["mib"] < psutil.Process().memory_info().rss / 2**20 - 64
    assert ballast.all()
    assert (tmp_path / row["file"]).is_file()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"method": Method.greedy}, "method would be ignored"),
        ({"report": "page.html"}, "report would be ignored"),
        ({"board": Board(methods=("gredy",))}, "'gredy' is no METHOD"),
        ({"board": Board(methods=("greedy+cut",))}, "'greedy.cut' is no METHOD"),
        ({"leaderboard": "nowhere"}, "no NAME.blocks"),
    ],
)
def test_what_cannot_be_honoured_is_refused(mines, changed, words):
    with pytest.raises(ConfigError, match=words):
        answer(SolveConfig(**{"leaderboard": str(mines), **changed}))


def test_gaps_are_against_the_best_bound_of_all():
    rows = [{"bound": 110.0, "value": 99.0}, {"bound": 100.0}, {"refused": "too large"}]
    assert best_bound(rows) == 100.0
    assert gap_percent(rows[0], 100.0) == 1.0


def test_the_command_of_a_board_holds_what_was_changed(tmp_path):
    line = command_of(config(Path("my mines"), tmp_path, "lp", "toposort:shift+polish"))
    words = shlex.split(line)
    assert "leaderboard='my mines'" in words  # as Hydra wants a value with a blank
    assert "board.methods=[lp,toposort:shift+polish]" in words


@pytest.mark.parametrize(("compiled", "times"), [(0, 1), (3, 2)])
def test_a_cell_that_compiled_is_computed_again(mines, tmp_path, monkeypatch, compiled, times):
    asked = []

    def run(cell, output, most_seconds):
        asked.append(cell.name)
        first = len(asked) == 1
        return {"seconds": 20.0 if first else 0.5, cells.COMPILED: compiled if first else 0}

    monkeypatch.setattr(cells, "_in_process", run)
    cell = Cell(str(mines / "one/first"), "cpit", "greedy", 1.0, 0, 0, 1, True)
    row = run_cell(cell, tmp_path, 300)

    assert len(asked) == times
    assert row["seconds"] == (20.0, 0.5)[times - 1]
    assert cells.COMPILED not in json.loads((tmp_path / f"{cell.name}.json").read_text())


@pytest.mark.slow
def test_a_cell_tells_how_many_kernels_it_compiled(mines, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "nothing yet"))
    cell = Cell(str(mines / "one/first"), "cpit", "greedy", 1.0, 0, 0, 1, True)
    rows = [cells._in_process(cell, tmp_path / "out.sol", 300) for _ in range(2)]

    assert rows[0][cells.COMPILED] > 0
    assert rows[1][cells.COMPILED] == 0


def test_a_refused_cell_leaves_the_others_standing(mines, tmp_path, monkeypatch):
    def run(cell, output, most_seconds):
        if cell.entry == "exact":
            return {"refused": "too many blocks"}
        return cells._row(cell, output)

    monkeypatch.setattr(cells, "_in_process", run)
    told, _ = answer(config(mines, tmp_path, "exact", "greedy", problems=("cpit",)))
    assert "| exact | too many blocks |" in told
    assert "first-cpit-greedy.sol" in told
    assert leaderboard.HEAD[0] in told
