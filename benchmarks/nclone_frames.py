"""Cost of the drawn frames, of a navigation graph and of a distance table.

    python benchmarks/nclone_frames.py

Each figure is the least of twenty repetitions.
"""

import time

import numba
import numpy as np

from nclone.graph.distance import DistanceTables
from nclone.graph.landmarks import find_landmarks
from nclone.graph.navigation import build_graph
from nclone.levels.format import pack_level
from nclone.levels.generators import PLAIN, draw_recipes, generate
from nclone.levels.level import load_level
from nclone.render.moment import write_moment
from nclone.render.raster import GlobalView, draw_player_frames
from nclone.render.scene import Moment, build_stage, moment_widths, scene_items
from nclone.sim.table import LevelTable
from nclone.sim.world import World

WORLDS, REPEATS = 512, 20


def seconds(call) -> float:
    call()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def frames() -> None:
    levels = [generate(r) for category in PLAIN for r in draw_recipes(category, 16)]
    table = LevelTable(levels)
    world = World(table, np.arange(WORLDS) % len(table), threads=1)
    widths = moment_widths(levels)
    rows = (
        np.empty((WORLDS, 3), np.int16),
        np.empty((WORLDS, widths[1]), np.uint8),
        np.empty((WORLDS, widths[2], 2), np.int16),
    )
    every, view = np.arange(WORLDS), GlobalView()
    stage = build_stage([scene_items(level) for level in world.table.level])
    moment = Moment(world.level.astype(np.int64), *rows)
    player, whole = np.empty((WORLDS, 84, 84), np.uint8), np.empty((WORLDS, 100, 176), np.uint8)
    for threads in (1, 2):
        numba.set_num_threads(threads)
        for name, call in (
            ("moment", lambda: write_moment(world, every, *rows)),
            ("player_frame 84 x 84", lambda: draw_player_frames(stage, moment, player)),
            ("global_view 100 x 176", lambda: view.draw(stage, moment, whole)),
        ):
            print(f"{name}, {threads} thread(s): {1e6 * seconds(call) / WORLDS:.2f} us per frame")


def graphs() -> None:
    tiles = np.zeros((25, 44), int)
    places = np.random.default_rng(0).integers(8, 96, (256, 2))
    records = [[0, 8, 8, 0, 0], [3, 160, 90, 0, 0], [4, 100, 50, 0, 0]]
    records += [[1, x, y, 0, 0] for x, y in places]
    tables = DistanceTables()
    level = tables.add_level(find_landmarks(load_level(pack_level(tiles, records))))
    print(
        f"graph, empty map, 256 mines: {1e3 * seconds(lambda: build_graph(tables, level)):.2f} ms"
    )

    def fresh() -> None:
        other = DistanceTables()
        other.acquire(other.add_level(tables.levels[level]), 0)

    print(f"distance tables of a level: {1e3 * seconds(fresh):.2f} ms")


if __name__ == "__main__":
    frames()
    graphs()
