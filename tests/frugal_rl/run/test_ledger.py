"""Runs side by side never reserve more than the machine has, and nobody waits for the dead."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from frugal_rl.errors import ConfigError, DiskError, LaunchError, MemoryBudgetError
from frugal_rl.memory.plan import draw_up
from frugal_rl.run import library
from frugal_rl.run.admission import MARGIN, admitted
from frugal_rl.run.compose import compose_run
from frugal_rl.run.ledger import Entry, Ledger, taken

ROOT = Path(__file__).resolve().parents[3]
WORKER = """
import sys, time
from pathlib import Path
from frugal_rl.run.ledger import Ledger
folder, wants = Path(sys.argv[1]), int(sys.argv[2])
with Ledger(folder / "ledger.json", 100, "a test").entered("me", 0) as line:
    line.resize(wants)
    with open(folder / "trace", "a") as trace:
        trace.write(f"{time.monotonic()} {wants}\\n")
        trace.flush()
        time.sleep(0.3)
        trace.write(f"{time.monotonic()} {-wants}\\n")
"""


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.json", 100, "sweep.budget_gib=1")


@pytest.fixture
def other():
    """A line of another process that lives: the one that started the tests."""
    parent = psutil.Process().parent()
    return replace(Entry.own("other", 70), pid=parent.pid, began=parent.create_time())


def lines(ledger):
    return json.loads(ledger.path.read_text()) if ledger.path.exists() else []


def test_a_run_holds_its_line_while_it_lasts(ledger):
    with ledger.entered("a run", 10) as line:
        line.resize(80)
        assert [(e["what"], e["held"]) for e in lines(ledger)] == [("a run", 80)]
        line.resize(30)
        assert lines(ledger)[0]["held"] == 30

    assert lines(ledger) == []


def test_what_never_fits_is_refused_at_once(ledger):
    with (
        ledger.entered("The run in here", 0) as line,
        pytest.raises(MemoryBudgetError, match=r"run in here needs 101 B, .*sweep\.budget"),
    ):
        line.resize(101)


def test_a_job_that_cannot_even_be_started_is_told_to_raise_the_budget(ledger):
    """It was sent to the plan, which says nothing of starting."""
    with (
        ledger.entered("A sweep", 10, beside=True) as line,
        pytest.raises(MemoryBudgetError, match=r"raise sweep\.budget_gib="),
    ):
        line.resize(101)


def test_a_budget_below_what_planning_holds_is_told_as_that(tmp_path):
    """The plan, to which it was sent, says that the run fits."""
    run = compose_run(["env=toy", f"sweep.ledger={tmp_path / 'ledger.json'}"])
    gib = 1.2 * MARGIN * draw_up(run).ram_bytes / 2**30
    run = replace(run, sweep=replace(run.sweep, budget_gib=gib))
    with (
        pytest.raises(MemoryBudgetError, match="so much is held while it is planned"),
        admitted(run),
    ):
        pytest.fail("a tiny run and a probe would not fit")


def test_a_ledger_that_cannot_be_written_names_its_own_key(tmp_path):
    """It advised hydra.run.dir=, which does not move it."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(DiskError, match=r"choose another with sweep\.ledger="),
        Ledger(tmp_path / "file" / "ledger.json", 100, "a test").entered("a run", 1),
    ):
        pytest.fail("there is no such folder")


def test_a_run_waits_while_others_leave_no_room(ledger, other):
    with ledger.entered("me", 5) as line:
        with ledger.changing() as entries:
            entries.append(other)
        assert not line.tried(40)
        assert next(e for e in lines(ledger) if e["pid"] == os.getpid())["wants"] == 40

        with ledger.changing() as entries:
            entries[:] = [e for e in entries if e.pid == os.getpid()]
        assert line.tried(40)


@pytest.mark.parametrize("change", [{"pid": 2**22 + 1}, {"began": 1.0}])
def test_lines_of_the_dead_are_dropped(ledger, other, change):
    with ledger.changing() as entries:
        entries.append(replace(other, **change))

    with ledger.entered("me", 0) as line:
        assert line.tried(100)
    assert lines(ledger) == []


