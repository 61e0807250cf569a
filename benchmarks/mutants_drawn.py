"""Mutants of the functions of files, made by mutmut's operators.

mutmut itself leaves out decorated functions, because it calls mutants through a wrapper; here each
mutant is one changed source, so kernels and properties are mutated too.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

ROOMS = ("observation", "store", "memory", "learn")
KERNELS = {"njit", "inlined", "kernel"}


class EveryFunction(MutationVisitor):
    """mutmut's visitor, which also enters decorated functions."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef) and node.decorators:
            return False
        return bool(super()._skip_node_and_children(node))


@dataclass(frozen=True)
class Mutant:
    """One changed source, and what changed where."""

    path: str
    mark: str
    line: int
    what: str
    kernel: bool
    lines: tuple[int, int]
    source: str

    @property
    def name(self) -> str:
        """Where it is, and a mark that stays when other lines of the file change."""
        return f"{self.path}:{self.line} {self.mark}"

    @property
    def key(self) -> str:
        """The same in a file whose other lines changed."""
        return f"{self.path} {self.mark}"


def kernel_lines(tree: ast.Module) -> set[int]:
    """Lines inside functions that Numba compiles."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            called = {d.func if isinstance(d, ast.Call) else d for d in node.decorator_list}
            if {d.id for d in called if isinstance(d, ast.Name)} & KERNELS:
                found.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return found


class MutatedFile:
    """A file and every mutation of its functions."""

    def __init__(self, path: Path) -> None:
        self.path, text = path, path.read_text()
        self.tree = ast.parse(text)
        wrapper = MetadataWrapper(cst.parse_module(text))
        visitor = EveryFunction(mutation_operators, IgnoredCode(set(), set(), set()))
        wrapper.visit(visitor)
        self.module, self.places = wrapper.module, wrapper.resolve(PositionProvider)
        self.mutations = [
            m
            for m in visitor.mutations
            if isinstance(m.contained_by_top_level_function, cst.FunctionDef)
        ]

    @cached_property
    def changes(self) -> list[str]:
        """What each changes: function, before and after, and which of equal ones."""
        seen: Counter[str] = Counter()
        found = []
        for m in self.mutations:
            outer = cst.ensure_type(m.contained_by_top_level_function, cst.FunctionDef)
            nodes = (self.module.code_for_node(n) for n in (m.original_node, m.mutated_node))
            change = " -> ".join([outer.name.value, *nodes])
            seen[change] += 1
            found.append(f"{change} {seen[change]}")
        return found

    def marks(self, seed: int) -> list[str]:
        """A number for each, evenly spread; the lowest are drawn."""
        spread = (f"{seed} {self.path} {change}".encode() for change in self.changes)
        return [hashlib.sha256(text).hexdigest()[:8] for text in spread]

    def mutant(self, number: int, mark: str) -> Mutant | None:
        """One of them; None where it does not compile or changes nothing."""
        mutation = self.mutations[number]
        old, new = mutation.original_node, mutation.mutated_node
        source = cst.ensure_type(deep_replace(self.module, old, new), cst.Module).code
        try:
            if ast.dump(ast.parse(source)) == ast.dump(self.tree):
                return None
        except SyntaxError:
            return None
        before, after = (" ".join(self.module.code_for_node(node).split()) for node in (old, new))
        outer = cst.ensure_type(mutation.contained_by_top_level_function, cst.FunctionDef)
        line, last = self.places[old].start.line, self.places[outer].end.line
        return Mutant(
            path=str(self.path),
            mark=mark,
            line=line,
            what=f"{before} -> {after}",
            kernel=line in kernel_lines(self.tree),
            lines=(self.places[outer.body].start.line, last),
            source=source,
        )


def room_files(room: str) -> list[Path]:
    """The room's sources."""
    return sorted(Path("frugal_rl", room).rglob("*.py"))


def drawn(room: str, count: int, seed: int) -> list[Mutant]:
    """So many mutants, uniformly among all of a room's; one that changed is replaced by another."""
    files = [MutatedFile(path) for path in room_files(room)]
    marked = [(mark, file, n) for file in files for n, mark in enumerate(file.marks(seed))]
    marked.sort(key=lambda row: row[0])
    found = (mutant for mark, file, n in marked if (mutant := file.mutant(n, mark)))
    print(f"{room}: {count} of {len(marked)} mutants in {len(files)} files", flush=True)
    return list(islice(found, count))
