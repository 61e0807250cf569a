"""Values of dataclasses as plain words beside a list of arrays, and back: what a file can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

CLASS, ARRAY, ITEMS = "class", "array", "items"


def packed(value: Any) -> tuple[Any, list[np.ndarray]]:
    """Words for a value and its arrays, each once however often the value names it."""
    arrays: dict[int, tuple[int, np.ndarray]] = {}
    words = _packed(value, arrays)
    return words, [array for _, array in arrays.values()]


def _packed(value: Any, arrays: dict[int, tuple[int, np.ndarray]]) -> Any:
    if isinstance(value, np.ndarray):
        return {ARRAY: arrays.setdefault(id(value), (len(arrays), value))[0]}
    if is_dataclass(value):
        parts = {f.name: _packed(getattr(value, f.name), arrays) for f in fields(value)}
        return {CLASS: type(value).__name__, ITEMS: parts}
    if isinstance(value, dict):
        return {ITEMS: {key: _packed(item, arrays) for key, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_packed(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def unpacked(words: Any, arrays: Sequence[np.ndarray], classes: Mapping[str, type]) -> Any:
    """The value of `packed`; every list is a tuple.

    Raises:
        KeyError: words name another class.
    """
    if isinstance(words, list):
        return tuple(unpacked(word, arrays, classes) for word in words)
    if not isinstance(words, dict):
        return words
    if ARRAY in words:
        return arrays[words[ARRAY]]
    parts = {key: unpacked(word, arrays, classes) for key, word in words[ITEMS].items()}
    return classes[words[CLASS]](**parts) if CLASS in words else parts
