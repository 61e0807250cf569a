"""Who looks on while priorities are learned, and how long that goes on."""

from __future__ import annotations

from collections.abc import Callable

Watch = Callable[[float, int, float], None]
"""Told of seconds (nan after Ctrl-C), decodes so far and the best value relative to the bound."""


def going_on(spent: float, seconds: float, decoded: int, decodes: int) -> bool:
    """Whether a budget is left: of decodes where one is given, else of seconds."""
    return decoded < decodes if decodes else spent < seconds
