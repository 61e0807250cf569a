"""What each library adds to a process that imports one after the other, in MiB.

python benchmarks/library_memory.py numpy hydra gymnasium scipy.linalg numba torch cv2 torch._dynamo
"""

import importlib
import sys
from pathlib import Path


def held() -> tuple[float, float]:
    """Resident MiB of this process, and those of them that it has allocated."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kib["Rss"] / 1024, kib["Anonymous"] / 1024


def main() -> None:
    """Import what is named, in this order."""
    before = held()
    print(f"{'CPython':24s} {before[0]:7.1f} {before[1]:7.1f}")
    for name in sys.argv[1:]:
        importlib.import_module(name)
        after = held()
        print(f"{name:24s} {after[0] - before[0]:7.1f} {after[1] - before[1]:7.1f}")
        before = after


if __name__ == "__main__":
    main()
