"""Garbage is not looked for while modules are imported, and is afterwards."""

import gc
import subprocess
import sys
import weakref

import pytest
import torch

from frugal_rl.garbage import collect_again, collect_later, loading_torch

SCRIPT = """
import frugal_rl.first_words
import gc
print("importing", gc.isenabled())
from frugal_rl.run.command import main

@main("plan")
def look(cfg):
    print("working", gc.isenabled(), gc.get_freeze_count() > 10_000)

if __name__ == "__main__":
    look()
"""


class Ring:
    """Something that only a collection finds."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    gc.unfreeze()
    gc.enable()


def test_a_command_collects_nothing_before_its_work_and_garbage_from_then_on(tmp_path):
    script = tmp_path / "scripts" / "look.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, "env=toy"], capture_output=True, text=True, check=False
    )

    assert "importing False" in done.stdout, done.stderr
    assert "working True True" in done.stdout, done.stderr


def test_what_is_there_once_torch_is_loaded_is_not_looked_through(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with loading_torch():
        assert not gc.isenabled()
    frozen = gc.get_freeze_count()
    ring = weakref.ref(Ring())
    gc.collect()

    assert gc.isenabled()
    assert frozen > 0
    assert ring() is None


def test_what_an_earlier_job_left_is_collected_where_torch_is_loaded_already(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)
    left = weakref.ref(Ring())
    with loading_torch():
        assert gc.isenabled()
    gc.collect()

    assert left() is None


def test_a_process_that_collects_is_left_as_it_is():
    frozen = gc.get_freeze_count()
    collect_again()
    assert gc.get_freeze_count() == frozen
    collect_later()
    left = weakref.ref(Ring())
    collect_again()
    assert left() is None
    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen
