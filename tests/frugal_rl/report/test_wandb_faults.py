"""A W&B server that is slow or dead is not waited for, and what it missed is kept."""

import socket
import time
from dataclasses import replace

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

    def started(run, plan, mode):
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


def test_an_end_that_fails_is_told(monkeypatch):
    slow = Slow()
    slow.finish = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        wandb_sink.WandbSink(slow).close()
