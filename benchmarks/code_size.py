"""What our code adds to a stock Stable-Baselines3 process, part by part: a rollout must save more.

`python benchmarks/code_size.py`; compiled code comes from its caches from the second time on.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
import stable_baselines3  # noqa: F401 - what a stock script has loaded

from frugal_rl.memory.usage import resident_bytes


def first_function() -> None:
    """The smallest one; the compiler's libraries come with it."""
    words = np.zeros((2, 1), np.uint64)
    handles = np.zeros((1, 1), np.int64)
    import_module("frugal_rl.store.found.plain").copy_rows(words, handles, words[None, :1])


def all_functions() -> None:
    """All that a rollout may call."""
    import_module("frugal_rl.store.found.trial").load_kernels()


PARTS: dict[str, Callable[[], object]] = {
    "import numba": lambda: import_module("numba"),
    "import frugal_rl.sb3.rollout": lambda: import_module("frugal_rl.sb3.rollout"),
    "the first compiled function": first_function,
    "all that a rollout may call": all_functions,
}


def main() -> None:
    start = resident_bytes()
    for name, load in PARTS.items():
        before = resident_bytes()
        load()
        print(f"{name:30}{(resident_bytes() - before) / 2**20:6.1f} MiB")
    print(f"{'in all':30}{(resident_bytes() - start) / 2**20:6.1f} MiB")


if __name__ == "__main__":
    main()
