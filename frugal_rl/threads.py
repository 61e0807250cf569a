"""How threads wait for each other.

OpenMP's threads spin at the end of each parallel loop. Beside busy processes the one that is
waited for does not run while the others spin on its core: an update on two threads took thirty
times as long as with threads that soon sleep. Threads that sleep at once cost a fifth of the speed
of a quiet machine; a short spin costs nothing on either.
"""

from __future__ import annotations

import os

SPINS = "3000"
"""Some microseconds; libgomp's own is 300,000 or without end."""
SET_BY_USERS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def sleep_while_waiting() -> None:
    """Let OpenMP's threads soon sleep, unless the user said otherwise; before torch is imported."""
    if not any(name in os.environ for name in SET_BY_USERS):
        os.environ["GOMP_SPINCOUNT"] = SPINS
