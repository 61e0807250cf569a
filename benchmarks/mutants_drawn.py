"""Mutants of the functions of files, made by mutmut's operators.

mutmut itself leaves out decorated functions, because it calls mutants through a wrapper; here each
mutant is one changed source, so kernels and properties are mutated too.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
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
    number: int
    line: int
    what: str
    kernel: bool
    lines: tuple[int, int]
    source: str

    @property
    def name(self) -> str:
        """Stable while the file is."""
        return f"{self.path}:{self.line}#{self.number}"


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

    def mutant(self, number: int) -> Mutant | None:
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
            number=number,
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
    """So many mutants, uniformly among all of a room's."""
    files = [MutatedFile(path) for path in room_files(room)]
    everything = [(file, n) for file in files for n in range(len(file.mutations))]
    random.Random(f"{seed} {room}").shuffle(everything)
    found = (mutant for file, n in everything if (mutant := file.mutant(n)))
    print(f"{room}: {count} of {len(everything)} mutants in {len(files)} files", flush=True)
    return list(islice(found, count))
