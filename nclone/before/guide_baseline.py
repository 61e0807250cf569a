"""The "before" side of the memory guide: one N++ environment as its public predecessor was built.

`memory=baseline` plays it; every optimisation can be switched on alone (`nclone.guide`).
What an agent sees is byte for byte what the native batch shows. Frames are drawn here only where
they are observed, as the predecessor did; graphs and entity tables are built in any case.
"""

from __future__ import annotations

from collections import OrderedDict
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.memory.part import Part
from nclone.before.guide_screen import CACHE_BYTES, SCREEN_BYTES, Screen, crop, reduce
from nclone.env import NppEnv
from nclone.graph.features import MAX_EDGES, MAX_NODES
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.lattice import STEP_PX, flood_from_spawn, free_nodes
from nclone.graph.navigation import build_graph, dense
from nclone.render.fields import TABLE, moments_of, stage_of

if TYPE_CHECKING:
    from nclone.config import NppConfig
    from nclone.game import NppGame
    from nclone.guide import Guide
    from nclone.levels.level import Level


FRAMES = ("player_frame", "global_view")
POSES, JOINTS = 2400, 13
"""An animation of 40 seconds, 13 joints per frame: the half megabyte that the guide names."""
ANIMATION_BYTES = POSES * JOINTS * 2 * 8
MOST_MINES, MINE_VALUES = 128, 6
ENTITY_VALUES = 1 + MOST_MINES * MINE_VALUES
FIRST_VALUES = 4
REACH_ENTRIES = 4096
GRAPH_BYTES = 4 * (MAX_NODES * 23 + MAX_EDGES * 18)
"""Padded arrays of one graph, float32 and int32."""


class GuideEnv(NppEnv):
    """N++ with the guide's costs; `config.guide` says which optimisations are on."""

    def __init__(self, config: NppConfig, seed: int | None = None) -> None:
        super().__init__(config, seed)
        self.switches: Guide = config.guide
        if self.switches.shared_levels:
            _share_levels(self.game, config)
        draws = any(name in self.spec_fields.by_name for name in FRAMES)
        self.screen: Screen | None = None
        if draws and not self.switches.small_surface:
            self.screen = Screen(bool(self.switches.frame_cache))
        self.held: dict[str, np.ndarray] = {}
        if not self.switches.no_animation:
            self.held["animation"] = make_animation()
        if not self.switches.sparse_entities:
            self.held["entity states"] = np.zeros(ENTITY_VALUES, np.float32)
        self.entities = np.zeros(FIRST_VALUES, np.float32)
        self.graph: dict[str, np.ndarray] = {}
        self.reachable, self._graph_key = 0, (-1, -1, -1)
        self._frames, self.figure = 0, np.zeros((JOINTS, 2))

    def begin(self) -> None:
        """Start an episode, and build what the predecessor built."""
        super().begin()
        self._build_graph()

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Take an action; a door or a switch asks for another graph."""
        result = super().advance(action)
        self._build_graph()
        return result

    def raw(self) -> dict[str, np.ndarray]:
        """Raw fields; frames by way of the screen where there is one."""
        raw = super().raw()
        self._frames += 1
        self._list_entities()
        self._find_reachable()
        if self.screen is not None:
            raw |= self._frames_of(raw)
        if not self.switches.views:
            raw = {name: np.array(value) for name, value in raw.items()}
        return raw

    def parts(self) -> dict[str, int]:
        """Bytes that the guide's side holds beyond the simulator's, by name."""
        found = {name: int(array.nbytes) for name, array in self.held.items()}
        if self.graph:
            found["graph"] = sum(int(a.nbytes) for a in self.graph.values())
        if self.screen is not None:
            found["screen"] = int(self.screen.layers.nbytes)
            found["converted screen"] = self.screen.kept_bytes
        return found

    def _build_graph(self) -> None:
        """The padded graph of the present level, doors and objective, observed or not."""
        if self.switches.lazy_graphs:
            return
        game = self.game
        number = int(game.levels.number[game.world.level[0]])
        objective = EXIT_DOOR if game.switch_hit[0] else EXIT_SWITCH
        key = (number, game._door_bits(0), objective)
        if key != self._graph_key:
            self.graph = dense(build_graph(game.distances, *key))
            self._graph_key = key

    def _list_entities(self) -> None:
        """Count and six values of up to 128 mines; cut early, only the deadly ones are counted."""
        level: Level = self.game.level_table.level[int(self.game.world.level[0])]
        world = self.game.world
        mines = np.flatnonzero(np.isin(level.entities[:, 0], (1, 21)))[:MOST_MINES]
        if self.switches.sparse_entities:
            self.entities[0] = np.count_nonzero(world.entity_state[0, mines] == 0)
            return
        table = self.held["entity states"]
        table[:] = 0.0
        for k, e in enumerate(mines):
            kind, x, y, *_ = level.entities[e]
            state = world.entity_state[0, e]
            table[1 + k * MINE_VALUES : 1 + (k + 1) * MINE_VALUES] = (
                kind,
                x,
                y,
                state,
                world.entity_active[0, e],
                state == 0,
            )
        table[0] = len(mines)
        self.entities = table[:FIRST_VALUES].copy()

    def _find_reachable(self) -> None:
        """The number of nodes that can be reached from where the ninja is."""
        game = self.game
        number = int(game.levels.number[game.world.level[0]])
        x, y = (float(v) for v in game.world.position[0])
        key = (game.distances.levels[number].key, game._door_bits(0), x // STEP_PX, y // STEP_PX)
        if self.switches.reachability_cache and key in _REACHABLE:
            _REACHABLE.move_to_end(key)
            self.reachable = _REACHABLE[key]
            return
        self.reachable = _count_reachable(game, number, x // STEP_PX, y // STEP_PX)
        if self.switches.reachability_cache:
            _REACHABLE[key] = self.reachable
            if len(_REACHABLE) > REACH_ENTRIES:
                _REACHABLE.popitem(last=False)

    def _frames_of(self, raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Both frames from the screen, converted once, or once for each."""
        screen = self.screen
        assert screen is not None
        batch = {name: np.asarray(value)[None] for name, value in raw.items()}
        moment, _ = moments_of(batch, newest=True)
        screen.draw(stage_of(self.game.tables[TABLE]), moment)
        if "animation" in self.held:
            self.figure = self.held["animation"][self._frames % POSES] + moment.ninja[0, :2]
        found: dict[str, np.ndarray] = {}
        picture = screen.stabilised() if self.switches.single_conversion else None
        for name in FRAMES:
            if name not in self.spec_fields.by_name:
                continue
            shown = screen.stabilised() if picture is None else picture
            out = self._frame_buffer(name)
            if name == "player_frame":
                crop(shown, int(moment.ninja[0, 0]), int(moment.ninja[0, 1]), out[..., 0])
            else:
                reduce(shown, out[..., 0])
            found[name] = out if self.switches.views else out.copy()
        return found

    def _frame_buffer(self, name: str) -> np.ndarray:
        shape = self.spec_fields.by_name[name].shape[-3:]
        if not self.switches.buffer_reuse:
            return np.zeros(shape, np.uint8)
        if name not in self.held:
            self.held[name] = np.zeros(shape, np.uint8)
        return self.held[name]


