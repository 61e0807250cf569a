"""The share of mutants of four rooms that their tests notice, with every survivor.

    pip install -c constraints.txt -e '.[dev,mutants]'
    python benchmarks/mutants.py record            # which test runs which line (minutes, once)
    python benchmarks/mutants.py record --plain    # the same for kernels, as plain Python
    python benchmarks/mutants.py judge             # draws 320 mutants, judges and prints them
    python benchmarks/mutants.py judge --again     # those that survived, once more

mutmut's operators make the mutants. Each is imported in a fork of a process that holds the
libraries already, and judged by the tests that run its line, the nearest file first. Kernels are
mutated as plain Python, since Numba's cache does not look at constants.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.abc
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
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import coverage
import hypothesis
import pytest
from mutants_drawn import ROOMS, Mutant, drawn, room_files

TESTS = (*ROOMS, "vec_env", "sb3")
PLAIN_TESTS = ("observation", "store", "learn")
LIBRARIES = (
    *("torch", "scipy.sparse", "gymnasium", "stable_baselines3", "hydra", "omegaconf", "numba"),
    *("rich.table", "psutil", "yaml", "hypothesis.extra.numpy", "sb3_contrib", "lz4.frame"),
)
PYTEST = ["-q", "-n0", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
TEST_SECONDS = 9
"""A test that takes longer judges nothing; as plain Python a third of it."""
JUDGE_SECONDS = 12
"""Processor seconds of tests, as they were recorded, that one mutant is asked."""


def load_libraries() -> None:
    """Import what forks share; none of it is ours."""
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
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


def disable_kernels(plain: bool) -> None:
    """Let Numba hand functions back as they are."""
    importlib.import_module("numba").core.config.DISABLE_JIT = int(plain)


class Recorder:
    """A pytest plug-in: lines and processor seconds of each test that passes."""

    def __init__(self, measured: coverage.Coverage, limit: int) -> None:
        self.measured, self.limit = measured, limit
        self.seconds: dict[str, float] = {}
        self.bad: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Time one test."""
        self.measured.switch_context(item.nodeid)
        signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, self.limit)
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


def _too_long(*_: Any) -> None:
    raise TimeoutError("too long for judging mutants")


