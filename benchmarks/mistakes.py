"""Seconds until each mistake of docs/mistakes.md is answered, in a process of its own.

    python benchmarks/mistakes.py

Prints processor seconds of the whole command (imports of Python and Hydra included), which other
programs on the machine change little, and whether the answer was one line.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| `frugal-rl (?P<typed>[^`]*)` \| (?P<answer>.*) \|$", re.MULTILINE)


def children_seconds() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """One row per mistake."""
    environ = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environ["PYTHONPATH"] = str(ROOT)
    print("| typed | processor seconds | answer |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "FILE").write_text("nothing")
        Path(folder, "EMPTY").mkdir()
        for typed in [m["typed"] for m in ROW.finditer((ROOT / "docs/mistakes.md").read_text())]:
            before = children_seconds()
            done = subprocess.run(
                [sys.executable, "-m", "frugal_rl", *shlex.split(typed)],
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
            )
            last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "nothing"
            took = children_seconds() - before
            print(f"| `{typed}` | {took:.1f} | {last[:60].replace('|', ' ')} |", flush=True)


if __name__ == "__main__":
    main()
