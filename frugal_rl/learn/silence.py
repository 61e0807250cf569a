"""Connections that must not be waited for without end.

A store's client waits for its answer without a limit of its own: when the cable to its server is
cut, no packet tells it so. What the system offers instead is set here: bytes that are not
acknowledged, and keep-alive packets that are not answered, end a connection after some seconds.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from frugal_rl.meanwhile import meanwhile

LOOK_SECONDS = 5.0
"""How often new connections are looked for; one look takes 6 ms of processor time."""


def end_silent_connections(after_s: float) -> None:
    """Let every TCP connection of this process fail whose other end is silent for `after_s`.

    Linux only; elsewhere a process whose server is unreachable is ended by its launcher alone.
    """
    if not sys.platform.startswith("linux"):
        return
    for one in psutil.Process().net_connections("tcp"):
        if one.raddr and one.status == psutil.CONN_ESTABLISHED and one.fd >= 0:
            with suppress(OSError), socket.socket(fileno=os.dup(one.fd)) as its:  # or just closed
                _limit(its, after_s)


def _limit(connection: socket.socket, after_s: float) -> None:
    probes = 3
    each = max(1, int(after_s / (probes + 1)))
    for option, value in (
        (socket.TCP_KEEPIDLE, each),
        (socket.TCP_KEEPINTVL, each),
        (socket.TCP_KEEPCNT, probes),
        (socket.TCP_USER_TIMEOUT, int(after_s * 1000)),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


@contextmanager
def no_endless_silence(after_s: float) -> Iterator[None]:
    """The same for connections that are made inside the block."""
    with meanwhile(lambda: end_silent_connections(after_s), LOOK_SECONDS, "silence"):
        yield