def record_file(test: str, out: Path, plain: bool) -> int:
    """In a fork: one test file under coverage."""
    disable_kernels(plain)
    measured = coverage.Coverage(
        data_file=str(out.with_suffix(".coverage")),
        source=[f"frugal_rl/{room}" for room in ROOMS],
    )
    recorder = Recorder(measured, TEST_SECONDS // 3 if plain else TEST_SECONDS)
    measured.start()
    pytest.main([*PYTEST, test], plugins=[recorder])
    measured.stop()
    measured.save()
    passed = {k: v for k, v in recorder.seconds.items() if k not in recorder.bad}
    out.write_text(json.dumps(passed))
    return 0


def record(folder: Path, tests: list[str], plain: bool, missing: bool) -> None:
    """Run each test file once under coverage, with kernels as plain Python if asked."""
    folder = folder / ("plain" if plain else "usual")
    folder.mkdir(parents=True, exist_ok=True)
    load_libraries()
    files = [file for test in tests for file in _files(Path(test))]
    start = time.process_time() + sum(os.times()[2:4])
    for file in files:
        out = folder / (str(file).replace("/", "+") + ".json")
        if missing and out.exists():
            continue
        out.unlink(missing_ok=True)
        forked(lambda file=file, out=out: record_file(str(file), out, plain), 240)  # type: ignore[misc]
        passed = json.loads(out.read_text()) if out.exists() else {}
        print(f"{file}: {len(passed)} tests, {sum(passed.values()):.1f} s", flush=True)
    print(f"{time.process_time() + sum(os.times()[2:4]) - start:.0f} processor seconds")


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


@dataclass(frozen=True)
class Recorded:
    """Which tests run which line."""

    folder: Path

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Processor seconds of each test."""
        found: dict[str, float] = {}
        for file in sorted(self.folder.glob("*.json")):
            found |= json.loads(file.read_text())
        return found

    @cached_property
    def data(self) -> coverage.CoverageData:
        """What coverage wrote, of all files together."""
        together = coverage.CoverageData(no_disk=True)
        for file in sorted(self.folder.glob("*.coverage")):
            part = coverage.CoverageData(str(file))
            part.read()
            together.update(part)
        return together

    def tests(self, mutant: Mutant) -> list[list[str]]:
        """Files' tests that run the mutant's line (else its function), the nearest file first."""
        lines = self.data.contexts_by_lineno(str(Path(mutant.path).resolve()))
        found = set(lines.get(mutant.line, ())) & set(self.seconds)
        if not found:
            span = range(mutant.lines[0], mutant.lines[1] + 1)
            found = {t for n in span for t in lines.get(n, ())} & set(self.seconds)
        files: dict[str, list[str]] = defaultdict(list)
        for test in self.seconds:  # in the order of the file
            if test in found:
                files[test.split("::")[0]].append(test)
        near = sorted(files, key=lambda f: (-likeness(f, mutant.path), self.cost(files[f])))
        return self.affordable([files[file] for file in near])

    def affordable(self, chunks: list[list[str]]) -> list[list[str]]:
        """The first file's tests, and of the others those that fit into the time."""
        chosen, spent = [], 0.0
        for chunk in chunks:
            if not chosen or spent + self.cost(chunk) <= JUDGE_SECONDS:
                chosen.append(chunk)
                spent += self.cost(chunk)
        return chosen

    def cost(self, tests: list[str]) -> float:
        """Processor seconds of these."""
        return sum(self.seconds[test] for test in tests)


def likeness(test: str, path: str) -> int:
    """How near a test file lies to a module: the same name, the same room."""
    stem = Path(test).stem.removeprefix("test_")
    return 2 * (stem == Path(path).stem) + (Path(path).parts[1] in Path(test).parts)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a mutant's source."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.path = mutant, str(Path(mutant.path).resolve())
        self.module = mutant.path[:-3].replace("/", ".")

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Only the mutated module."""
        if name == self.module:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)
        return None

    def create_module(self, spec: Any) -> None:
        """The usual one."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        exec(compile(self.mutant.source, self.path, "exec"), module.__dict__)


def examine(mutant: Mutant, tests: list[list[str]]) -> int:
    """In a fork: run the tests file by file until one fails; the exit status says so."""
    resource.setrlimit(resource.RLIMIT_CPU, (JUDGE_SECONDS * 5, JUDGE_SECONDS * 5))
    disable_kernels(mutant.kernel)
    sys.meta_path.insert(0, Changed(mutant))
    for chunk in tests:
        if pytest.main([*PYTEST, "-x", *chunk]) not in (0, 5):
            return 1
    return 0


def judge(mutant: Mutant, recorded: dict[bool, Recorded]) -> tuple[str, int]:
    """Killed, survived, or too slow; and how many tests were asked."""
    tests = recorded[mutant.kernel].tests(mutant)
    asked = sum(len(chunk) for chunk in tests)
    if not tests:
        return "survived", 0
    code = forked(lambda: examine(mutant, tests), 15 * JUDGE_SECONDS)
    if code is None:
        return "too slow", asked
    return {0: "survived", 1: "killed"}.get(code, "died"), asked


def kept_draw(folder: Path, room: str, count: int, seed: int) -> list[Mutant]:
    """The draw of before where no source of the room has changed: drawing reads every file."""
    sources = b"".join(path.read_bytes() for path in room_files(room))
    digest = hashlib.sha256(sources).hexdigest()[:12]
    file = folder / f"{room}-{count}-{seed}-{digest}.json"
    if not file.exists():
        file.write_text(json.dumps([asdict(mutant) for mutant in drawn(room, count, seed)]))
    return [Mutant(**{**row, "lines": tuple(row["lines"])}) for row in json.loads(file.read_text())]


def judge_all(folder: Path, options: argparse.Namespace) -> None:
    """Judge what is not judged yet, and write each verdict down."""
    file = folder / "verdicts.json"
    verdicts: dict[str, list[Any]] = json.loads(file.read_text()) if file.exists() else {}
    if options.again:
        verdicts = {name: row for name, row in verdicts.items() if row[0] == "killed"}
    recorded = {
        plain: Recorded(folder / ("plain" if plain else "usual")) for plain in (False, True)
    }
    draws = [kept_draw(folder, room, options.per_room, options.seed) for room in ROOMS]
    chosen = [mutant for draw in draws for mutant in draw]
    load_libraries()
    start = time.monotonic()
    random.Random(0).shuffle(chosen)  # whatever time allows is spread over the rooms
    for mutant in chosen:
        if not recorded[mutant.kernel].seconds:
            continue  # nothing was recorded that could judge it
        if mutant.name not in verdicts and time.monotonic() - start < options.seconds:
            verdicts[mutant.name] = [*judge(mutant, recorded), mutant.what]
            file.write_text(json.dumps(verdicts, indent=0))
    show([mutant for mutant in chosen if mutant.name in verdicts], verdicts)


def show(judged: list[Mutant], verdicts: dict[str, list[Any]]) -> None:
    """One row per room, then the survivors."""
    print("\n| room | mutants | killed | share |\n|---|---|---|---|")
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for mutant in judged:
        for room in (mutant.path.split("/")[1], "all"):
            counts[room][verdicts[mutant.name][0] != "survived"] += 1
    for room in (*ROOMS, "all"):
        killed, total = counts[room][True], counts[room].total()
        print(f"| {room} | {total} | {killed} | {killed / max(total, 1):.1%} |")
    print("\nby verdict:", dict(Counter(verdicts[mutant.name][0] for mutant in judged)))
    for mutant in sorted(judged, key=lambda mutant: mutant.name):
        verdict, asked, what = verdicts[mutant.name]
        if verdict != "killed":
            print(f"{verdict} after {asked} tests: {mutant.name} {what[:150]}")


def main() -> None:
    """Record or judge."""
    parser = argparse.ArgumentParser(description="Mutants of four rooms and their tests.")
    parser.add_argument("what", choices=["record", "judge"])
    parser.add_argument("tests", nargs="*", help="files for record; default: those of the rooms")
    parser.add_argument("--folder", type=Path, default=Path("build/mutants"))
    parser.add_argument("--plain", action="store_true", help="record kernels as plain Python")
    parser.add_argument("--missing", action="store_true", help="record what is not recorded yet")
    parser.add_argument("--per-room", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="begin no mutant after these")
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