@pytest.mark.parametrize(
    "raw",
    ['[{"pid": 1', '{"pid": 1}', "[1]", "7", "[" * 9999, '[{"pid": "x"}]', "NaN",
     json.dumps([{**asdict(Entry.own("me", 1)), "pid": "x"}]),
     json.dumps([{**asdict(Entry.own("me", 1)), "held": None}])],
)  # fmt: skip
def test_a_damaged_ledger_is_begun_anew(ledger, raw):
    ledger.path.write_text(raw)

    with ledger.entered("me", 1):
        assert len(lines(ledger)) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"pid": "1"}, {"pid": True}, {"pid": -1}, {"pid": 2**40}, {"held": "much"}, {"held": -5},
        {"held": float("nan")}, {"wants": 1e300}, {"began": "today"}, {"since": None},
        {"host": 7}, {"beside": 1}, {"another": 1}, [1], None, "a line",
    ],
)  # fmt: skip
def test_one_odd_line_is_dropped_and_the_others_count(ledger, other, odd):
    line = {**asdict(other), **odd} if isinstance(odd, dict) else odd
    ledger.path.write_text(json.dumps([line, asdict(other)]))

    with ledger.entered("a run", 10):
        assert [e["what"] for e in lines(ledger)] == ["other", "a run"]


@pytest.mark.parametrize("whole", ["{}", "7", "[" * 5000, "[1" + "0" * 5000 + "]", "\0\xff"])
def test_a_file_that_is_no_ledger_is_begun_anew(ledger, whole):
    ledger.path.write_text(whole)

    with ledger.entered("a run", 10):
        assert [e["what"] for e in lines(ledger)] == ["a run"]


def test_another_machine_does_not_count_and_is_not_touched(ledger, other):
    with ledger.changing() as entries:
        entries.append(replace(other, host="elsewhere"))

    with ledger.entered("me", 0) as line:
        assert line.tried(100)
    assert [e["host"] for e in lines(ledger)] == ["elsewhere"]


def test_who_came_first_is_served_first(ledger):
    early = Entry(1, 0, "h", 0.0, since=1.0, what="early", held=10, wants=90)
    late = Entry(2, 0, "h", 0.0, since=2.0, what="late", held=10, wants=20)
    running = Entry(3, 0, "h", 0.0, since=0.0, what="running", held=20)

    assert not ledger.admits(early, [late, running])
    assert not ledger.admits(late, [early, running])  # though it would fit
    assert ledger.admits(early, [late])
    assert ledger.admits(late, [replace(early, held=10, wants=0), running])


def test_when_all_wait_the_last_one_gives_way(ledger):
    early = Entry(1, 0, "h", 0.0, since=1.0, what="early", held=40, wants=90)
    late = Entry(2, 0, "h", 0.0, since=2.0, what="late", held=40, wants=70)

    assert not ledger.admits(early, [late])
    with pytest.raises(MemoryBudgetError, match="Start fewer at once"):
        ledger.admits(late, [early])


def test_a_process_that_is_started_counts_until_it_has_a_line():
    parent = Entry(1, 0, "h", 0.0, 0.0, "sweep", held=10, coming=40, beside=True)
    child = Entry(2, 1, "h", 0.0, 0.0, "run", held=25)

    assert taken([parent]) == 50
    assert taken([parent, child]) == 35


def test_whoever_is_started_already_finds_room_where_its_starter_kept_some(ledger):
    """The starter's 40 are the run's own: it has a line, and wants to hold more."""
    starter = Entry(1, 0, "h", 0.0, since=0.0, what="sweep", held=10, coming=40, beside=True)
    run = Entry(2, 1, "h", 0.0, since=1.0, what="run", held=5, wants=80)

    assert ledger.admits(run, [starter])


def test_what_has_begun_goes_before_what_is_to_be_started(ledger):
    starter = Entry(1, 0, "h", 0.0, since=0.0, what="sweep", held=10, wants=50, beside=True)
    run = Entry(2, 3, "h", 0.0, since=1.0, what="run", held=5, wants=60)

    assert ledger.admits(run, [starter])
    assert not ledger.admits(starter, [run])


