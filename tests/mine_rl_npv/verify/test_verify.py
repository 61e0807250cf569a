"""The independent program agrees with the checker, shares no line with it, and sees every break."""

import ast
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mine_rl_npv.data.block_model import write_csv
from mine_rl_npv.data.instance import GeneralRows
from mine_rl_npv.data.minelib_write import write_instance
from mine_rl_npv.data.synthetic import Deposit, block_model, varied_instance
from mine_rl_npv.tools.planner import run
from mine_rl_npv.tools.solve_config import Kind, Method, SolveConfig
from mine_rl_npv.verify import minelib
from mine_rl_npv.verify.__main__ import main


@pytest.mark.parametrize("kind", list(Kind))
def test_a_written_schedule_is_judged_as_the_checker_judges_it(tmp_path, capsys, kind):
    write_instance(varied_instance(3, 5, 6), tmp_path / "mine")
    prefix, out = str(tmp_path / "mine"), str(tmp_path / "plan.sol")
    config = SolveConfig(instance=prefix, method=Method.greedy, problem=kind, output=out)
    solution = run(config)
    flags = ["--pcpsp"] if kind is Kind.pcpsp else []
    assert main([prefix, out, *flags]) == 0
    value = float(capsys.readouterr().out.split()[1])
    assert value == pytest.approx(solution.verdict.value, rel=1e-6)  # six digits are written


@pytest.mark.parametrize("broken", ["early", "twice", "heavy"])
def test_each_broken_rule_is_seen(tmp_path, capsys, broken):
    write_instance(varied_instance(3, 5, 6), tmp_path / "mine")
    prefix, out = str(tmp_path / "mine"), tmp_path / "plan.sol"
    run(SolveConfig(instance=prefix, method=Method.greedy, output=str(out)))
    lines = out.read_text().splitlines()
    if broken == "twice":
        lines.append(lines[0])
    if broken == "early":
        lines = [line for line in lines if line.split()[2] != "0"]
    if broken == "heavy":
        lines = [" ".join([*line.split()[:2], "0", "1.0"]) for line in lines]
    out.write_text("\n".join(lines) + "\n")
    assert main([prefix, str(out)]) == 1
    words = {"twice": "times", "early": "which it needs", "heavy": "limit"}[broken]
    assert words in capsys.readouterr().out


PAIR = {
    "prec": "0 0\n1 1 0\n2 0\n",
    "pcpsp": """NAME: pair
TYPE: PCPSP
NBLOCKS: 3
NPERIODS: 2
NDESTINATIONS: 2
NRESOURCE_SIDE_CONSTRAINTS: 1
NGENERAL_SIDE_CONSTRAINTS: 0
DISCOUNT_RATE: 0.1
OBJECTIVE_FUNCTION:
0 -1 -1
1 -1 9
2 -5 -5
RESOURCE_CONSTRAINT_LIMITS:
0 0 L 5
0 1 L 5
RESOURCE_CONSTRAINT_COEFFICIENTS:
0 0 0 3
0 1 0 3
1 0 0 3
1 1 0 3
2 0 0 3
2 1 0 3
""",
}


@pytest.fixture
def judged(tmp_path, capsys):
    """What the program says of a schedule of two blocks, one on the other, and one of waste."""

    def said(schedule, *flags, **texts):
        for ending, text in (PAIR | texts).items():
            (tmp_path / f"pair.{ending}").write_text(text)
        (tmp_path / "plan.sol").write_text(schedule)
        status = main([str(tmp_path / "pair"), str(tmp_path / "plan.sol"), "--pcpsp", *flags])
        return status, "".join(capsys.readouterr())

    return said


def test_a_schedule_written_by_hand_is_feasible(judged):
    status, said = judged("0 0 0 1\n1 0 1 0.25\n1 1 1 0.75\n")
    assert status == 0
    assert float(said.split()[1]) == pytest.approx(-1 + 6.5 / 1.1)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("0 0 0 1\n1 1 1 1\n2 0 0 -1\n", "the share -1 of block 2 is outside 0 to 1"),
        ("0 0 0 1\n1 1 1 nan\n", "the share nan of block 1 is outside 0 to 1"),
        ("0 -1 0 1\n1 1 0 1\n", "destination -1 is unknown"),
        ("0 2 0 1\n1 1 1 1\n", "destination 2 is unknown"),
        ("0 0 0 1\n1 1 1 0.5\n", "block 1 is mined in parts, at most 0.5 of it in one period"),
        ("0 0 0 0.5\n0 0 1 0.5\n1 1 1 0.5\n", "block 0 is mined in parts"),
        ("0 0 0 1\n1 1 0 1\n", "limit 0 of period 0: 6 is outside -inf to 5"),
    ],
)
def test_shares_that_are_none_of_a_schedules_are_faults(judged, schedule, words):
    status, said = judged(schedule)
    assert (status, words in said) == (1, True), said


