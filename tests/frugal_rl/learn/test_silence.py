"""A connection whose other end is silent ends after the time that was given, and not before."""

import socket
import sys
import threading
import time

import pytest

from frugal_rl.learn import silence
from frugal_rl.learn.silence import end_silent_connections, no_endless_silence

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's options")


@pytest.fixture
def ends():
    """A server's and a client's end of one connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        served, _ = server.accept()
        with client, served:
            yield served, client


def limit_of(connection):
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000


def test_every_connection_gets_the_limit_and_keep_alive_packets(ends):
    assert [limit_of(end) for end in ends] == [0, 0]

    end_silent_connections(20)

    assert [limit_of(end) for end in ends] == [20, 20]
    for end in ends:
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, between, count = (
            end.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + between * count <= 20


def test_connections_are_neither_closed_nor_disturbed(ends):
    served, client = ends
    end_silent_connections(0.5)
    client.sendall(b"still here")
    assert served.recv(100) == b"still here"


def test_connections_made_later_are_found(ends, monkeypatch):
    monkeypatch.setattr(silence, "LOOK_SECONDS", 0.05)
    with no_endless_silence(7):
        until = time.monotonic() + 10
        while limit_of(ends[0]) != 7 and time.monotonic() < until:
            time.sleep(0.05)
    assert [limit_of(end) for end in ends] == [7, 7]
    assert "silence" not in [thread.name for thread in threading.enumerate()]
