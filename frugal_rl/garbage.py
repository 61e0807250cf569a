"""When a command looks for garbage: not while it imports, which makes hundred thousands of objects.

All of them stay, and looking through them again and again took a sixth of importing torch, hydra
and numba. Once they are there, they are not looked through any more.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage inside the block, and none later of what is there at its end.

    A block inside another one, or where nothing was collected before, changes nothing.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        collect_again()


def collect_later() -> None:
    """Collect no garbage until `collect_again`."""
    gc.disable()


def collect_again() -> None:
    """Collect garbage as Python does, but where that had ended none of what is there by now."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
