"""How long a plan takes: of every environment and agent, the first time and again, quiet and busy.

    python benchmarks/plan_seconds.py --seconds 420         # cold, then warm: on a quiet machine
    python benchmarks/plan_seconds.py --busy --seconds 420  # the same beside eight busy processes
    python benchmarks/plan_seconds.py --busy --warm         # without the first time of each
    python benchmarks/plan_seconds.py --table               # what is known
    python benchmarks/plan_seconds.py --fresh               # forget all, before a new round

Every call goes on with the rows that are missing; `--like` names some, which are measured again.

Cold: in an empty home nothing is remembered of this network or, in the first plan of a call, of
this installation, and what a plan before it did not compile is compiled. Warm: the same plan once
more. Processor seconds are those of the command and all its children, imports and what is beyond
them those of its own process; other programs change them little. Silence is the longest time
without a byte in a pipe.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "plan_seconds.jsonl"
GRAPHS = ("attention", *sorted(p.stem for p in (ROOT / "conf/agent").glob("attention_*.yaml")))
CELLS = (
    "env=toy",
    "env=toy algo=dqn",
    "env=toy memory=auto memory.budget_gib=0.6",
    "env=toy compare=true",
    "env=gymnasium",
    "env=gymnasium env.id=Pendulum-v1 algo=sac",
    "env=nclone",
    "env=nclone memory=parallel",
    "env=nclone env.obs=full agent=cnn",
    "env=nclone env.obs=pixels agent=nature_cnn",
    *(f"env=nclone agent={name}" for name in GRAPHS),
    "env=fighting",
    "env=fighting env.obs=gray agent=nature_cnn",
    "env=mine",
    "env=mine memory=parallel",
    "env=mine memory=baseline memory.budget_gib=16",
    "env=mine agent=cnn3d",
    "env=mine agent=cnn3d_small",
    "env=mine agent=cnn3d_test",
    "env=mine agent=column2d",
    "env=mine_cpit agent=priority algo=evolution",
    "env=mine_cpit",
    "env=mine_daily_small agent=cnn3d_tiny agent.head=columns",
    "env=mine_daily_small env.actions=block agent=pointer",
)
BUSY_PROCESSES = 8
HOWS = ("cold", "warm", "busy cold", "busy warm")
DOES_NOT_FIT = 3
BODY = """
import atexit, sys, time
from importlib import _bootstrap
plain, depth, took = _bootstrap._find_and_load, 0, 0.0
def timed(*given):
    global depth, took
    began, depth = time.process_time(), depth + 1
    try:
        return plain(*given)
    finally:
        depth -= 1
        if not depth:
            took += time.process_time() - began
_bootstrap._find_and_load = timed
def tell():
    with open({out!r}, "w") as file:
        print(took, time.process_time(), int("torch" in sys.modules), file=file)
atexit.register(tell)
sys.argv = ["frugal-rl", "plan", *{words!r}]
from frugal_rl import cli
cli.main()
"""


def plan(cell: str, home: Path) -> dict[str, float]:
    """One plan in a process of its own: seconds, processor seconds, imports, silence."""
    out = home / "told"
    code = BODY.format(out=str(out), words=cell.split())
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home)}
    if home != Path.home():
        environment["NUMBA_CACHE_DIR"] = str(home / "kernels")
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=home,
        env=environment,
    ) as child:
        assert child.stdout is not None
        last, silence, said = began, 0.0, b""
        while more := os.read(child.stdout.fileno(), 1 << 16):
            now, said = time.perf_counter(), said + more
            last, silence = now, max(silence, now - last)
        status = child.wait()
    if status not in (0, DOES_NOT_FIT):
        print(said.decode()[-1000:], file=sys.stderr)
    ended, now = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    imports, own, torch = map(float, out.read_text().split())
    whole = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {
        "status": status,
        "seconds": ended - began,
        "processor": whole,
        "imports": imports,
        "beyond": own - imports,
        "torch": torch,
        "silence": max(silence, ended - last),
    }


@contextmanager
def beside(count: int) -> Iterator[None]:
    """So many processes that compute all the time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.terminate()
            other.wait()


