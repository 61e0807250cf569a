"""The presets of levels like those that people make: rooms, machines, marathon."""

from __future__ import annotations

from nclone.levels.generators.buildings import Arena, Building, Cave, Equipment

TOWER_FURNITURE = ("ledges", "ledges", "platforms", "screens", "dots", "block")
GALLERY_FURNITURE = ("pillars", "teeth", "hill", "basin", "stairs", "screens", "platforms")
MINES = ("floor_mines", "mine_row", "ceiling_mines", "wall_mines", "mine_cloud", "toggle_mines")
MOVING = ("thwump", "drone", "mini_drones", "death_ball", "bounce_blocks", "shove_thwump")
THROWING = ("launch_pad", "launch_pad", "bounce_blocks", "boost_pad", "one_ways")

QUIET = Equipment(("gold", "gold", *MINES, "launch_pad", "one_ways"), (2, 6))
BUSY = Equipment(("gold", *MINES, *MOVING, *MOVING, *THROWING), (5, 10))
LONG = Equipment(("gold", "gold", *MINES, *MOVING, *THROWING), (8, 16))

BUILDINGS = {
    "rooms": Building(equipment=QUIET),
    "towers": Building(
        (18, 36), (18, 23), (2, 5), 0.95, 0.4, furniture=TOWER_FURNITURE, equipment=QUIET
    ),
    "galleries": Building(
        (26, 42), (12, 23), (2, 4), 0.05, 0.4, furniture=GALLERY_FURNITURE, equipment=QUIET
    ),
    "keys": Building((26, 42), (14, 23), (4, 7), locks=(1, 2), equipment=QUIET),
    "machine_rooms": Building(rooms=(2, 5), traps=(0, 1), gates=0.3, equipment=BUSY),
    "machine_towers": Building(
        (16, 34), (17, 23), (2, 4), 0.95, 0.5, furniture=TOWER_FURNITURE, gates=0.3, equipment=BUSY
    ),
    "machine_galleries": Building(
        (26, 42),
        (10, 23),
        (2, 4),
        0.05,
        0.5,
        furniture=GALLERY_FURNITURE,
        gates=0.3,
        equipment=BUSY,
    ),
    "marathon": Building(
        (38, 42), (21, 23), (7, 12), locks=(0, 2), traps=(0, 1), gates=0.2, equipment=LONG
    ),
    "marathon_keys": Building(
        (38, 42), (21, 23), (6, 10), loops=0.15, locks=(2, 3), traps=(0, 1), equipment=LONG
    ),
}
CAVES = {
    "plain": Cave(equipment=QUIET),
    "machines": Cave(equipment=BUSY),
    "marathon": Cave((40, 42), (21, 23), 0.44, equipment=LONG),
}
ARENAS = {
    "plain": Arena(equipment=QUIET),
    "machines": Arena(equipment=BUSY),
    "marathon": Arena((40, 42), (21, 23), (8, 14), equipment=LONG),
}
