"""A process that measures hears what is asked, and does not outlive the one that asked."""

import json
import os
import subprocess
import sys

from frugal_rl.memory import child
from frugal_rl.run.compose import compose_run

MEASURE = """
from frugal_rl.run.asked import asked_run
run = asked_run()
print(run.seed, flush=True)
import time
time.sleep(300)
"""
ASKER = "import time; time.sleep(300)"


def started(code, **pipes):
    return subprocess.Popen([sys.executable, "-c", code], text=True, **pipes)


def test_a_process_that_measures_ends_when_the_one_that_asked_is_killed():
    asker = started(ASKER)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    measuring = started(MEASURE, **pipes)
    values = dict(compose_run(["env=toy", "seed=7"]).resolved)
    try:
        measuring.stdin.write(json.dumps({"values": values, "plugins": None, "parent": asker.pid}))
        measuring.stdin.close()
        assert measuring.stdout.readline() == "7\n"

        asker.kill()
        asker.wait()
        assert measuring.wait(timeout=60) != 0
    finally:
        measuring.kill(), asker.kill()


def test_who_asks_is_named_in_the_request(monkeypatch, tmp_path):
    (tmp_path / "who.py").write_text("import json, sys; print(json.load(sys.stdin)['parent'])")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert child.ask_child("who", compose_run(["env=toy"]), "It") == os.getpid()


def test_a_child_ends_at_once_and_in_order():
    code = (
        "import atexit, sys\n"
        "from frugal_rl.run.asked import end_with\n"
        "class Slow:\n    def __del__(self):\n        print('taken apart')\n"
        "slow = Slow()\n"
        "atexit.register(print, 'at exit', flush=True)\n"
        "end_with(lambda: print('answer'))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert told.stdout == "answer\nat exit\n"


def test_a_child_that_fails_says_why():
    code = "from frugal_rl.run.asked import end_with\nend_with(lambda: 1 / 0)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert told.returncode == 1
    assert told.stderr.endswith("ZeroDivisionError: division by zero\n")
