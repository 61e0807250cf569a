"""One level, one input sequence, every frame recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nclone.levels.entity_types import EntityType
from nclone.levels.level import Level, load_level
from nclone.sim import state as st
from nclone.sim.world import World, action_of


@dataclass(frozen=True)
class Trajectory:
    """What happened; T frames, E entities, V entities that moved. Column 0 is the start."""

    f: NDArray[np.float64]
    """[4, T + 1] x, y, vx, vy of the ninja."""
    i: NDArray[np.int8]
    """[9, T + 1] state, airborn, walled, wall normal, jump, floor, wall and launch-pad buffer,
    jump time."""
    gold: NDArray[np.int16]
    """[T + 1] gold collected."""
    es: NDArray[np.int8]
    """[E, T + 1] entity states: mines 0 deadly, 1 harmless, 2 toggling; gold and exit switch 1
    present; exit 1 open; doors closed + 2 * switch unused; drones 0 right, 1 down, 2 left, 3 up;
    thwump 0, 1 forward, -1 back; boost pad touching; shove thwump state + 4 * activated +
    16 * direction (0 none, 1 right, 2 down, 3 left, 4 up)."""
    mov: NDArray[np.int16]
    """[V] rows of the entities that moved at least once."""
    ep: NDArray[np.float64]
    """[V, 2, T + 1] x, y of the entities in `mov`."""


_FLAGS = ("state", "airborn", "walled", "wall_normal") + tuple(
    f"{name}_buffer" for name in ("jump", "floor", "wall", "launch")
)


def simulate(
    map_data: bytes | str | Path | NDArray[np.uint8] | Level, hor: ArrayLike, jump: ArrayLike
) -> Trajectory:
    """Play inputs on a level from its start, running on after a death or a win.

    Args:
        map_data: level bytes, a file, or a loaded level.
        hor: [T] -1, 0 or 1 for frames 1..T.
        jump: [T] 0 or 1.

    Raises:
        LevelError: the bytes are not a level.
        ValueError: the inputs are of different length or out of range.
    """
    level = map_data if isinstance(map_data, Level) else load_level(map_data)
    h, j = np.atleast_1d(np.asarray(hor)), np.atleast_1d(np.asarray(jump))
    if h.shape != j.shape or h.ndim != 1:
        raise ValueError(f"hor has shape {h.shape} and jump {j.shape}; pass one value per frame.")
    if len(h) and (np.abs(h).max() > 1 or j.min() < 0 or j.max() > 1):
        raise ValueError("hor must hold -1, 0 or 1 and jump 0 or 1.")
    world = World([level], [0], threads=1)
    actions = action_of(h, j)
    frames = len(actions) + 1
    worlds = np.empty(frames, st.WORLD)
    entities = np.empty((frames, *world.entities.shape[1:]), st.ENTITY)
    movers = np.empty((frames, *world.movers.shape[1:]), st.MOVER)
    doors = np.empty((frames, *world.doors.shape[1:]), st.DOOR)
    for t in range(frames):
        if t:
            world.step(actions[t - 1 : t], frames=1, on_end=st.RUN_ON)
        worlds[t], entities[t] = world.worlds[0], world.entities[0]
        movers[t], doors[t] = world.movers[0], world.doors[0]
    things = world.table.tables.things[: len(level.entities)]
    mov, ep = _paths(things, movers)
    return Trajectory(
        np.stack([worlds[name] for name in ("x", "y", "vx", "vy")]),
        np.stack([worlds[name] for name in (*_FLAGS, "jump_time")]),
        worlds["gold"].copy(),
        _entity_states(things, entities, movers, doors),
        mov,
        ep,
    )


def _paths(
    things: NDArray[np.void], movers: NDArray[np.void]
) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    places = np.stack([movers["x"], movers["y"]], axis=-1)
    moved = (places != places[:1]).any(axis=(0, 2))
    rows = np.nonzero(things["mover"] >= 0)[0][moved]
    return rows.astype(np.int16), np.ascontiguousarray(places[:, moved].transpose(1, 2, 0))


def _entity_states(
    things: NDArray[np.void],
    entities: NDArray[np.void],
    movers: NDArray[np.void],
    doors: NDArray[np.void],
) -> NDArray[np.int8]:
    """[E, T + 1] codes of all entities."""
    codes = entities["state"].T.copy()
    for e, thing in enumerate(things):
        if thing["door"] >= 0:
            codes[e] = doors["closed"][:, thing["door"]] + 2 * entities["active"][:, e]
        if thing["kind"] == EntityType.SHOVE_THWUMP:
            tx, ty = movers["tx"][:, thing["mover"]], movers["ty"][:, thing["mover"]]
            direction = np.select([tx > 0, ty > 0, tx < 0, ty < 0], [1, 2, 3, 4], 0)
            codes[e] += (4 * entities["flag"][:, e] + 16 * direction).astype(np.int8)
        elif thing["kind"] in (EntityType.LAUNCH_PAD, EntityType.ONE_WAY):
            codes[e] = 0
    return codes
