"""The plan as a person reads it, cell by cell."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from frugal_rl.memory.finding import Finding, Severity
from frugal_rl.memory.machine import Limit
from frugal_rl.memory.part import Confidence, Kind, Part, Phase
from frugal_rl.memory.plan import Plan
from frugal_rl.observation.choices import Label
from frugal_rl.report.plan_table import (
    SMALL_SHARE,
    checks_table,
    comparison_table,
    parts_table,
    peaks_table,
    plan_view,
    show_checks,
    verdict_line,
)

MIB, GIB = 1 << 20, 1 << 30
PARTS = (
    Part("rollout: frame", "8 x 4 x 64 B", 600 * MIB, kind=Kind.rollout),
    Part("tables", "one copy", 100 * MIB, shared=True, confidence=Confidence.calibrated),
    Part("activations", "64 x 1 MiB", 200 * MIB, 50 * MIB, phases=frozenset({Phase.update})),
    Part("crumb", "1 B", 1),
    Part("dust", "2 B", 2, 3),
)


def plan_of(limit=2 * GIB, free=4 * GIB, **more):
    found = Limit(limit, "memory.budget_gib=2", GIB, "accelerator 0", free_ram_bytes=free)
    kept = {"profile": "lossless", "label": "lossless", "probed": True, "transitions": 32}
    return Plan(PARTS, found, **{**kept, **more})


def cells(table):
    """Rows of a table as lists of words."""
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def shown(view):
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(view)
    return captured.get()


def test_a_part_is_told_by_formula_bytes_sharing_and_how_sure_it_is():
    rows = cells(parts_table(plan_of()))
    assert rows[0] == ["rollout: frame", "8 x 4 x 64 B", "600.0 MiB", "-", "", "exact"]
    assert rows[1] == ["tables", "one copy", "100.0 MiB", "-", "yes", "calibrated"]
    assert rows[2] == ["activations", "64 x 1 MiB", "200.0 MiB", "50.0 MiB", "", "exact"]


def test_crumbs_are_swept_into_one_line():
    rows = cells(parts_table(plan_of()))
    assert rows[3] == ["2 smaller parts", "", "3 B", "3 B", "", "exact"]
    assert len(rows) == 4


def test_a_part_of_just_the_smallest_share_has_a_line_of_its_own():
    parts = (Part("large", "", 997), Part("crumb", "", 2), Part("dust", "", 1))
    rows = cells(parts_table(Plan(parts, Limit(GIB, "x"))))
    assert SMALL_SHARE * 1000 == 2
    assert [row[0] for row in rows] == ["large", "crumb", "1 smaller parts"]


def test_a_table_of_large_parts_has_no_line_for_the_rest():
    plan = Plan(PARTS[:3], Limit(GIB, "x"))
    assert [row[0] for row in cells(parts_table(plan))] == [part.name for part in PARTS[:3]]


def test_a_table_is_headed_by_what_was_chosen():
    assert parts_table(plan_of()).title == "memory=lossless (lossless)"


def test_each_phase_has_its_peak_and_the_highest_is_marked():
    rows = cells(peaks_table(plan_of()))
    phases = ["start", "rollout", "update (highest)", "evaluation", "checkpoint"]
    assert [row[0] for row in rows] == phases
    assert rows[1][1:] == ["700.0 MiB", "3 B"]
    assert rows[2][1:] == ["900.0 MiB", "50.0 MiB"]


@pytest.mark.parametrize(
    ("limit", "verdict"), [(2 * GIB, "fits"), (950 * MIB, "tight"), (800 * MIB, "does not fit")]
)
def test_a_verdict_names_peak_limit_and_where_it_comes_from(limit, verdict):
    words = verdict_line(plan_of(limit)).plain
    assert words.startswith(f"{verdict}: 900.0 MiB of ")
    assert "(memory.budget_gib=2)" in words
    assert "50.0 MiB of 1.0 GiB VRAM (accelerator 0)" in words


def test_a_plan_without_a_device_says_nothing_of_one():
    plan = Plan(PARTS[:2], Limit(GIB, "x"), probed=True)
    assert "VRAM" not in verdict_line(plan).plain


def test_what_is_free_right_now_is_told_where_it_is_less_than_the_plan():
    assert "only 800.0 MiB is free right now" in verdict_line(plan_of(free=800 * MIB)).plain
    assert "free right now" not in verdict_line(plan_of(free=GIB)).plain
    assert "free right now" not in verdict_line(plan_of(800 * MIB, free=0)).plain


def test_a_plan_by_arithmetic_alone_says_so():
    assert "arithmetic only" in verdict_line(plan_of(probed=False)).plain
    assert "arithmetic only" not in verdict_line(plan_of()).plain


def test_how_long_it_takes_stands_in_a_line_of_its_own():
    duration = SimpleNamespace(words="about 3 hours")
    assert verdict_line(plan_of(duration=duration)).plain.endswith("\nabout 3 hours")


def way(*overrides, label=Label.lossless):
    return SimpleNamespace(overrides=overrides, label=label, cost="nothing", plan=plan_of())


def test_ways_to_fit_follow_in_their_order():
    words = shown(plan_view(plan_of(800 * MIB), [way("memory=lossless"), way("a=1", "b=2")]))
    assert words.index("memory=lossless") < words.index("a=1 b=2")
    assert "ways to fit, the cheapest first" in words
    assert "does not fit: 900.0 MiB" in words


def test_without_ways_nothing_is_said_of_them():
    assert "ways to fit" not in shown(plan_view(plan_of(), []))


def test_profiles_stand_side_by_side_and_a_refused_one_says_why():
    rows = cells(comparison_table([("lossless", plan_of()), ("small", "no sizes for toy")]))
    per_transition = f"{600 * MIB / 32:,.0f}"
    assert rows[0] == [
        "lossless",
        "lossless",
        per_transition,
        "600.0 MiB",
        "900.0 MiB",
        "50.0 MiB",
        "fits",
    ]
    assert rows[1] == ["small", "-", "-", "-", "-", "-", "no sizes for toy"]


def test_a_check_is_a_row_with_its_remedy():
    finding = Finding("F09", "minibatch", Severity.error, "2", "too large", "algo.batch_size=4")
    assert cells(checks_table([finding])) == [
        ["F09", "error", "2", "too large", "algo.batch_size=4"]
    ]


def test_a_check_s_command_is_one_line_however_narrow_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    command = "frugal-rl plan env=nclone " + "env.levels=[walk,jump] " * 5 + "compare=true"
    show_checks(
        [Finding("F07", "total memory", Severity.warning, "9 GiB", "much", command=command)]
    )

    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"F07: {command}"
    assert command not in "".join(lines[:-1])
