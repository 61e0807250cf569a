"""Goals of a level by number, and how far mines reach."""

from __future__ import annotations

MAX_DOORS = 16
EXIT_SWITCH, EXIT_DOOR = 0, 1
GOALS = 2 + 2 * MAX_DOORS
"""Goal 0 is the exit switch, 1 the exit door, 2 + 2i and 3 + 2i switch and door of door i."""
MINE_RADIUS_PX = 4.0
