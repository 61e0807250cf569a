"""What `scripts/report.py live=RUN` does: a page on this machine alone that follows a run.

It reads the run folder and nothing else, so that it can begin and end at any time. Stopping is the
run's own way: SIGTERM, upon which it saves a checkpoint and ends.
"""

from __future__ import annotations

import hmac
import json
import math
import os
import secrets
import signal
import socket
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs

import numpy as np

from frugal_rl.doing import doing
from frugal_rl.errors import DataError, FolderInUseError, FrugalError
from frugal_rl.report.averaging import averaged, is_averaged
from frugal_rl.report.files import FILMS, LONGEST_LINE_BYTES, METRICS, PICTURES, RUN, metrics_of
from frugal_rl.report.live_page import PAGE, SCRIPT, STYLE
from frugal_rl.report.results import RunResult
from frugal_rl.report.terminal import say
from frugal_rl.run.lock import Holder, writer_of
from frugal_rl.untrusted.odd import refused
from frugal_rl.untrusted.printing import printable, shown

FILM_KINDS = {".gif": "image/gif", ".png": "image/png", ".mp4": "video/mp4"}
MOST_POINTS = 600
"""Of a curve; a longer one loses every second point."""
LONGEST_FORM_BYTES = 1024
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'"
POLICY += "; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"


class Told(Protocol):
    """What the page asks a run for."""

    def state(self) -> dict[str, Any]:
        """Everything that is shown, as plain values."""

    def newest_film(self) -> Path | None:
        """The newest film or picture."""

    def stop(self) -> str:
        """Ask the run to stop; what came of it."""


def _is_told(value: Any) -> bool:
    """Whether a page can show it: JSON knows no number that is not finite."""
    return not isinstance(value, float) or math.isfinite(value)


