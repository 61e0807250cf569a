"""How threads wait for each other.

OpenMP's threads spin at the end of each parallel loop. Beside busy processes the one that is
waited for does not run while the others spin on its core: an update on two threads took thirty
times as long as with threads that sleep.
"""

from __future__ import annotations

import os

POLICY = "OMP_WAIT_POLICY"


def sleep_while_waiting() -> None:
    """Let OpenMP's threads sleep, unless the user said otherwise; before torch is imported."""
    os.environ.setdefault(POLICY, "passive")
