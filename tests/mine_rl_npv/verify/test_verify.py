"""The independent program agrees with the checker, shares no line with it, and sees every break."""

import ast
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
                assert node.module == "mine_rl_npv.verify"
            assert "frugal_rl" not in ast.unparse(node) if isinstance(node, ast.Import) else True
