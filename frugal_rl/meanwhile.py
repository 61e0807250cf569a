"""Something small that is done again and again while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def meanwhile(
    call: Callable[[], object], every_s: float, name: str, *ends: type[Exception]
) -> Iterator[None]:
    """Call every so many seconds in a thread, until the block is over.

    Args:
        call: what is called.
        every_s: seconds before the first call, and between two.
        name: of the thread.
        ends: errors of a call that are no errors, but the last call.
    """
    over = threading.Event()

    def again_and_again() -> None:
        with suppress(*ends):
            while not over.wait(every_s):
                call()

    thread = threading.Thread(target=again_and_again, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
