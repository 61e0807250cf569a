"""Puts a mutant into loaded modules, whose function gets the changed code, or imports it.

Importing our own modules anew for each mutant takes longer than most tests that judge it.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.util
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from mutants_drawn import Mutant

Place = tuple[str, int]
"""Qualified name of a function, and which of those that have it: properties have several."""


def load_own() -> None:
    """Import every module of the core that can be imported here."""
    for path in sorted(Path("frugal_rl").rglob("*.py")):
        name = str(path.with_suffix("")).replace("/", ".").removesuffix(".__init__")
        if path.stem != "__main__":
            try:
                importlib.import_module(name)
            except Exception as error:
                print(f"{name} is left out: {type(error).__name__}")


def compile_anew() -> None:
    """Look into no cache of compiled functions: it does not see that a source has changed."""
    importlib.import_module("numba").core.config.CACHE_DIR = tempfile.mkdtemp()


def functions(code: CodeType, seen: Counter[str]) -> Iterator[tuple[Place, CodeType]]:
    """Code of the functions of a module, methods included, but not of those inside them."""
    for inner in code.co_consts:
        if not isinstance(inner, CodeType):
            continue
        is_function = inner.co_flags & 2  # CO_NEWLOCALS, which the body of a class has not
        if is_function:
            yield (inner.co_qualname, seen[inner.co_qualname]), inner
            seen[inner.co_qualname] += 1
        else:
            yield from functions(inner, seen)


def apply(mutant: Mutant) -> bool:
    """Change the loaded function; False where it is not one function's code that has changed."""
    path = str(Path(mutant.path).resolve())
    before, after = (
        dict(functions(compile(text, path, "exec"), Counter()))
        for text in (Path(mutant.path).read_text(), mutant.source)
    )
    inside = [
        place
        for place, code in before.items()
        if place in after and _bare(code) != _bare(after[place])
    ]
    if len(inside) != 1:
        return False
    (place,) = inside
    old, new = before[place], after[place]
    changed = 0
    for f in [f for f in gc.get_objects() if type(f) is FunctionType]:
        code = f.__code__
        if code.co_filename == path and _where(code) == _where(old):
            try:
                f.__code__ = new
            except ValueError:  # it reads other variables of what is around it
                return False
            changed += 1
    return changed > 0


def _where(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _bare(code: CodeType) -> tuple[object, ...]:
    """What a function does, wherever its lines are."""
    values = tuple(
        _bare(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)
    return (code.co_code, values, *names)


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
