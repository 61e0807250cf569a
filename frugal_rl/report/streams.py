"""The streams of a process: where they lead, and what may be written to them."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TextIO

GONE = {errno.EPIPE, errno.EIO}
"""What writing ends with where nobody reads any more: behind `| head -1`, or on a terminal that was
closed."""


def open_closed() -> None:
    """Lead streams nowhere that whoever called us has closed (`>&-`).

    The next file that is opened would have their number, and hold what C libraries print.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 - for as long as the process
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def lead_nowhere(stream: TextIO) -> None:
    """Let what is written to a stream vanish, whoever writes it."""
    with suppress(OSError, ValueError):  # a stream without a file has nothing to lead elsewhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def visible(text: str) -> str:
    """The text with control characters spelled out: names in files may hold escape codes."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)