def test_parts_are_those_of_a_relaxation_where_that_is_asked_for(judged):
    assert judged("0 0 0 1\n1 1 0 0.6\n1 1 1 0.4\n", "--lp")[0] == 0


@pytest.mark.parametrize("old", ["0 0 L 5", "0 1 L 5"])
def test_limits_in_small_letters_count(judged, old):
    both = "0 0 0 1\n1 1 0 1\n" if old.startswith("0 0") else "0 0 1 1\n1 1 1 1\n"
    status, said = judged(both, pcpsp=PAIR["pcpsp"].replace(old, old.lower()))
    assert (status, "is outside -inf to 5" in said) == (1, True), said


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0 0 L 5", "0 0 L nan", "is no number"),
        ("0 0 L 5", "0 0 X 5", "is none of L, G and I"),
        ("0 0 0 3\n", "0 0 0 3\nx 1\n", "no section is called x"),
    ],
)
def test_an_instance_that_hides_its_limits_cannot_be_judged(judged, old, new, words):
    status, said = judged("0 0 0 1\n1 1 1 1\n", pcpsp=PAIR["pcpsp"].replace(old, new, 1))
    assert (status, words in said) == (2, True), said


def test_precedences_that_were_cut_off_judge_nothing(judged):
    status, said = judged("1 1 0 1\n", prec="0 0\n")
    assert (status, "block 1 has no line" in said) == (2, True), said
    assert judged("0 0 0 1\n", prec="1 1 0\n")[0] == 0


@pytest.mark.parametrize(("tail", "status"), [("", 2), ("EOF\n", 0)])
def test_tonnes_that_were_cut_off_judge_nothing(judged, tail, status):
    text = PAIR["pcpsp"].replace("2 0 0 3\n2 1 0 3\n", tail)
    found, said = judged("0 0 0 1\n1 1 1 1\n", pcpsp=text)
    assert (found, "ends without EOF" in said) == (status, status == 2), said


@pytest.fixture
def wall(tmp_path, capsys):
    """What the program says of a block that is mined below one with this period."""

    def said(above, *flags, x="0"):
        (tmp_path / "plan.csv").write_text(f"x,y,z,period\n0,0,0,1\n{x},0,10,{above}\n")
        status = main([str(tmp_path / "plan.csv"), "--size", "10,10,10", *flags])
        return status, "".join(capsys.readouterr())

    return said


@pytest.mark.parametrize("above", ["", "-", "-1", "2"])
def test_a_block_that_stays_above_a_mined_one_is_undercut(wall, above):
    assert wall("0")[0] == 0
    status, said = wall(above)
    assert (status, "row 2 undercuts row 3" in said) == (1, True), said


@pytest.mark.parametrize(
    ("flags", "x", "words"),
    [
        (["--degrees", "135"], "0", "between 0 and 90"),
        (["--degrees", "nan"], "0", "between 0 and 90"),
        (["--sectors", "0-90:120"], "0", "between 0 and 90"),
        (["--size", "10,10"], "0", "not three lengths"),
        (["--levels", "-1"], "0", "0 looks at all"),
        (["--levels", "2", "--size", ""], "0", "state their height by --size"),
        ([], "nan", "row 3 lies nowhere"),
        ([], "inf", "row 3 lies nowhere"),
    ],
)
def test_a_rule_under_which_nothing_rests_on_anything_is_refused(wall, flags, x, words):
    status, said = wall("", *flags, x=x)
    assert (status, words in said) == (2, True), said


@pytest.mark.parametrize("period", ["inf", "nan", "1.5", "early"])
def test_a_period_that_is_none_is_refused(wall, period):
    assert wall(period)[0] == 2


