"""Seconds until each mistake of docs/mistakes.md is answered, in a process of its own.

    python benchmarks/mistakes.py          # all of them
    python benchmarks/mistakes.py 0 20     # the first twenty

Prints processor seconds of the whole command (imports of Python and Hydra included), which other
programs on the machine change little, the end of the answer, and what is wrong with it: a
traceback, something written, no refusal.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| `frugal-rl (?P<typed>[^`]*)` \| (?P<answer>.*) \|$", re.MULTILINE)


HERE = {"FILE", "EMPTY"}
"""What lies in the folder that a mistake is made in."""


def children_seconds() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answered(typed: str, folder: Path, environ: dict[str, str]) -> tuple[float, str, str]:
    """Processor seconds until the answer, its last line, and what is wrong with it."""
    before = children_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "frugal_rl", *shlex.split(typed)],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    took, said = children_seconds() - before, done.stderr.strip()
    left = sorted(p.name for p in folder.iterdir() if p.name not in HERE)
    wrong = ["not refused"] * (not done.returncode) + [f"wrote {', '.join(left)}"] * bool(left)
    wrong += ["traceback"] * ("Traceback" in said)
    return took, said.splitlines()[-1] if said else "nothing", ", ".join(wrong)


def main() -> None:
    """One row per mistake."""
    environ = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environ["PYTHONPATH"] = str(ROOT)
    wanted = slice(*map(int, sys.argv[1:])) if sys.argv[1:] else slice(None)
    page = (ROOT / "docs" / "mistakes.md").read_text()
    rows, seconds, odd = [row["typed"] for row in ROW.finditer(page)][wanted], [], 0
    print("| typed | processor seconds | answer | wrong |")
    print("|---|---:|---|---|")
    for typed in rows:
        with tempfile.TemporaryDirectory() as name:
            Path(name, "FILE").write_text("nothing")
            Path(name, "EMPTY").mkdir()
            took, last, wrong = answered(typed, Path(name), environ)
        seconds.append(took)
        odd += bool(wrong)
        print(f"| `{typed}` | {took:.1f} | {last[:60].replace('|', ' ')} | {wrong} |", flush=True)
    words = f"median {statistics.median(seconds):.1f} processor seconds, most {max(seconds):.1f}"
    print(f"\n{len(rows)} mistakes: {words}; {odd} with something wrong.")


if __name__ == "__main__":
    main()
