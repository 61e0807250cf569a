"""Instructions of one update and of 1,000 simulator frames, counted, and processor seconds.

    python benchmarks/instructions.py [--before TREE] [--repeats 2] [--times 30]

Callgrind counts while the thing itself runs: imports, compilation and a first call are over before.
Each count is made again in a new process. Valgrind knows no AVX-512, so the process that is counted
uses AVX2 and fused multiply-add; its times, the least of `--times` without Valgrind, stand beside
those of the same code with all that the processor has. One update: 16 environments x 128 steps,
2 x 64 units, 4 epochs, minibatches of 2,048, one thread. Needs valgrind with its headers, and gcc.
`--before` is another checkout, counted by this one's interpreter.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
KNOWN = "avx avx2 bmi bmi2 f16c fma lzcnt movbe popcnt".split()
"""What Valgrind executes and Numba may use."""
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
LIMITED = {
    "NUMBA_CPU_NAME": "x86-64-v3",
    "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in KNOWN),
    "OPENBLAS_CORETYPE": "Haswell",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "PYTHONHASHSEED": "0",
}
DUMP = re.compile(
    r"desc: Trigger: Client Request: ([^\n]+)\n.*?^(?:totals|summary): (\d+)", re.M | re.S
)


def child(
    tree: Path, limits: Mapping[str, str], before: list[str], *words: str
) -> dict[str, float]:
    """Runs the process; seconds by name. Says every few seconds that it still does."""
    own = {**os.environ, **ONE_THREAD, **limits, "PYTHONPATH": f"{tree}:{tree}/benchmarks:{HERE}"}
    command = [*before, sys.executable, "-P", str(HERE / "instructions_counted.py"), *words]
    began, what = time.monotonic(), "counting" if before else "timing"
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=own, stdout=said, stderr=errors)
        while process.poll() is None:
            passed = time.monotonic() - began
            print(f"\r{what} {tree.name}: {passed:.0f} s   ", end="", file=sys.stderr, flush=True)
            time.sleep(1)
        said.seek(0)
        errors.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()[-3000:]}")
        rows = (line.rstrip("\n").split("\t") for line in said)
        return {name: float(seconds) for name, seconds in rows}


def counts(tree: Path, library: Path) -> dict[str, int]:
    """Instructions by name, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        tool = f"valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file={folder}/out"
        child(tree, LIMITED, tool.split(), "1", str(library))
        dumps = (path.read_text() for path in Path(folder).glob("out.*"))
        found = (DUMP.search(text) for text in dumps)
        return {match[1]: int(match[2]) for match in found if match}


def measure(name: str, tree: Path, library: Path, repeats: int, times: int) -> None:
    """Prints the rows of one checkout."""
    child(tree, LIMITED, [], "1")  # compiles
    child(tree, {}, [], "1")
    limited, free = (child(tree, limits, [], str(times)) for limits in (LIMITED, {}))
    rounds = [counts(tree, library) for _ in range(repeats)]
    print("\r", end="", file=sys.stderr)
    for thing in limited:
        seen = [counted[thing] for counted in rounds]
        apart = (max(seen) - min(seen)) / min(seen)
        millions = " | ".join(f"{count / 1e6:,.2f}" for count in seen)
        spent = f"{1e3 * limited[thing]:.2f} | {1e3 * free[thing]:.2f}"
        print(f"| {thing} | {name} | {millions} | {apart:.2%} | {spent} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="another checkout, counted too")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--times", type=int, default=30)
    args = parser.parse_args()
    trees = [("before", args.before.resolve())] if args.before else []
    columns = [f"million instructions, {k + 1}" for k in range(args.repeats)]
    spent = "| apart | ms, as counted | ms, all instructions |"
    print(f"| what | checkout | {' | '.join(columns)} {spent}\n|{'---|' * (5 + args.repeats)}")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "instructions.so"
        words = ["gcc", "-O2", "-shared", "-fPIC", str(HERE / "instructions.c"), "-o", str(library)]
        subprocess.run(words, check=True)
        for name, tree in [*trees, ("now", HERE.parent)]:
            measure(name, tree, library, args.repeats, args.times)


if __name__ == "__main__":
    main()