@pytest.mark.parametrize(
    ("head", "flags", "status"),
    [
        ("period,period_2", [], 2),
        ("Period,period_2", [], 2),
        ("period,period", [], 2),
        ("period,period_2", ["--columns", "period=period"], 0),
        ("period,period_2", ["--columns", "period=period_2"], 1),
        ("other,period_2", [], 1),
    ],
)
def test_the_periods_of_the_model_do_not_pass_for_the_schedules(tmp_path, head, flags, status):
    """The model's own say that all is mined at once; the schedule undercuts a block."""
    path = tmp_path / "plan.csv"
    path.write_text(f"x,y,z,{head}\n0,0,0,1,1\n0,0,10,1,\n")
    assert main([str(path), "--size", "10,10,10", *flags]) == status


@pytest.mark.parametrize("faults", [9, 10, 11])
def test_ten_broken_rules_are_named_and_all_are_counted(monkeypatch, capsys, faults):
    found = [f"rule {n}" for n in range(faults)]
    monkeypatch.setattr(minelib, "judge", lambda *_: (1.5, found))
    assert main(["mine", "plan.sol"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:-1] == [f"broken     rule {n}" for n in range(min(faults, 10))]
    assert lines[-1] == f"feasible   no, {faults} faults"


def test_side_rows_are_judged_from_the_files(tmp_path, capsys):
    mine, prefix, out = varied_instance(3, 5, 6), str(tmp_path / "mine"), str(tmp_path / "plan.sol")
    write_instance(mine, tmp_path / "mine")
    config = SolveConfig(instance=prefix, method=Method.toposort, problem=Kind.pcpsp, output=out)
    milled = run(config).shares[:, 1, 0].sum()
    blocks, none = np.arange(mine.blocks, dtype=np.int32), np.zeros(mine.blocks, np.int32)
    for high, broken in ((milled + 0.01, 0), (milled - 0.01, 1)):
        rows = GeneralRows(
            none, blocks, none + 1, none, np.ones(mine.blocks), np.zeros(1), np.array([high])
        )
        write_instance(replace(mine, general=rows), tmp_path / "mine")
        assert main([prefix, out, "--pcpsp"]) == broken
    assert "side row 0" in capsys.readouterr().out


def test_a_pit_is_judged_by_its_closure_and_value(tmp_path, capsys):
    write_instance(varied_instance(3, 5, 6), tmp_path / "mine")
    prefix, out = str(tmp_path / "mine"), tmp_path / "pit.sol"
    solution = run(SolveConfig(instance=prefix, method=Method.upit, output=str(out)))
    assert main([prefix, str(out)]) == 0
    assert float(capsys.readouterr().out.split()[1]) == pytest.approx(solution.verdict.value)
    top = out.read_text().splitlines()
    out.write_text("\n".join(top[:1]) + "\n")  # the lowest block without what lies above it
    assert main([prefix, str(out)]) == 1
    out.write_text("\n".join([*top, top[0]]) + "\n")
    assert main([prefix, str(out)]) == 1


def test_slopes_are_judged_from_the_schedules_own_rows(tmp_path, capsys):
    model, out = tmp_path / "model.csv", tmp_path / "plan.csv"
    write_csv(block_model(Deposit(7, 6, 5, seed=5, richness=0.8)), model)
    run(SolveConfig(model=str(model), method=Method.toposort, schedule=str(out)))
    assert main([str(out), "--degrees", "45", "--size", "20,20,15"]) == 0
    assert main([str(out), "--degrees", "20", "--size", "20,20,15"]) == 1
    assert "undercuts" in capsys.readouterr().out
    assert main([str(tmp_path / "none.csv")]) == 2


def test_the_program_imports_nothing_of_ours():
    for path in Path("mine_rl_npv/verify").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mine_rl_npv"):
                assert node.module in ("mine_rl_npv.verify", "mine_rl_npv.verify.text")
            assert "frugal_rl" not in ast.unparse(node) if isinstance(node, ast.Import) else True


@pytest.mark.parametrize("kind", ["pipe", "device", "holes", "folder", "header", "codes"])
def test_a_file_that_is_no_table_is_told_at_once(kind, tmp_path, capsys):
    path = tmp_path / "a.csv"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "holes":
        path.touch()
        os.truncate(path, 1 << 36)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_text("x,y,z,period\n" if kind == "header" else "x,y,z\n\x1b[2J,1,1\n")
    assert main([str(path)]) == 2
    said = capsys.readouterr().err.rstrip("\n")
    assert said.startswith("cannot be judged: ")
    assert said.isprintable()
