"""Modules that are imported when something in them is first asked for.

A configuration is a value: composing and planning a run must not load what only training needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Late:
    """Stands for a module by its name: `Late("package.module").Thing` imports it then."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
