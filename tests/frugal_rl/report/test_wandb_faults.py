"""A W&B server that is slow or dead is not waited for, and what it missed is kept."""

import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from frugal_rl.memory.plan import draw_up
from frugal_rl.report import wandb_sink
from frugal_rl.run.compose import compose_run


@pytest.fixture
def mute(monkeypatch):
    """The address of a server that takes calls and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("WANDB_BASE_URL", address)
        yield address


def test_a_mute_server_is_given_up_and_the_run_is_kept_offline(mute, tmp_path, monkeypatch):
    monkeypatch.setattr(wandb_sink, "PROBE_SECONDS", 0.3)
    modes = []

    def started(run, plan, mode, patience=5):
        modes.append(mode)
        return type("Run", (), {"define_metric": lambda *a, **k: None, "dir": str(tmp_path)})()

    monkeypatch.setattr(wandb_sink, "_start", started)
    run = replace(compose_run(["env=toy", "tracking=online"]), run_dir=str(tmp_path))
    with pytest.warns(UserWarning, match=r"does not answer.*wandb sync .*offline-run"):
        (sink,) = wandb_sink.open_wandb(run, draw_up(run))
    assert modes == ["offline"]
    assert sink.name == "W&B"


def test_a_closed_port_is_given_up_at_once(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}")
    with pytest.raises(OSError, match="does not answer"):
        wandb_sink.ask_server()
    monkeypatch.setenv("WANDB_BASE_URL", "file:///etc/passwd")
    with pytest.raises(OSError, match="no address"):
        wandb_sink.ask_server()


class Slow:
    dir = "runs/x/wandb/run-1/files"

    def define_metric(self, *args, **kwargs):
        pass

    def finish(self):
        time.sleep(20)


def test_a_slow_end_is_not_waited_for_and_says_what_is_kept(monkeypatch):
    monkeypatch.setattr(wandb_sink, "PATIENCE_SECONDS", 0.2)
    began = time.monotonic()
    with pytest.warns(UserWarning, match=r"wandb sync runs/x/wandb/run-1"):
        wandb_sink.WandbSink(Slow()).close()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("others", [False, True])
def test_a_service_that_another_run_uses_is_left_to_it(monkeypatch, others):
    setup = SimpleNamespace(most_recent_active_run=object() if others else None)
    done = []
    service = SimpleNamespace(name=lambda: "wandb-core", kill=lambda: done.append("killed"))
    wandb = SimpleNamespace(
        sdk=SimpleNamespace(wandb_setup=SimpleNamespace(singleton=lambda: setup)),
        teardown=lambda: done.append("ended"),
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr(wandb_sink.psutil.Process, "children", lambda process: [service])

    wandb_sink.kill_service()
    wandb_sink.end_service()
    assert done == ([] if others else ["killed", "ended"])


def test_an_end_that_fails_is_told(monkeypatch):
    slow = Slow()
    slow.finish = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        wandb_sink.WandbSink(slow).close()


class Answers(BaseHTTPRequestHandler):
    """A server that refuses every key, or takes a first call and says nothing afterwards."""

    mute = False

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.mute and self.path != "/":
            time.sleep(60)
        body = b'{"errors": [{"message": "user is not logged in"}]}'
        self.send_response(200 if self.mute else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer  # noqa: N815

    def log_message(self, *words):
        pass


RUN = """
import sys, time
from dataclasses import replace
from frugal_rl.memory.plan import draw_up
from frugal_rl.report.wandb_sink import open_wandb
from frugal_rl.run.compose import compose_run
run = replace(compose_run(["env=toy", "tracking=online"], check=False), run_dir=sys.argv[1])
began = time.monotonic()
(sink,) = open_wandb(run, draw_up(run))
print("opened", time.monotonic() - began, flush=True)
sink.metrics(1, {"a": 1.0})
sink.close()
print("closed", time.monotonic() - began, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mute", [False, True], ids=["wrong key", "mute after the first call"])
def test_the_real_library_waits_no_longer_and_says_what_is_kept(mute, tmp_path, monkeypatch):
    kind = type("Kind", (Answers,), {"mute": mute})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.delenv("WANDB_MODE")
    root = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, cwd=root) as process:
        times = [float(process.stdout.readline().split()[1]) for _ in range(2)]
        closed = time.monotonic()
        said = process.communicate()[1]
    server.shutdown()
    assert times[0] < wandb_sink.PATIENCE_SECONDS + 3  # its own start on a busy machine
    assert times[1] - times[0] < wandb_sink.PATIENCE_SECONDS + 1
    assert time.monotonic() - closed < wandb_sink.PATIENCE_SECONDS
    assert "wandb sync" in said
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


@pytest.mark.parametrize("held", [b"a\x1b[2J", b"\xff" * 9, b"x/../y", b"z" * (1 << 20), b""])
def test_a_strangers_id_is_not_handed_on(held, tmp_path):
    run = replace(compose_run(["env=toy"]), resume=str(tmp_path / "checkpoints"))
    (tmp_path / wandb_sink.ID_FILE).write_bytes(held)
    with pytest.warns(UserWarning, match="holds no id of a W&B run") as told:
        assert wandb_sink.run_id(run) is None
    assert str(told[0].message).isprintable()
    (tmp_path / wandb_sink.ID_FILE).write_text("a1b2-c_3\n")
    assert wandb_sink.run_id(run) == "a1b2-c_3"
