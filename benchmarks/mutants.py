"""The share of mutants of four rooms that their tests notice, with every survivor.

    pip install -c constraints.txt -e '.[dev,mutants,contrib,offline,torchrl]'
    python benchmarks/mutants.py record            # which test runs which line (minutes, once)
    python benchmarks/mutants.py record --plain    # the same for kernels, as plain Python
    python benchmarks/mutants.py judge             # draws 304 mutants and prints them judged
    python benchmarks/mutants.py judge --again --ask 90   # those that survived, by more tests

mutmut's operators make the mutants. Each is put into a fork of a process that holds our modules
already, or imported where it is not the code of one function, and judged by the tests that run its
line, the nearest file first, then by their neighbours. Kernels are mutated as plain Python, since
Numba's cache does not look at constants. `mutants_reasons.yaml` says why a survivor is left.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest
import yaml
from mutants_applied import Changed, apply, compile_anew, load_own
from mutants_drawn import ROOMS, Mutant, drawn, room_files
from mutants_recorded import Recorded

TESTS = (*ROOMS, "vec_env", "sb3")
PLAIN_TESTS = ("observation", "store", "learn")
LIBRARIES = (
    *("torch", "scipy.sparse", "gymnasium", "stable_baselines3", "hydra", "omegaconf", "numba"),
    *("rich.table", "psutil", "yaml", "hypothesis.extra.numpy", "sb3_contrib", "lz4.frame"),
)
PYTEST = ["-q", "-n0", "--tb=no", "-p", "no:cacheprovider"]
TEST_SECONDS = 9
"""A test that takes longer judges nothing."""
FILE_SECONDS = 900
"""By the clock, for recording one file of tests."""


def load_libraries() -> None:
    """Import what forks share; none of it is ours."""
    for profile, examples in (("usual", 100), ("plain", 25)):  # kernels as plain Python are slow
        hypothesis.settings.register_profile(
            profile,
            deadline=None,
            derandomize=True,
            database=None,
            max_examples=examples,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        )
    for name in LIBRARIES:
        if importlib.util.find_spec(name.split(".")[0]):
            importlib.import_module(name)
    sys.dont_write_bytecode = True


def forked(work: Callable[[], int], wall_seconds: float) -> int | None:
    """A fork's exit status; None: it was ended because it took too long."""
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        os.setpgrp()
        try:
            code = work()
        except BaseException:
            code = 1
        os._exit(code)
    end = time.monotonic() + wall_seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def kind(plain: bool) -> str:
    """With compiled kernels, or with kernels as plain Python."""
    return "plain" if plain else "usual"


def set_kernels(plain: bool) -> None:
    """Let Numba hand functions back as they are if plain."""
    importlib.import_module("numba").core.config.DISABLE_JIT = int(plain)


def ask(plain: bool, *arguments: str, **plugins: Any) -> int:
    """Let pytest run."""
    set_kernels(plain)
    return pytest.main([*PYTEST, f"--hypothesis-profile={kind(plain)}", *arguments], **plugins)


