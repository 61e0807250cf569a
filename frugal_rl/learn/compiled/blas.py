"""The BLAS behind Numba's matrix products, kept from starting threads of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from scipy.linalg import cython_blas

PREFIXES = ("scipy_openblas", "openblas")
SUFFIXES = ("", "64_")


@cache
def _openblas() -> tuple[Any, Any] | None:
    """OpenBLAS's functions that read and set its threads; None where SciPy stands on another."""
    library = ctypes.CDLL(cython_blas.__file__)
    for prefix in PREFIXES:
        for suffix in SUFFIXES:
            ask, tell = (
                getattr(library, f"{prefix}_{verb}_num_threads{suffix}", None)
                for verb in ("get", "set")
            )
            if ask is not None and tell is not None:
                return ask, tell
    return None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Matrix products run where they are called: our own threads each have their samples."""
    found = _openblas()
    if found is None:
        yield
        return
    ask, tell = found
    before = ask()
    tell(1)
    try:
        yield
    finally:
        tell(before)
