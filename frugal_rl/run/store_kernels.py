"""Compiles, in a process of its own, what a store may call that finds out what changes.

    python -m frugal_rl.run.store_kernels < request.json

A tiny run is too short to meet most of it, and compiled where a run trains it would leave 66 MiB of
the compiler there that no plan knows of.
"""

from __future__ import annotations

from frugal_rl.run.asked import asked_run
from frugal_rl.run.compiling import told_compiling
from frugal_rl.store.found.trial import load_kernels


def main() -> None:
    """Read the request, compile for any run, answer nothing."""
    asked_run()
    with told_compiling():
        load_kernels()
    print("null")


if __name__ == "__main__":
    main()
