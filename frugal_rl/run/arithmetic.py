"""A plan by arithmetic in a process of its own, which compiles what the plan calls.

python -m frugal_rl.run.arithmetic < request.json

An environment may build a small one to count it. Compiled where a run trains later, its kernels
would leave 35 MiB of the compiler there that no plan knows of.
"""

from __future__ import annotations

from frugal_rl.errors import FrugalError
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.run.asked import asked_run
from frugal_rl.run.compiling import told_compiling


def main() -> None:
    """Read the request, plan, answer nothing: who asked will be refused by itself."""
    try:
        with told_compiling():
            plan_memory(asked_run(measured=False))
    except FrugalError:
        pass
    print("null")


if __name__ == "__main__":
    main()
