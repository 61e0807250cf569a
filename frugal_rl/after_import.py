"""Something to do as soon as a module of others has been imported, whoever imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class AfterImport(MetaPathFinder, Loader):
    """Asked first; it finds one module, once, and does what is to be done behind its import."""

    def __init__(self, module: str, then: Callable[[], object]) -> None:
        self.module, self.then = module, then
        self.real: Loader | None = None

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Where everybody else finds the module."""
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None:
            self.real, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As its own loader does."""
        return self.real.create_module(spec) if self.real else None

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module to its own loader, as if nobody had come between."""
        assert module.__spec__ is not None
        assert self.real is not None
        module.__loader__ = module.__spec__.loader = self.real
        self.real.exec_module(module)
        self.then()


def after_import(module: str, then: Callable[[], object]) -> None:
    """Do something behind the first import of a module; at once, if it is there already."""
    if module in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, AfterImport(module, then))
