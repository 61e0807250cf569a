"""Which tests a mutant is asked: those that ran its line when all were recorded."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import coverage
from mutants_drawn import Mutant


@dataclass(frozen=True)
class Recorded:
    """Which tests run which line."""

    folder: Path
    only: tuple[str, ...] = ()
    """Files whose tests alone are asked; all where none is named."""
    most: float = 12
    """Processor seconds of tests, as recorded, that a mutant is asked beside the nearest file."""

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Processor seconds of each test."""
        found: dict[str, float] = {}
        for file in sorted(self.folder.glob("*.json")):
            found |= json.loads(file.read_text())
        return found

    @cached_property
    def parts(self) -> list[coverage.CoverageData]:
        """What coverage wrote, one per file of tests; all in one would take minutes to join."""
        found = [coverage.CoverageData(str(file)) for file in self.folder.glob("*.coverage")]
        for part in found:
            part.read()
        return found

    @cache  # noqa: B019 - there are two of these, to the end
    def lines(self, path: str) -> dict[int, set[str]]:
        """Tests that ran each line of a module."""
        found: dict[int, set[str]] = defaultdict(set)
        for part in self.parts:
            for line, tests in part.contexts_by_lineno(str(Path(path).resolve())).items():
                found[line] |= self.seconds.keys() & tests
        return found

    def tests(self, mutant: Mutant) -> list[list[str]]:
        """Tests that run the mutant's line, else its function; then their neighbours.

        What one test of a file made may be kept for those after it.
        """
        lines = self.lines(mutant.path)
        found = lines.get(mutant.line, set())
        if not found:
            span = range(mutant.lines[0], mutant.lines[1] + 1)
            found = set().union(*(lines.get(n, set()) for n in span))
        return self.by_file(found, mutant.path)

    def beside(self, mutant: Mutant) -> list[list[str]]:
        """The tests of the module's room, where none is known to run the line.

        Lines of compiled functions and those that run at import are in no test's record.
        """
        for room in (Path("tests") / Path(mutant.path)).parents:
            found = {test for test in self.seconds if Path(test.split("::")[0]).parent == room}
            if found:
                return self.by_file(found, mutant.path)
        return []

    def by_file(self, found: set[str], path: str) -> list[list[str]]:
        """These tests by file, the nearest to a module first, then the others of their files."""
        files: dict[str, list[str]] = defaultdict(list)
        others: dict[str, list[str]] = defaultdict(list)
        for test in self.seconds:  # in the order of the file
            (files if test in found else others)[test.split("::")[0]].append(test)
        asked = [f for f in files if not self.only or f in self.only]
        near = sorted(asked, key=lambda f: (-likeness(f, path), self.cost(files[f])))
        hits, rest = [files[f] for f in near], [files[f] + others[f] for f in near if others[f]]
        return self.affordable(hits + rest)

    def affordable(self, chunks: list[list[str]]) -> list[list[str]]:
        """The first file's tests, and of the others those that fit into the time."""
        chosen, spent = chunks[:1], 0.0
        for chunk in chunks[1:]:
            if spent + self.cost(chunk) <= self.most:
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
