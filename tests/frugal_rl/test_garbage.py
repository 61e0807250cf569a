"""Garbage is not looked for while modules are imported, and is afterwards."""

import gc
import subprocess
import sys
import weakref

import pytest

from frugal_rl.garbage import collect_again, collect_later, uncollected

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


def test_nothing_is_collected_inside_a_block_and_what_comes_later_is():
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    frozen = gc.get_freeze_count()
    ring = weakref.ref(Ring())
    gc.collect()

    assert gc.isenabled()
    assert frozen > 0
    assert ring() is None


def test_a_process_that_collects_is_left_as_it_is():
    frozen = gc.get_freeze_count()
    collect_again()
    assert gc.get_freeze_count() == frozen
    collect_later()
    with uncollected():
        pass
    assert not gc.isenabled()
