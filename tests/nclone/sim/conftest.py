"""A drawn room with one ninja that a test may put anywhere."""

import numpy as np
import pytest

from nclone.levels.ascii import parse_drawing
from nclone.levels.level import load_level
from nclone.sim import state as st
from nclone.sim.world import World

HALL = ["." * 40] * 12
"""Open from x = 24 to 984 px and from y = 24 to 312 px: the ninja stands at y = 302."""
EMPTY_HANDED = {"vx": 0.0, "vy": 0.0, "clearance": 0.0}


class Stage:
    """One world, frame by frame. Places in px, speeds in px per frame."""

    def __init__(self, *things, rows=HALL, ninja=(60, 288)):
        lines = [f"ninja {ninja[0] // 6} {ninja[1] // 6}", *things]
        self.level = load_level(parse_drawing("\n".join([*rows, *lines])))
        self.world = World([self.level], threads=1)

    def put(self, **values):
        """Change the ninja between two frames; it rests where no speed is given."""
        for name, value in {**EMPTY_HANDED, **values}.items():
            self.world.worlds[name][0] = value
        return self

    def play(self, action=0, frames=1):
        """Hold an action; what happened is kept in `events`."""
        self.events = 0
        for _ in range(frames):
            self.world.step([action], frames=1, on_end=st.RUN_ON)
            self.events |= int(self.world.events[0])
        return self

    def __getattr__(self, name):
        """Any field of the ninja."""
        if name in st.WORLD.names:
            return self.world.worlds[name][0].item()
        raise AttributeError(name)

    def row(self, kind, rank=0):
        """Row of the rank-th entity of a type."""
        rows = np.nonzero(self.world.table.tables.things["kind"] == kind)[0]
        return int(rows[rank])

    def entity(self, kind, rank=0):
        """State, activity and cell of an entity."""
        return self.world.entities[0, self.row(kind, rank)]

    def mover(self, kind, rank=0):
        """Place and speed of an entity that moves."""
        return self.world.movers[0, self.world.table.tables.things["mover"][self.row(kind, rank)]]

    def place(self, kind, rank=0):
        """(x, y) of an entity that moves."""
        mover = self.mover(kind, rank)
        return float(mover["x"]), float(mover["y"])


@pytest.fixture(scope="session")
def stage():
    """The class of drawn rooms."""
    return Stage