class Recorder:
    """A pytest plug-in: lines and processor seconds of each test that passes."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        self.bad: set[str] = set()
        self.too_long = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Time one test."""
        self.measured.switch_context(item.nodeid)
        signal.signal(signal.SIGPROF, self.interrupt)
        signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)
        start = time.process_time()
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.seconds[item.nodeid] = round(time.process_time() - start, 3)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out what does not pass."""
        if not report.passed:
            self.bad.add(report.nodeid)

    def interrupt(self, *_: Any) -> None:
        """End a test that takes too long."""
        self.too_long = True
        raise TimeoutError("too long for judging mutants")


def record_file(test: str, out: Path, plain: bool) -> int:
    """In a fork: one test file under coverage; 3: some of its tests took too long."""
    measured = coverage.Coverage(
        data_file=str(out.with_suffix(".coverage")),
        source=[f"frugal_rl/{room}" for room in ROOMS],
    )
    recorder = Recorder(measured)
    measured.start()
    ask(plain, test, plugins=[recorder])
    measured.stop()
    measured.save()
    passed = {k: v for k, v in recorder.seconds.items() if k not in recorder.bad}
    out.write_text(json.dumps(passed))
    return 3 if recorder.too_long else 0


def record(folder: Path, tests: list[str], plain: bool, missing: bool) -> None:
    """Run each test file once under coverage, with kernels as plain Python if asked."""
    folder = folder / kind(plain)
    folder.mkdir(parents=True, exist_ok=True)
    load_libraries()
    files = [file for test in tests for file in _files(Path(test))]
    start = time.process_time() + sum(os.times()[2:4])
    for file in files:
        out = folder / (str(file).replace("/", "+") + ".json")
        if missing and out.exists():
            continue
        out.unlink(missing_ok=True)
        work = partial(record_file, str(file), out, plain)
        if forked(work, FILE_SECONDS) == 3 and not plain:  # what it compiled is compiled now
            forked(work, FILE_SECONDS)
        passed = json.loads(out.read_text()) if out.exists() else {}
        print(f"{file}: {len(passed)} tests, {sum(passed.values()):.1f} s", flush=True)
    print(f"{time.process_time() + sum(os.times()[2:4]) - start:.0f} processor seconds")


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def examine(mutant: Mutant, tests: list[list[str]], loaded: bool, plain: bool, most: int) -> int:
    """In a fork: run the tests file by file until one fails; the exit status says so."""
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    if loaded and not apply(mutant):
        return 4
    if not loaded:
        sys.meta_path.insert(0, Changed(mutant))
    if mutant.kernel and not plain:
        compile_anew()
    for chunk in tests:
        if ask(plain, "-x", *chunk) not in (0, 5):
            return 1
    return 0


@dataclass(frozen=True)
class Court:
    """Judges mutants and writes each verdict down."""

    file: Path
    recorded: dict[bool, Recorded]
    until: float

    @property
    def verdicts(self) -> dict[str, list[Any]]:
        """Verdict, number of tests that were asked and what was changed, by mutant."""
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def judge(self, mutants: list[Mutant], loaded: bool) -> int:
        """Each mutant in a fork; with our modules loaded, those wait that cannot be put there."""
        if loaded and mutants:
            set_kernels(mutants[0].kernel)
            load_own()
        for mutant in mutants:
            verdict, asked = self._judged(mutant, loaded)
            if verdict != "to import":
                found = self.verdicts | {mutant.key: [verdict, asked, mutant.what]}
                self.file.write_text(json.dumps(found, indent=0))
        return 0

    def _judged(self, mutant: Mutant, loaded: bool) -> tuple[str, int]:
        if time.monotonic() > self.until:
            return "to import", 0
        plain, tests = mutant.kernel, self.recorded[mutant.kernel].tests(mutant)
        if not tests:  # none that passes as plain Python reaches it, or it runs at import
            if loaded:
                return "to import", 0
            plain, tests = False, self.recorded[False].beside(mutant)
        asked = sum(len(chunk) for chunk in tests)
        if not tests:
            return "survived", 0
        most = 5 * int(self.recorded[plain].most) + 60 * (mutant.kernel and not plain)
        code = forked(lambda: examine(mutant, tests, loaded, plain, most), 6 * most)
        if code is None:
            return "too slow", asked
        return {0: "survived", 1: "killed", 4: "to import"}.get(code, "died"), asked


def kept_draw(folder: Path, room: str, count: int, seed: int) -> list[Mutant]:
    """The draw of before where no source of the room has changed: drawing reads every file."""
    sources = b"".join(path.read_bytes() for path in room_files(room))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    file = folder / f"{room}-{count}-{seed}-{digest}.json"
    if not file.exists():
        file.write_text(json.dumps([asdict(mutant) for mutant in drawn(room, count, seed)]))
    return [Mutant(**{**row, "lines": tuple(row["lines"])}) for row in json.loads(file.read_text())]


def judge_all(folder: Path, options: argparse.Namespace) -> None:
    """Judge what is not judged yet, and show all."""
    only = tuple(options.tests)
    recorded = {plain: Recorded(folder / kind(plain), only, options.ask) for plain in (False, True)}
    until = time.monotonic() + options.seconds
    court = Court(folder / "verdicts.json", recorded, until)
    if options.again:
        killed = {key: row for key, row in court.verdicts.items() if row[0] == "killed"}
        court.file.write_text(json.dumps(killed, indent=0))
    draws = [kept_draw(folder, room, options.per_room, options.seed) for room in ROOMS]
    chosen = [mutant for draw in draws for mutant in draw]
    load_libraries()
    random.Random(0).shuffle(chosen)  # whatever time allows is spread over the rooms
    for loaded in (False,) if options.again else (True, False):  # some run while ours is imported
        for plain in (False, True):
            known = court.verdicts
            left = [m for m in chosen if m.kernel == plain and m.key not in known]
            forked(partial(court.judge, left, loaded), 2 * options.seconds)
    reasons = yaml.safe_load(options.reasons.read_text()) if options.reasons.exists() else {}
    known = court.verdicts
    show([mutant for mutant in chosen if mutant.key in known], known, reasons)


def show(judged: list[Mutant], verdicts: dict[str, list[Any]], reasons: dict[str, str]) -> None:
    """One row per room, then those that no test noticed."""
    print("\n| room | mutants | killed | not | of those equivalent | share | without those |")
    print("|---|---|---|---|---|---|---|")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in judged:
        verdict, reason = verdicts[mutant.key][0], reasons.get(mutant.key, "")
        same = verdict == "survived" and reason.startswith("equivalent")
        for room in (mutant.path.split("/")[1], "all"):
            counts[room].update(["judged", verdict, *["equivalent"] * same])
    for room in (*ROOMS, "all"):
        c = counts[room]
        killed, same = c["killed"] + c["died"], c["equivalent"]  # too slow may be the machine
        shares = (f"{killed / max(c['judged'] - less, 1):.1%}" for less in (0, same))
        print("|", room, "|", *_cells(c["judged"], killed, c["judged"] - killed, same, *shares))
    print("\nby verdict:", dict(Counter(verdicts[mutant.key][0] for mutant in judged)))
    for mutant in sorted(judged, key=lambda mutant: mutant.name):
        verdict, asked, what = verdicts[mutant.key]
        if verdict != "killed":
            print(f"{verdict} after {asked} tests: {mutant.name} {what[:150]}")
            print(f"    {reasons.get(mutant.key, 'no reason written down')}")


def _cells(*values: Any) -> Iterator[str]:
    return (f"{value} |" for value in values)


def main() -> None:
    """Record or judge."""
    parser = argparse.ArgumentParser(description="Mutants of four rooms and their tests.")
    parser.add_argument("what", choices=["record", "judge"])
    parser.add_argument("tests", nargs="*", help="files to record or ask; default: all")
    parser.add_argument("--folder", type=Path, default=Path("build/mutants"))
    parser.add_argument("--plain", action="store_true", help="record kernels as plain Python")
    parser.add_argument("--missing", action="store_true", help="record what is not recorded yet")
    parser.add_argument("--per-room", type=int, default=76)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="begin no mutant after these")
    parser.add_argument("--reasons", type=Path, default=Path("benchmarks/mutants_reasons.yaml"))
    parser.add_argument("--ask", type=float, default=Recorded.most, help="seconds of tests each")
    parser.add_argument("--again", action="store_true", help="judge survivors once more")
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.what == "record":
        rooms = PLAIN_TESTS if options.plain else TESTS
        tests = options.tests or [f"tests/frugal_rl/{room}" for room in rooms]
        record(options.folder, tests, options.plain, options.missing)
    else:
        judge_all(options.folder, options)


if __name__ == "__main__":
    main()
