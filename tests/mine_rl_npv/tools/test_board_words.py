"""The words of a leaderboard: what is asked of a cell, and how its row is told."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from frugal_rl.errors import ConfigError
from mine_rl_npv.optimise.decode import Decoder
from mine_rl_npv.tools import cells, leaderboard
from mine_rl_npv.tools.board import Board
from mine_rl_npv.tools.cells import Cell, parse_entry, run_cell
from mine_rl_npv.tools.leaderboard import HEAD, Entry, find_entries, gap_percent
from mine_rl_npv.tools.solve_config import BoundKind, Kind, Method, SolveConfig

CELL = Cell("mines/hill", "cpit", "toposort:shift+polish", 5.0, 100, 3, 2, True, 60.0, 4)
ROW = {
    "entry": "toposort",
    "value": 90.0,
    "bound": 100.0,
    "seconds": 1.5,
    "bound_seconds": 0.25,
    "mib": 123.4,
    "verdict": "yes",
    "file": "hill-cpit-toposort.sol",
}


@pytest.mark.parametrize(
    ("told", "value", "verdict"),
    [
        (1e6, 1e6 + 0.999, "yes"),
        (1e6, 1e6 - 0.999, "yes"),
        (1e6, 1e6 + 1.001, "its value is 1,000,000.00"),
        (1e6, 1e6 - 1.001, "its value is 1,000,000.00"),
        (-1e6, -1e6 + 0.999, "yes"),
        (0.25, 0.25 + 0.9e-6, "yes"),
        (0.25, 0.25 + 1.1e-6, "its value is 0.25"),
    ],
)
def test_six_digits_of_a_value_are_compared(monkeypatch, told, value, verdict):
    out = f"value      {told!r}\nfeasible   yes\n"
    done = SimpleNamespace(returncode=0, stdout=out, stderr="")
    monkeypatch.setattr(leaderboard.subprocess, "run", lambda *_, **__: done)
    row = ROW | {"value": value}
    assert leaderboard._judged(CELL, row, Path("out")) == {"verdict": verdict}


@pytest.mark.parametrize(
    ("entry", "method", "decoder", "closing"),
    [
        ("toposort", Method.toposort, Decoder.two_pass, set()),
        ("toposort:shift", Method.toposort, Decoder.shift, set()),
        ("greedy:forward+polish", Method.greedy, Decoder.forward, {"polish"}),
        ("lp+cuts", Method.lp, Decoder.two_pass, {"cuts"}),
        ("best+polish+cuts", Method.best, Decoder.two_pass, {"polish", "cuts"}),
    ],
)
def test_an_entry_is_a_method_a_decoder_and_what_comes_last(entry, method, decoder, closing):
    assert parse_entry(entry) == (method, decoder, closing)


@pytest.mark.parametrize(
    "entry", ["", "magic", "compare", "toposort:quick", "lp+shine", ":shift", "lp+"]
)
def test_an_entry_that_names_nothing_is_refused_with_what_there_is(entry):
    with pytest.raises(ConfigError, match=r"is no METHOD\[:DECODER\].*oreblocks.*two_pass"):
        parse_entry(entry)


def test_a_cell_is_solved_as_the_command_would():
    config = CELL.config()
    assert (config.instance, config.method, config.problem) == (
        "mines/hill",
        Method.toposort,
        Kind.cpit,
    )
    assert (config.decoder, config.polish, config.bound) == (Decoder.shift, True, BoundKind.auto)
    assert (config.seed, config.seconds, config.threads) == (3, 5.0, 2)
    assert (config.bound_seconds, config.bound_decisions, config.lp_features) == (60.0, 4, True)


def test_only_methods_that_learn_count_decodes():
    assert CELL.config().decodes == 0
    learner = next(m for m in cells.LEARNING)
    assert replace(CELL, entry=learner.value).config().decodes == 100


def test_cuts_are_a_kind_of_bound_and_destinations_a_kind_of_problem():
    config = replace(CELL, entry="greedy+cuts").config()
    assert (config.bound, config.problem, config.polish) == (BoundKind.cuts, Kind.cpit, False)
    assert replace(CELL, problem="pcpsp").config().problem is Kind.pcpsp


def test_a_cell_s_files_have_no_signs_in_their_names():
    assert CELL.name == "hill-cpit-toposort-shift-polish"


@pytest.fixture
def hill(tmp_path):
    """A cell on files that are there."""
    for ending in (".blocks", ".prec", ".cpit"):
        (tmp_path / f"hill{ending}").write_text(ending)
    return replace(CELL, prefix=str(tmp_path / "hill"))


def test_a_fingerprint_is_that_of_settings_and_files(hill, tmp_path):
    mark = hill.fingerprint()
    assert len(mark) == 16
    assert replace(hill, seed=4).fingerprint() != mark
    (tmp_path / "hill.cpit").write_text("changed")
    changed = hill.fingerprint()
    assert changed != mark
    (tmp_path / "hill.pcpsp").write_text("")
    assert hill.fingerprint() not in (mark, changed)


def test_a_fingerprint_is_the_same_wherever_the_files_lie(hill, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    for path in tmp_path.glob("hill.*"):
        (other / path.name).write_bytes(path.read_bytes())
    assert replace(hill, prefix=str(other / "hill")).fingerprint() == hill.fingerprint()


@pytest.fixture
def counted(monkeypatch):
    """Rows instead of processes; how many were asked for."""
    asked = []

    def computed(cell, output, most_seconds):
        asked.append(cell.name)
        output.write_text("0 0 0 1\n")
        return {"value": 1.0, "file": output.name}

    monkeypatch.setattr(cells, "_in_process", computed)
    return asked


def test_a_finished_cell_is_kept_with_its_file(hill, tmp_path, counted):
    first = run_cell(hill, tmp_path, 9.0)
    again = run_cell(hill, tmp_path, 9.0)
    assert "kept" not in first
    assert again == first | {"kept": True}
    assert len(counted) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder, name: (folder / f"{name}.sol").unlink(),
        lambda folder, name: (folder / f"{name}.json").write_text("{"),
        lambda folder, name: (folder / f"{name}.json").write_text("[]"),
        lambda folder, name: (folder / f"{name}.json").unlink(),
    ],
)
def test_a_cell_that_lost_its_record_or_its_file_is_computed_again(hill, tmp_path, counted, spoil):
    run_cell(hill, tmp_path, 9.0)
    spoil(tmp_path, hill.name)
    assert "kept" not in run_cell(hill, tmp_path, 9.0)
    assert len(counted) == 2


def test_trouble_is_not_kept(hill, tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_in_process", lambda *_: {"trouble": "no memory"})
    assert run_cell(hill, tmp_path, 9.0)["trouble"] == "no memory"
    assert not (tmp_path / f"{hill.name}.json").exists()


@pytest.mark.parametrize(
    ("code", "words"), [(-9, "SIGKILL (out of memory?)"), (-15, "SIGTERM"), (3, "exit status 3")]
)
def test_an_end_is_told_by_its_signal_or_its_status(code, words):
    assert cells._ending(code) == words


def test_instances_are_found_by_their_blocks_with_the_problems_that_they_state(tmp_path):
    for name in (
        "b/two.blocks",
        "b/two.cpit",
        "a/one.blocks",
        "a/one.upit",
        "a/one.pcpsp",
        "c.cpit",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    found = find_entries(tmp_path, ("upit", "cpit", "pcpsp"))
    assert [entry.title for entry in found] == ["one, UPIT", "one, PCPSP", "two, CPIT"]
    with pytest.raises(ConfigError, match=r"no NAME\.blocks with a NAME\.prec beside it"):
        find_entries(tmp_path, ("prec",))


def cells_of(problem, methods):
    config = SimpleNamespace(
        board=SimpleNamespace(methods=methods),
        seconds=5.0,
        decodes=9,
        seed=1,
        threads=1,
        lp_features=False,
        bound_seconds=3.0,
        bound_decisions=0,
    )
    return [cell.entry for cell in leaderboard._cells(Entry(Path("hill"), problem), config)]


@pytest.mark.parametrize(
    ("problem", "entries"),
    [
        ("upit", ["upit"]),
        ("cpit", ["lp", "oreblocks"]),
        ("pcpsp", ["lp"]),
    ],
)
def test_each_problem_has_the_cells_that_can_answer_it(problem, entries):
    assert cells_of(problem, ("lp", "upit", "oreblocks")) == entries


def test_a_row_says_gap_value_bound_time_memory_and_verdict():
    found = leaderboard._cells_of(ROW, 100.0)
    assert len(found) == len(HEAD)
    assert found == (
        "toposort",
        "10.0000 %",
        "90.00",
        "100.00",
        "1.75",
        "0.25",
        "123",
        "yes",
        "hill-cpit-toposort.sol",
    )


def test_a_bound_alone_has_no_value_and_no_gap():
    row = {k: v for k, v in ROW.items() if k not in ("value", "verdict", "file")}
    assert leaderboard._cells_of(row, 100.0)[1:4] == ("", "", "100.00")


@pytest.mark.parametrize("key", ["refused", "trouble"])
def test_what_went_wrong_stands_in_place_of_numbers(key):
    found = leaderboard._cells_of({"entry": "lp", key: "it has lower limits"}, 100.0)
    assert found == ("lp", "it has lower limits", *[""] * (len(HEAD) - 2))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (ROW, "value 90.00, bound 100.00, feasible yes"),
        (ROW | {"kept": True}, "value 90.00, bound 100.00, feasible yes, kept"),
        ({"bound": None, "value": 1.0}, "value 1.00, no bound"),
        ({"bound": 2.0}, "bound 2.00"),
        ({"trouble": "no memory", "kept": True}, "no memory"),
        ({"refused": "lower limits"}, "lower limits"),
    ],
)
def test_a_line_per_cell_says_what_came_of_it(row, words):
    assert leaderboard._short(row) == words


@pytest.mark.parametrize(
    ("value", "bound", "gap"), [(90, 100, 10), (100, 100, 0), (-110, -100, 10), (0, 0, 0)]
)
def test_a_gap_is_a_share_of_the_bound_s_size(value, bound, gap):
    assert gap_percent({"value": value}, bound) == gap


def test_a_gap_to_a_bound_of_nothing_is_no_number():
    assert gap_percent({"value": -1.0}, 0.0) != gap_percent({"value": -1.0}, 0.0)


def told(code=0, out="", err=""):
    return lambda *_, **__: SimpleNamespace(returncode=code, stdout=out, stderr=err)


@pytest.mark.parametrize(
    ("code", "out", "err", "verdict"),
    [
        (0, "value 90.0\nfeasible yes\n", "", "yes"),
        (1, "value 90.0\nfeasible no, block 3\n", "", "no, block 3"),
        (0, "value 91.0\nfeasible yes\n", "", "its value is 91.00"),
        (2, "", "no such file\n", "no such file"),
        (0, "", "", "cannot be judged"),
    ],
)
def test_a_schedule_is_judged_by_the_program_that_reads_only_files(
    monkeypatch, code, out, err, verdict
):
    monkeypatch.setattr(leaderboard.subprocess, "run", told(code, out, err))
    assert leaderboard._judged(CELL, ROW, Path("out")) == {"verdict": verdict}


def test_a_value_may_differ_by_the_digits_that_are_written(monkeypatch):
    monkeypatch.setattr(leaderboard.subprocess, "run", told(0, "value 90.00008\nfeasible yes\n"))
    assert leaderboard._judged(CELL, ROW, Path("out")) == {"verdict": "yes"}


@pytest.mark.parametrize(("problem", "flags"), [("cpit", []), ("pcpsp", ["--pcpsp"])])
def test_destinations_are_judged_as_such(monkeypatch, problem, flags):
    asked = []

    def run(command, **_):
        asked.append(command)
        return told(0, "value 90.0\nfeasible yes\n")()

    monkeypatch.setattr(leaderboard.subprocess, "run", run)
    leaderboard._judged(replace(CELL, problem=problem), ROW, Path("out"))
    assert asked[0][3:] == ["mines/hill", Path("out") / ROW["file"], *flags]


def test_a_cell_without_a_schedule_is_not_judged():
    assert leaderboard._judged(CELL, {"bound": 3.0}, Path("out")) == {}


@pytest.mark.parametrize(
    "wrong", [{"problems": ()}, {"problems": ("lp",)}, {"methods": ()}, {"seconds": 0.0}]
)
def test_a_board_of_nothing_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"board\."):
        Board(**wrong)


def test_values_that_a_board_would_not_hear_are_refused():
    with pytest.raises(ConfigError, match="polish would be ignored: leaderboard=mines"):
        leaderboard._refuse_ignored(SolveConfig(leaderboard="mines", polish=True))
    leaderboard._refuse_ignored(SolveConfig(leaderboard="mines", seconds=9.0, seed=3))