def known() -> dict[tuple[str, str], dict[str, float]]:
    """What was measured last of each cell, cold, warm and busy."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = map(json.loads, lines)
    return {(row.pop("cell"), row.pop("how")): row for row in rows}


def measure(cell: str, how: str, home: Path) -> None:
    """One line of the results file."""
    with beside(BUSY_PROCESSES if "busy" in how else 0):
        row = {"cell": cell, "how": how, **plan(cell, home)}
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    words = (
        f"{row['seconds']:.1f} s, {row['beyond']:.2f} beyond imports, silent {row['silence']:.1f}"
    )
    print(f"{how}: {words}: {cell}", file=sys.stderr, flush=True)


def measured(cells: list[str], hows: list[str], seconds: float) -> None:
    """Each plan with nothing remembered, then again, and nothing begun after so many seconds.

    One that was not cold in this call is planned once before, beside nothing, so that it is warm.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        for cell in cells:
            if time.monotonic() - began > seconds:
                return
            if "cold" not in hows[0]:
                plan(cell, home)
            for how in hows:
                measure(cell, how, home)


def table() -> str:
    """Cell by cell; the most and the median of each column."""
    found, rows = known(), []
    for cell in CELLS:
        columns = [f"`{cell}`"]
        for how in HOWS:
            row = found.get((cell, how))
            columns += _words(row, how) if row else [""] * (5 if how == "warm" else 3)
        rows.append(f"| {' | '.join(columns)} |")
    closing = []
    for how in HOWS:
        some = [row for (_, kind), row in found.items() if kind == how]
        if some:
            beyond, silent = ([row[name] for row in some] for name in ("beyond", "silence"))
            closing.append(
                f"{len(some)} {how}: beyond imports median {statistics.median(beyond):.2f} s, most "
                f"{max(beyond):.2f}; longest silence {max(silent):.1f} s; "
                f"{max(row['seconds'] for row in some):.1f} s at most."
            )
    head = (
        "| plan | cold s | processor s | silence s | warm s | imports | beyond | torch | silence "
    )
    head += "| busy: cold s | processor s | silence s | warm s | beyond | silence |"
    head += "\n|---" + "|---:" * 14 + "|"
    return "\n".join([head, *rows, "", *closing])


def _words(row: dict[str, float], how: str) -> list[str]:
    first, silence = f"{row['seconds']:.1f}", f"{row['silence']:.1f}"
    if "cold" in how:
        return [first, f"{row['processor']:.1f}", silence]
    beyond = f"{row['beyond']:.2f}"
    if "busy" in how:
        return [first, beyond, silence]
    return [first, f"{row['imports']:.2f}", beyond, "yes" if row["torch"] else "no", silence]


def main() -> None:
    """Measure, print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--busy", action="store_true", help="beside eight busy processes")
    options.add_argument("--warm", action="store_true", help="nothing cold")
    options.add_argument("--like", default="", help="only plans that hold these words, again")
    options.add_argument("--seconds", type=float, default=1e9, help="begin none after these")
    options.add_argument("--table", action="store_true", help="print what is known")
    options.add_argument("--fresh", action="store_true", help="forget what is known")
    asked = options.parse_args()
    if asked.fresh:
        RESULTS.unlink(missing_ok=True)
        return
    hows = [how for how in HOWS if ("busy" in how) == asked.busy]
    hows = [how for how in hows if not (asked.warm and "cold" in how)]
    done = {} if asked.like else known()
    missing = [c for c in CELLS if asked.like in c and any((c, how) not in done for how in hows)]
    if not asked.table:
        measured(missing, hows, asked.seconds)
    print(table())


if __name__ == "__main__":
    main()
