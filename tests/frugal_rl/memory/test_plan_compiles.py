"""Plans compile nothing: what a compiler leaves would stay in the process that trains."""

import subprocess
import sys

PLANS = """
import sys
from numba.core import event
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.run.compose import compose_run

class Listener(event.Listener):
    def on_start(self, event):
        print("compiled", event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
for words in sys.argv[1:]:
    plan_memory(compose_run([*words.split(), "tracking=disabled"]))
    print("planned", words)
"""
RUNS = (
    "env=toy",
    "env=nclone memory=parallel",
    "env=nclone memory=parallel agent=attention_foresight",
    "env=nclone memory=parallel agent=attention_small",
    "env=nclone experiment=npp_pixels",
    "env=nclone env.levels=[rooms] env.evolved=64",
    "env=mine_daily_small",
    "env=fighting",
)


def test_a_plan_compiles_no_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    told = subprocess.run(
        [sys.executable, "-c", PLANS, *RUNS], check=True, capture_output=True, text=True
    ).stdout.splitlines()

    assert [line for line in told if line.startswith(("compiled", "planned"))] == [
        f"planned {words}" for words in RUNS
    ]
    assert not list(tmp_path.rglob("*.nbi"))
