"""What a value may be, declared beside its field: `Annotated[float, above(0)]`.

`build_as` looks at every dataclass that a configuration names, so that a value which cannot work
is refused like a mistyped key; a dataclass that is also made by hand calls `check_ranges` itself.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from frugal_rl.errors import ConfigError

LARGEST_SEED = 2**32 - 1
"""NumPy's global generator takes no larger seed."""


@dataclass(frozen=True)
class Range:
    """Finite numbers from `low` to `high`; an open end does not belong to it."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def takes(self, value: Any) -> bool:
        """Whether a number lies inside; what is no number is not judged here."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return math.isfinite(value) and above and below

    def __str__(self) -> str:
        least, most = _written(self.low), _written(self.high)
        low = f"above {least}" if self.open_low else f"of at least {least}"
        high = f"below {most}" if self.open_high else f"at most {most}"
        if self.low == -math.inf:
            return "a finite number" if self.high == math.inf else f"a number {high}"
        return f"a number {low}" + ("" if self.high == math.inf else f" and {high}")


def _written(bound: float) -> str:
    """A bound with all its digits where it is whole, as one may type it."""
    return f"{bound:.0f}" if math.isfinite(bound) and bound == int(bound) else f"{bound:g}"


@dataclass(frozen=True)
class Words:
    """One of a few words, or what `pattern` matches."""

    words: tuple[str, ...]
    pattern: str = "$."

    def takes(self, value: Any) -> bool:
        """Whether a word is one of them."""
        return value in self.words or re.fullmatch(self.pattern, str(value)) is not None

    def __str__(self) -> str:
        named = [word or "nothing" for word in self.words]
        return f"{', '.join(named[:-1])} or {named[-1]}"


def above(low: float) -> Range:
    """Finite numbers above `low`."""
    return Range(low, open_low=True)


def at_least(low: float) -> Range:
    """Finite numbers from `low` on."""
    return Range(low)


def between(low: float, high: float) -> Range:
    """Numbers from `low` to `high`, both of them included."""
    return Range(low, high)


def one_of(*words: str, pattern: str = "$.") -> Words:
    """These words, and what a regular expression matches in full."""
    return Words(words, pattern)


SEED = between(0, LARGEST_SEED)
SHARE = Range(0, 1, open_low=True)
"""More than nothing, at most everything."""


def check_ranges(config: Any, where: str = "") -> None:
    """Refuse values of a dataclass that lie outside what their fields declare.

    Raises:
        ConfigError: naming key, value and what the key takes.
    """
    for name, limits in _declared(config.__class__):
        for value in _values(getattr(config, name)):
            wrong = next((limit for limit in limits if not limit.takes(value)), None)
            if wrong is not None:
                key = f"{where}.{name}" if where else name
                raise ConfigError(f"{key} is {value}; use {wrong}.")


def _values(value: Any) -> Iterator[Any]:
    """A field's value, or each of a list; None stands for what is not set."""
    for item in value if isinstance(value, tuple | list) else (value,):
        if item is not None:
            yield item


def _limits(hint: Any) -> tuple[Range | Words, ...]:
    """What a type declares, or one of several that a field takes: a range judges numbers alone."""
    limits = tuple(e for e in getattr(hint, "__metadata__", ()) if isinstance(e, Range | Words))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inside = [limit for one in typing.get_args(hint) for limit in _limits(one)]
        limits += tuple(limit for limit in inside if isinstance(limit, Range))
    return limits


@lru_cache(maxsize=256)
def _declared(cls: type[Any]) -> tuple[tuple[str, tuple[Range | Words, ...]], ...]:
    """Fields of a dataclass with what they declare."""
    hints = typing.get_type_hints(cls, include_extras=True)
    found = []
    for field in fields(cls):
        limits = _limits(hints[field.name])
        if limits:
            found.append((field.name, limits))
    return tuple(found)
