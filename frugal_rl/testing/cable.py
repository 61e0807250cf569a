"""A cable between two network namespaces: frames are held back by a delay and a rate.

    python frugal_rl/testing/cable.py NAMESPACE NAMESPACE CARD DELAY_MS MBIT

Plays what `tc netem` does where the kernel has no netem: a tap device in each namespace, and this
process in between. Says `ready` once both devices are there. Standard library alone (Linux, root).
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import struct
import sys
import time
from itertools import count

TUNSETIFF, TAP, NO_INFO = 0x400454CA, 0x0002, 0x1000
FRAME_BYTES, MOST_FRAMES = 65536, 1000
"""Frames that wait in one direction at most, as in netem; later ones are lost."""


def tap(namespace: str, card: str) -> int:
    """A network card in a namespace, as a file of its frames."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}") as entered:
        if libc.setns(entered.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    number = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(number, TUNSETIFF, struct.pack("16sH22x", card.encode(), TAP | NO_INFO))
    return number


def frames(number: int) -> list[bytes]:
    """All frames that wait to be read."""
    found = []
    try:
        while True:
            found.append(os.read(number, FRAME_BYTES))
    except OSError:  # none is left, or the card is down
        return found


def carry(ends: tuple[int, int], delay_s: float, bytes_per_s: float) -> None:
    """Hand frames over until this process is ended."""
    queue: list[tuple[float, int, int, bytes]] = []
    free, waiting, number = dict.fromkeys(ends, 0.0), dict.fromkeys(ends, 0), count()
    while True:
        pause = max(0.0, queue[0][0] - time.monotonic()) if queue else None
        readable, _, _ = select.select(ends, [], [], pause)
        for end in readable:
            other = ends[1] if end == ends[0] else ends[0]
            for frame in frames(end):
                if waiting[end] >= MOST_FRAMES:
                    continue
                free[end] = max(free[end], time.monotonic()) + len(frame) / bytes_per_s
                waiting[end] += 1
                heapq.heappush(queue, (free[end] + delay_s, next(number), other, frame))
        while queue and queue[0][0] <= time.monotonic():
            _, _, other, frame = heapq.heappop(queue)
            waiting[ends[1] if other == ends[0] else ends[0]] -= 1
            try:
                os.write(other, frame)
            except OSError:
                continue  # the card is down: the frame is lost


if __name__ == "__main__":
    one, two, name, delay_ms, mbit = sys.argv[1:]
    both = tap(one, name), tap(two, name)
    print("ready", flush=True)
    carry(both, float(delay_ms) / 1e3, float(mbit) * 1e6 / 8)