def test_a_job_does_not_wait_for_those_who_start_others(ledger):
    starters = [
        Entry(n, 0, "h", 0.0, since=0.0, what="sweep", held=20, beside=True) for n in (1, 2, 3)
    ]
    run = Entry(9, 1, "h", 0.0, since=1.0, what="The run", held=5, wants=41)

    with pytest.raises(LaunchError, match=r"The run needs 41 B .*60 B of 3 .*n_jobs"):
        ledger.admits(run, starters)
    with pytest.raises(LaunchError, match=r"sweep needs 61 B .*40 B of 2"):
        ledger.admits(replace(starters[0], wants=61), starters[1:])
    assert ledger.admits(replace(run, wants=40), starters)
    assert not ledger.admits(replace(run, parent=77), starters)  # of no sweep: they will end


def test_processes_together_never_hold_more_than_the_budget(tmp_path):
    sizes = [60, 50, 40, 30, 20]
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    workers = [subprocess.Popen([*command, str(size)], cwd=ROOT) for size in sizes]

    assert [worker.wait(60) for worker in workers] == [0] * len(sizes)

    held, most = 0, 0
    trace = [line.split() for line in (tmp_path / "trace").read_text().splitlines()]
    for _, change in sorted(trace, key=lambda pair: float(pair[0])):
        held += int(change)
        most = max(most, held)
    assert held == 0
    assert max(sizes) < most <= 100


def test_one_process_may_hold_two_lines(ledger):
    with ledger.entered("first", 10) as first, ledger.entered("second", 20) as second:
        first.resize(60)
        assert sorted(e["held"] for e in lines(ledger)) == [20, 60]
        assert not second.tried(50)  # 60 + 50 are more than all

    assert lines(ledger) == []


COUNTER = """
import sys
from pathlib import Path
from frugal_rl.run.ledger import Ledger
count = Path(sys.argv[1], "count")
for _ in range(300):
    with Ledger(Path(sys.argv[1], "runs", "ledger.json"), 100, "a test").changing():
        count.write_text(str(int(count.read_text()) + 1))
"""


def test_a_ledger_without_entries_leaves_nothing_behind(tmp_path):
    ledger = Ledger(tmp_path / "runs" / "ledger.json", 100, "a test")
    with ledger.entered("a run", 10):
        assert ledger.path.exists()

    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_others_remove_meanwhile_still_locks(tmp_path):
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", COUNTER, str(tmp_path)]
    several = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]

    assert [process.wait(60) for process in several] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "900"


def test_a_library_run_waits_for_room_beside_others(tmp_path, monkeypatch):
    """The line of a run that is trained by `frugal_rl.train`, seen while it trains."""
    file = tmp_path / "ledger.json"
    run = compose_run(["env=toy", "sweep.budget_gib=8", f"sweep.ledger={file}"])
    seen = []

    def trained(settled, drawn_up):
        seen.append(json.loads(file.read_text()))
        return {}

    monkeypatch.setattr(library, "train_planned", trained)
    monkeypatch.setattr(library, "prepare", lambda asked, probe: (asked, draw_up(asked)))
    library.train(replace(run, run_dir=str(tmp_path)))

    ((line,),) = seen
    assert line["held"] == int(MARGIN * draw_up(run).ram_bytes)
    assert not file.exists()


def test_a_library_run_does_not_start_processes(tmp_path):
    with pytest.raises(ConfigError, match=r"scripts/train\.py .*launch=single"):
        library.train("env=toy launch=torchrun")


def test_who_waits_gives_back_what_it_does_not_hold(ledger):
    """Two that were admitted to plan, and whose plans turn out larger: both find room in turn."""
    with ledger.entered("early", 5) as early, ledger.entered("late", 5) as late:
        early.resize(45)
        late.resize(45)
        assert not late.tried(60)  # early holds 45; what late reserved is free again
        assert sorted(e["held"] for e in lines(ledger)) == [5, 45]
        assert early.tried(60)
        assert not late.tried(60)
        early.resize(5)
        assert late.tried(60)
