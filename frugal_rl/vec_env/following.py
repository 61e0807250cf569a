"""Ending with another process, however that one ended: `kill -9` leaves nobody to tell."""

from __future__ import annotations

import os
from collections.abc import Callable
from select import POLLIN, poll
from threading import Thread


def once_gone(process: int, then: Callable[[], object]) -> None:
    """Call `then`, in a thread, as soon as a process is gone; never on a system without pidfd.

    It may be any process: the kernel's own signal at a parent's death is tied to the thread that
    started the child, and a worker's parent may be a server that forks.
    """
    Thread(target=_follow, args=(process, then), daemon=True).start()


def _follow(process: int, then: Callable[[], object]) -> None:
    ended = poll()
    try:
        ended.register(os.pidfd_open(process), POLLIN)
        ended.poll()
    except ProcessLookupError:
        pass  # it is gone already
    except (AttributeError, OSError):
        return  # a system without such handles
    then()
