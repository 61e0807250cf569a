"""What one more running cartridge costs in a process, in bytes of its own (USS).

python benchmarks/fighting_memory.py [cartridges]
"""

from __future__ import annotations

import sys

import psutil

from fighting.machine.console import boot


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    boot().close()  # what the first one brings stays out of the difference
    process = psutil.Process()
    before = process.memory_full_info().uss
    machines = [boot() for _ in range(count)]
    for machine in machines:
        machine.tick(60, True)
    each = (process.memory_full_info().uss - before) / count
    print(f"{count} cartridges, {each:,.0f} B each ({each / 2**20:.2f} MiB)")
    for machine in machines:
        machine.close()


if __name__ == "__main__":
    main()