def drawn(metric: str, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Steps and values of a curve as a report would draw it."""
    if not is_averaged(metric, [len(points)]):
        return list(points)
    steps, means = averaged(*np.array(points).T)
    return list(zip(steps.tolist(), means.tolist(), strict=True))


class LiveRun:
    """A run folder as it grows; only new lines of its metrics are read again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, RunResult.read(folder)
        self.read_bytes, self.last = 0, dict[str, Any]()
        self.curves: dict[str, list[tuple[float, float]]] = {}

    def state(self) -> dict[str, Any]:
        """Progress, curves, memory by part, and whether the run still goes on.

        Raises:
            DataError: the folder holds what no run writes.
        """

        def refusal(error: Exception) -> DataError:
            return DataError(
                f"{shown(self.folder)} holds values that no run writes "
                f"({type(error).__name__}: {printable(str(error))})."
            )

        with refused(refusal):
            return self._state()

    def _state(self) -> dict[str, Any]:
        self._read_on()
        run = self.run = RunResult.read(self.folder)
        return {
            "title": f"{run.env} {run.profile} seed {run.seed}",
            "folder": str(self.folder),
            "command": run.command,
            "state": run.state.value,
            "steps": self.last.get("step", 0),
            "total_steps": run.config.get("algo", {}).get("total_steps", 0),
            "seconds": self.last.get("seconds", 0.0),
            "steps_per_second": self.last.get("time/steps_per_second"),
            "curves": {name: drawn(name, points) for name, points in self.curves.items()},
            "averaged": [n for n, points in self.curves.items() if is_averaged(n, [len(points)])],
            "memory": self._memory(),
            "film": self._film_name(),
        }

    def _read_on(self) -> None:
        path = self.folder / METRICS
        if not path.is_file():
            return
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self.read_bytes:
                self.read_bytes = 0  # a resumed run dropped the steps that it does again
            file.seek(self.read_bytes)
            while line := file.readline(LONGEST_LINE_BYTES):
                if not line.endswith(b"\n") and len(line) < LONGEST_LINE_BYTES:
                    return  # still being written
                self.read_bytes += len(line)
                self._keep(metrics_of(line) or {})

    def _keep(self, line: Mapping[str, Any]) -> None:
        line = {name: value for name, value in line.items() if _is_told(value)}
        self.last |= line
        for name, value in line.items():
            if name in ("step", "seconds") or not isinstance(value, int | float):
                continue
            points = self.curves.setdefault(name, [])
            while points and points[-1][0] >= line["step"]:
                points.pop()
            points.append((float(line["step"]), float(value)))
            if len(points) > MOST_POINTS:
                del points[1:-1:2]

    def _memory(self) -> dict[str, Any]:
        """Planned bytes by part, and what the process holds now."""
        parts = [p for p in self.run.plan.get("parts", ()) if isinstance(p, dict)]
        planned = {str(p["name"]): p.get("ram_bytes", 0) + p.get("vram_bytes", 0) for p in parts}
        held = self.last.get("memory/held_bytes")
        most = {
            name.removeprefix("memory/").removesuffix("_peak_bytes"): value
            for name, value in self.last.items()
            if name.endswith("_peak_bytes") and name.startswith("memory/")
        }
        limit = self.run.plan.get("limit_ram_bytes")
        total = self.run.plan.get("ram_bytes")
        return {"parts": planned, "planned": total, "held": held, "peaks": most, "limit": limit}

    def newest_film(self) -> Path | None:
        """The newest film or picture that the run has written."""
        found = [p for name in (FILMS, PICTURES) for p in (self.folder / name).glob("*")]
        films = [p for p in found if p.suffix in FILM_KINDS and p.is_file() and not p.is_symlink()]
        return max(films, key=lambda p: p.stat().st_mtime_ns, default=None)

    def _film_name(self) -> str:
        film = self.newest_film()
        return f"{film.name}-{film.stat().st_mtime_ns}" if film else ""

    def holder(self) -> Holder | None:
        """The process that writes into the folder; None where nobody does."""
        return writer_of(self.folder)

    def stop(self) -> str:
        """Ask the run to stop with a checkpoint, as SIGTERM does."""
        holder = self.holder()
        if holder is None:
            return "No process writes into this folder; there is nothing to stop."
        if holder.host != socket.gethostname():
            return f"The run is {holder.words()}; stop it there."
        os.kill(holder.pid, signal.SIGTERM)
        return f"Process {holder.pid} was asked to stop; it saves a checkpoint and ends."


class LivePage(ThreadingHTTPServer):
    """Serves the page of one run to this machine; stopping it takes the token."""

    daemon_threads = True

    def __init__(self, run: Told, port: int = 0, token: str | None = None) -> None:
        super().__init__(("127.0.0.1", port), Answer)
        self.run, self.token = run, token or secrets.token_urlsafe(9)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def address(self) -> str:
        """What a browser on this machine opens."""
        return f"http://127.0.0.1:{self.server_port}/"


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: LivePage
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The page, its numbers, its film."""
        texts = {"/": ("text/html", PAGE), "/live.js": ("text/javascript", SCRIPT)}
        texts["/live.css"] = ("text/css", STYLE)
        place = self.path.partition("?")[0]
        film = self.server.run.newest_film() if place == "/film" else None
        if not self._known_host():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"This page is for 127.0.0.1 alone.")
        elif place in texts:
            kind, text = texts[place]
            self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", text.encode())
        elif place == "/state":
            self._send_state()
        elif film is not None:
            self._send(HTTPStatus.OK, FILM_KINDS[film.suffix], film.read_bytes())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is nothing here.")

    def _send_state(self) -> None:
        try:
            state = json.dumps(self.server.run.state(), default=str, allow_nan=False)
        except (FrugalError, ValueError) as error:  # it was sound when the page began
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", str(error).encode())
        else:
            self._send(HTTPStatus.OK, "application/json", state.encode())

    def do_POST(self) -> None:
        """Stop the run, for one who knows the token."""
        given = self.headers.get("Content-Length") or ""
        length = min(int(given), LONGEST_FORM_BYTES) if given.isdecimal() else 0
        form = self.rfile.read(length).decode(errors="replace")
        token = parse_qs(form).get("token", [""])[0]
        if self.path != "/stop" or not self._known_host():
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is nothing here.")
        elif not hmac.compare_digest(token.strip().encode(), self.server.token.encode()):
            time.sleep(0.5)  # nobody guesses twice a moment
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"That is not the token.")
        else:
            self._send(HTTPStatus.OK, "text/plain", self.server.run.stop().encode())

    def _known_host(self) -> bool:
        """Whether the page was asked for by its own name, and not through another site's."""
        return self.headers.get("Host", "") in self.server.hosts

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of requests."""


def follow(folder: str, port: int) -> None:
    """Serve the live page of a run until Ctrl-C.

    Raises:
        DataError: the folder is not that of a run.
        FolderInUseError: the port is taken.
    """
    if not Path(folder, RUN).is_file():
        raise DataError(f"live={folder} is no run folder: there is no {RUN} in it.")
    run = LiveRun(Path(folder))
    run.state()  # refuses what no page could show
    try:
        server = LivePage(run, port)
    except OSError as error:
        raise FolderInUseError(f"port={port} cannot be had ({error.strerror}); use port=0.") from (
            error
        )
    say(f"live page:  {server.address}")
    say(f"stop token: {server.token}")
    with server, doing("serving the live page until Ctrl-C"):
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("The live page has ended; the run goes on.")
