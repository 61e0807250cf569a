"""What an array of strangers may be: types of fixed size, and shapes that are shapes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.printing import printable

PLAIN_DTYPE = re.compile(r"[<>|=]?[?biufcSUVMm]\d{0,9}(\[\d{0,9}[a-zA-Z]{1,2}\])?")
"""Types of fixed size that hold no references, as NumPy writes them."""


def plain_dtype(described: Any, depth: int = 4) -> np.dtype[Any]:
    """A NumPy type from its description: fixed size, no objects, at least a byte.

    Raises:
        DataError: it describes anything else.
    """
    found = _named_dtype(described) or _record(described, depth)
    if found is None or not found.itemsize:  # of nothing, any number of values is in no bytes
        raise DataError(f"'{printable(str(described))}' is no type of array.")
    return found


def _named_dtype(described: Any) -> np.dtype[Any] | None:
    if not isinstance(described, str) or not PLAIN_DTYPE.fullmatch(described):
        return None
    try:
        return np.dtype(described)
    except TypeError as error:
        raise DataError(f"'{printable(described)}' is no type of array.") from error


def _record(described: Any, depth: int) -> np.dtype[Any] | None:
    if not isinstance(described, list) or not 0 < len(described) <= 1000 or not depth:
        return None
    try:
        fields = [(str(d[0]), plain_dtype(d[1], depth - 1), *_sub(d[2:])) for d in described]
        return np.dtype(fields)
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise DataError("a record's fields are described wrongly.") from error


def _sub(shape: list[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(checked_shape(s) for s in shape)


def checked_shape(shape: Any) -> tuple[int, ...]:
    """At most 32 whole numbers of at least 0.

    Raises:
        DataError: it is anything else.
    """
    whole = isinstance(shape, list | tuple) and len(shape) <= 32
    if not whole or not all(type(n) is int and 0 <= n < 1 << 48 for n in shape):
        raise DataError(f"'{printable(str(shape))}' is no shape of an array.")
    return tuple(shape)
