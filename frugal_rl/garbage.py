"""When a command looks for garbage: not while it imports, which makes hundred thousands of objects.

All of them stay, and looking through them again and again took a sixth of importing torch, hydra
and numba. Once they are there, they are not looked through any more.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from frugal_rl.doing import doing


def collect_later() -> None:
    """Collect no garbage until `collect_again`."""
    gc.disable()


def collect_again() -> None:
    """Collect garbage as Python does; what is there by now is looked through for the last time.

    Where garbage is collected already, nothing changes.
    """
    if not gc.isenabled():
        gc.collect()  # Hydra and its files leave 3 MiB
        _collect_what_comes()


def _collect_what_comes() -> None:
    gc.freeze()
    gc.enable()


@contextmanager
def loading_torch() -> Iterator[None]:
    """Say that torch is loaded inside, and never look through what is there at the end.

    Where it was loaded before, as in the second job of a sweep, what is there is not only modules:
    all of it is collected as ever.
    """
    with doing("loading torch"):
        if "torch" in sys.modules:
            yield
            return
        collect_later()
        try:
            yield
        finally:
            _collect_what_comes()  # of torch's nothing goes: 0.1 s to find that out