_REACHABLE: OrderedDict[Any, int] = OrderedDict()
"""Shared by all environments of a process, 4,096 entries at most."""
_LEVELS: dict[Any, NppGame] = {}
"""One game's level tables per list of levels, for environments that share them."""


def _share_levels(game: NppGame, config: NppConfig) -> None:
    """Put the tables of an earlier game on the same levels in the place of this one's own."""
    key = tuple(level.key for level in game.level_table.level)
    first = _LEVELS.setdefault(key, game)
    while len(_LEVELS) > 8:
        del _LEVELS[next(iter(_LEVELS))]
    if first is not game:
        own = game.levels.playlist
        game.levels = copy(first.levels)
        game.levels.playlist = own
        game.level_table = game.world.table = first.level_table
        game.distances, game.marks = first.distances, first.marks
        if game.graphs is not None:
            game.graphs.distances = first.distances


def _count_reachable(game: NppGame, number: int, column: float, line: float) -> int:
    """Nodes reachable from the middle of a 12 px cell, by a flood over a lattice built anew."""
    _, steps = game.distances.reachable_steps(number, game._door_bits(0))
    exists = np.empty(len(steps), np.bool_)
    free_nodes(game.distances.levels[number].tiles, exists)
    queue, hops = np.empty(len(steps), np.int32), np.empty(len(steps), np.uint16)
    x, y = (column + 0.5) * STEP_PX, (line + 0.5) * STEP_PX
    return int(flood_from_spawn(steps, exists, x, y, queue, hops))


def make_animation() -> np.ndarray:
    """[2400, 13, 2] float64: a running figure's joints around the ninja's place, px."""
    time = np.linspace(0.0, 40.0 * 2.0 * np.pi, POSES)[:, None]
    joint = np.arange(JOINTS)[None, :]
    x = 4.0 * np.sin(time + joint * np.pi / 6)
    y = joint * 1.5 - 9.0 + np.cos(2.0 * time + joint)
    return np.stack([x, y], axis=-1)


def guide_parts(config: NppConfig, chosen: Guide, num_envs: int) -> list[Part]:
    """The plan's lines for what the guide's side holds, by arithmetic."""
    names = config.spec().by_name
    frames = [names[n] for n in FRAMES if n in names]
    rows: list[tuple[str, int, str]] = []
    if frames and not chosen.small_surface:
        rows.append(("screen", SCREEN_BYTES, "3 layers x 600 x 1056 x 4 B"))
        if chosen.frame_cache:
            rows.append(("converted screen", CACHE_BYTES, "600 x 1056 B"))
        if chosen.buffer_reuse:
            size = sum(int(np.prod(f.shape[-3:])) for f in frames)
            rows.append(("frame buffers", size, f"{size:,} B"))
    if not chosen.no_animation:
        rows.append(("animation", ANIMATION_BYTES, f"{POSES} x {JOINTS} joints x 16 B"))
    if not chosen.sparse_entities:
        rows.append(("entity states", 4 * ENTITY_VALUES, f"{ENTITY_VALUES} x float32"))
    if not chosen.lazy_graphs:
        rows.append(("graph", GRAPH_BYTES, "4500 nodes, 18500 edges, padded"))
    return [
        Part(f"env guide: {name}", f"{num_envs} envs x {formula}", num_envs * each)
        for name, each, formula in rows
    ]
