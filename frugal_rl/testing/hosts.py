"""Two hosts on one machine: network namespaces joined by a cable whose delay and rate are given.

Needs root and `ip` (Linux). Both see the same files and memory; only the network is apart.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from frugal_rl.testing import cable as cable_module

CARD = "cable"
"""Name of the network card in each namespace."""
OURS = re.compile(r"frugal-(\d+)-[ab]")


@dataclass(frozen=True)
class Host:
    """One end of the cable."""

    name: str
    address: str

    def start(self, command: Sequence[str], cwd: Path | None = None) -> subprocess.Popen[str]:
        """Run a command there, its output as text."""
        by_cable = ["env", f"GLOO_SOCKET_IFNAME={CARD}", f"TP_SOCKET_IFNAME={CARD}"]
        inside = ["ip", "netns", "exec", self.name, *by_cable, *command]
        return subprocess.Popen(
            inside,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=cwd,
        )

    def sent_bytes(self) -> int:
        """What has left its card so far, with all headers."""
        said = _ip("-n", self.name, "-s", "-j", "link", "show", CARD)
        return int(json.loads(said)[0]["stats64"]["tx"]["bytes"])

    def cut(self) -> None:
        """Pull the cable out."""
        _ip("-n", self.name, "link", "set", CARD, "down")

    def mend(self) -> None:
        """Put the cable in again."""
        _ip("-n", self.name, "link", "set", CARD, "up")


def missing() -> str:
    """Why there can be no such hosts here; empty where there can."""
    if shutil.which("ip") is None:
        return "ip is not installed (iproute2)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun to lay a cable with"
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "network namespaces need root"
    name = f"frugal-try-{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
    except subprocess.CalledProcessError as error:
        return f"ip netns add: {error.stderr.strip()}"
    return ""


@contextmanager
def two_hosts(delay_ms: float, rate_mbit: int) -> Iterator[tuple[Host, Host]]:
    """Two hosts, `delay_ms` one way and `rate_mbit` apart.

    They are gone afterwards with all that runs on them, also where the block is ended by SIGTERM;
    those that a killed process left behind go first.
    """
    _drop_abandoned()
    names = [f"frugal-{os.getpid()}-{end}" for end in "ab"]
    hosts = [Host(name, f"10.77.0.{n}") for n, name in enumerate(names, 1)]
    cable: subprocess.Popen[str] | None = None
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        for name in names:
            _ip("netns", "add", name)
        cable = subprocess.Popen(
            [sys.executable, cable_module.__file__, *names, CARD, str(delay_ms), str(rate_mbit)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert cable.stdout is not None
        if cable.stdout.readline() != "ready\n":
            raise OSError("The cable could not be laid; it needs /dev/net/tun.")
        for host in hosts:
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", CARD)
            for card in ("lo", CARD):
                _ip("-n", host.name, "link", "set", card, "up")
        yield hosts[0], hosts[1]
    finally:
        if cable is not None:
            cable.kill()
            cable.communicate()
        for name in names:
            _drop(name)
        signal.signal(signal.SIGTERM, before)


def _drop_abandoned() -> None:
    """Delete hosts whose process is gone: their names hold its number."""
    for line in _ip("netns", "list").splitlines():
        if (found := OURS.match(line)) and not psutil.pid_exists(int(found[1])):
            _drop(found[0])


def _drop(name: str) -> None:
    """End what runs on a host, and delete it."""
    with suppress(subprocess.CalledProcessError):
        for pid in _ip("netns", "pids", name).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _ip("netns", "delete", name)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
    return done.stdout
