"""A plan by arithmetic in a process of its own, which compiles what the plan calls.

python -m frugal_rl.run.arithmetic < request.json

An environment may build a small one to count it. Compiled where a run trains later, its kernels
would leave 35 MiB of the compiler there that no plan knows of.
"""

from __future__ import annotations

import json
import sys

from frugal_rl.errors import FrugalError
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.run.compiling import told_compiling
from frugal_rl.run.compose import run_from


def main() -> None:
    """Read the request, plan, answer nothing: who asked will be refused by itself."""
    request = json.load(sys.stdin)
    try:
        with told_compiling():
            plan_memory(run_from(request["values"], plugins=tuple(request["plugins"] or ())))
    except FrugalError:
        pass
    print("null")


if __name__ == "__main__":
    main()
