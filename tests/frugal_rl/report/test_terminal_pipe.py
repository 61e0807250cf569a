"""A reader that leaves ends no run."""

import os
import sys

from frugal_rl.report.terminal import open_console, say


def test_nobody_reads_any_more_and_the_run_goes_on(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        console = open_console()
        say("said to nobody", console)
        assert console.quiet
        say("and by another console")
        print("and by others", flush=True)
        monkeypatch.undo()
