"""Processor time of `--help` beside that of importing Hydra, by every way to ask for it.

python benchmarks/help_seconds.py [--times 7]

Each way is run in turn with `python -c "import hydra"`, so that a busy machine slows both. The
first row of each is a first call, from an empty cache of this user's; the second a later one.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
HYDRA = [sys.executable, "-c", "import hydra"]


def ways() -> dict[str, list[str]]:
    """Command lines by what is shown of them."""
    scripts = sorted(path.stem for path in (ROOT / "scripts").glob("*.py"))
    found = {f"scripts/{s}.py --help": [f"scripts/{s}.py", "--help"] for s in scripts}
    found["scripts/train.py --help env=mine"] = ["scripts/train.py", "--help", "env=mine"]
    for words in ([], ["--help"], ["train", "--help"], ["plan", "--help", "env=mine"]):
        found[" ".join(["frugal-rl", *words])] = ["-m", "frugal_rl", *words]
    return {name: [sys.executable, *words] for name, words in found.items()}


def seconds(command: list[str], home: str) -> float:
    """Processor seconds of a command, those of its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = os.environ | {"HOME": home, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=environ, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a row for each way, and the highest ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=7)
    times = parser.parse_args().times
    print("| command | first | later | import hydra | first / hydra | later / hydra |")
    print("|---|---:|---:|---:|---:|---:|")
    ratios = []
    for name, command in ways().items():
        rows = []
        for _ in range(times):
            with tempfile.TemporaryDirectory() as home:
                rows.append([seconds(c, home) for c in (HYDRA, command, command, HYDRA)])
        hydra = median(s for row in rows for s in (row[0], row[3]))
        first, later = (median(row[i] for row in rows) for i in (1, 2))
        ratios.append((first / hydra, later / hydra))
        told = (
            f"{first:.3f} | {later:.3f} | {hydra:.3f} | {first / hydra:.2f} | {later / hydra:.2f}"
        )
        print(f"| `{name}` | {told} |", flush=True)
    most = [max(column) for column in zip(*ratios, strict=True)]
    print(f"\nimporting Hydra is 1: first calls at most {most[0]:.2f}, later ones {most[1]:.2f}")


if __name__ == "__main__":
    main()
