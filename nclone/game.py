"""N games of N++ side by side: levels, starts, rewards, ends and raw observations.

`NppEnv` plays one of them for Gymnasium, `NppVecEnv` all of them for the trainer; equal seeds give
equal episodes in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.game import Advance, Game, generator_states, restored
from nclone.graph.ahead import PATH_FIELD, write_path_ahead
from nclone.graph.distance import DistanceTables
from nclone.graph.fields import GRAPH_ID, GRAPH_TABLE
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.interned import InternedGraphs
from nclone.graph.routes import Reach, reach_of, write_routes
from nclone.levels.played import PlayedLevels
from nclone.observation.foresight import FORESIGHT_FIELD, Followed, Foresight, path_left
from nclone.observation.observe import Routes, Rows, Worlds, observe, write_action_masks
from nclone.observation.places import PLAYER_PLACE, write_player_places
from nclone.render.moment import write_moment
from nclone.rewards.kernels import COMPONENTS
from nclone.rewards.step import StepReader
from nclone.rewards.tracker import RewardTracker
from nclone.sim import state as st
from nclone.sim.world import World
from nclone.spec import ACTIONS, HAZARDS, LEVEL_TABLE, level_row, level_table, raw_arrays

if TYPE_CHECKING:
    from nclone.config import NppConfig
    from nclone.levels.level import Level


class NppGame(Game):
    """N worlds on a fixed set of levels.

    `order` draws levels at random, or plays them in turn so that an evaluation plays each
    equally often.
    """

    def __init__(
        self,
        config: NppConfig,
        levels: Sequence[Level],
        num_worlds: int,
        order: str = "random",
        threads: int | None = None,
    ) -> None:
        self.config, self.order, self.num_worlds = config, order, num_worlds
        self.action_space = spaces.Discrete(ACTIONS)
        self.levels = PlayedLevels(
            levels,
            level_table(config.obs),
            partial(level_row, config.obs),
            DistanceTables(config.distances_mib),
            config.evolved if order == "random" else 0,
        )
        self.level_table, self.marks = self.levels.table, self.levels.marks
        self.distances = self.levels.distances
        self.tables = Tables({LEVEL_TABLE: self.levels.static})
        self.graph_id = np.zeros(num_worlds, np.int64)
        self.has_routes = config.obs.has_graph or config.obs.has_path
        self.graphs: InternedGraphs | None = None
        if config.obs.has_graph:
            self.graphs = InternedGraphs(self.distances, config.graphs_mib)
            self.tables[GRAPH_TABLE] = self.graphs.table
        self.world = World(self.level_table, np.zeros(num_worlds, np.int32), threads, begun=False)
        self.world.make_room(self.levels.playlist)
        self.tracker = RewardTracker(config.reward_table(), config.gamma, num_worlds)
        self.best_frames: np.ndarray | None = None
        if self.tracker.config.speed:
            self.best_frames = config.best_frames(self.level_table.level)
        self.entry = np.full(num_worlds, -1, np.int64)
        self.door_bits = np.zeros(num_worlds, np.int64)
        self.limit = np.ones(num_worlds, np.int64)
        self.switch_hit = np.zeros(num_worlds, np.bool_)
        self.steps = np.zeros(num_worlds, np.int64)
        self.turns = np.arange(num_worlds)
        self.curriculum = config.chooser(self.levels) if order == "random" else None
        self.spec = config.spec()
        self.raw = raw_arrays(self.spec, num_worlds)
        self.foresight: Foresight | None = None
        if FORESIGHT_FIELD.name in self.raw:
            self.foresight = Foresight(self.world, num_worlds)
        self._nearest = np.zeros((num_worlds, HAZARDS))
        self._rngs: list[np.random.Generator] = []
        self._every = np.arange(num_worlds)
        self.step_reader = StepReader(self.limit)

    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """One source of randomness per world; the next `begin` draws from it."""
        self._rngs = list(rngs)
        self.turns = np.arange(self.num_worlds)

    def begin(self, which: np.ndarray, levels: np.ndarray | None = None) -> None:
        """Start new episodes in the worlds listed in `which`, on drawn levels or on `levels`."""
        if not len(which):
            return
        draws = np.array([self._rngs[n].random(3) for n in which])
        if levels is None:
            levels = self._next(which, draws[:, 0])
        self.world.reset(which, levels)
        frames = (draws[:, 1] * (self.config.start_frames + 1)).astype(np.int64)
        w = self.world
        w.warm_up(which, (draws[:, 2] * ACTIONS).astype(np.uint8), frames)
        self.switch_hit[which] = (w.events[which] & st.SWITCH_HIT) != 0
        self._find_entries(which)
        self._find_graphs(which)
        self.limit[which] = self.distances.limit_frames[self.entry[which]]
        self.steps[which] = 0
        begun = np.zeros(self.num_worlds, np.bool_)
        begun[which] = True
        self.tracker.begin(begun, self.step_reader.moved(w.worlds), self._paths())

    def advance(self, actions: np.ndarray) -> Advance:
        """Hold one action per world for the frame skip; ended worlds wait for `begin`.

        Events: `died` [N] bool; `milestone` [N] int8, the goal (`nclone.graph.goals`) that the
        step reached, -1 for none.
        """
        w, step = self.world, self.step_reader
        actions = np.asarray(actions, np.int64)
        executed = w.step(actions, self.config.frame_skip)
        self.steps += 1
        happened = step.read(w.worlds, actions, executed, self.switch_hit)
        if happened & (st.SWITCH_HIT | st.DOOR_OPENED):
            self._find_changed()
        reward = self.tracker.step(step.motion, self._paths(), step.events)
        won, ended, truncated = step.events.won, step.ended, step.events.truncated
        if self.best_frames is not None and won.any():
            which = np.flatnonzero(won)
            self.tracker.pay_speed(which, w.frame[which], self.best_frames[w.level[which]])
        if self.curriculum is not None:
            self.curriculum.steps += self.num_worlds
            done = np.flatnonzero(ended | truncated)
            self.curriculum.record(w.level[done], won[done])
        told = {"died": step.events.died, "milestone": step.milestone}
        return Advance(reward, ended, truncated, told)

    def _find_changed(self) -> None:
        """Paths and graphs of worlds whose doors or objectives changed in the last step.

        A door that opened is the milestone, unless the same step won.
        """
        step, events = self.step_reader, self.world.events
        opened = np.flatnonzero(events & st.DOOR_OPENED)
        if len(opened):
            before = self.door_bits[opened]
            self._find_entries(opened)
            fresh = self.door_bits[opened] & ~before  # 0 for doors without a switch to collect
            first = 2 + 2 * np.log2(np.maximum(fresh & -fresh, 1)).astype(np.int8)
            goal = (fresh != 0) & ~step.events.won[opened]
            step.milestone[opened] = np.where(goal, first, step.milestone[opened])
        self._find_graphs(np.flatnonzero(step.events.switch_now | (events & st.DOOR_OPENED != 0)))

    def observe(self, which: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Raw fields of all worlds, or of those listed; views that the next call overwrites."""
        chosen = self._every if which is None else which
        w = self.world
        rows = self.raw if which is None else raw_arrays(self.spec, len(chosen))
        ids = {f"{LEVEL_TABLE}_id": w.level if which is None else w.level[chosen]}
        self._observe_state(chosen, rows)
        if self.has_routes:
            self._write_routes(chosen, rows, reach_of(self.distances))
            if PATH_FIELD.name in rows:
                self._write_path(chosen, rows)
        if self.foresight is not None:
            self.foresight.look(chosen, self._followed(), rows[FORESIGHT_FIELD.name])
        if self.graphs is not None:
            ids[GRAPH_ID] = self.graph_id if which is None else self.graph_id[chosen]
        if "ninja" in rows:
            write_moment(w, chosen, rows["ninja"], rows["codes"], rows["moving"])
        if PLAYER_PLACE in rows:
            write_player_places(w.worlds["x"][chosen], w.worlds["y"][chosen], rows[PLAYER_PLACE])
        return rows | ids

    def follow(self, other: NppGame, of: np.ndarray) -> None:
        """Go on with the episodes of another game on the same levels: worlds `of` [M] of it.

        They are played in the first M worlds; the others rest. Rewards begin anew.
        """
        at = np.arange(len(of))
        self.world.restore(other.world.snapshot(of), at)
        self.world.worlds["state"][len(of) :] = st.DEAD
        for name in ("limit", "switch_hit", "steps"):
            getattr(self, name)[at] = getattr(other, name)[of]
        self._find_entries(self._every if self.entry[-1] < 0 else at)
        self._find_graphs(at)
        motion = self.step_reader.moved(self.world.worlds)
        self.tracker.begin(self._every < len(of), motion, self._paths())

    def path_left(self, which: np.ndarray) -> np.ndarray:
        """[M] float64 px to what the path of the worlds listed leads to; inf where none does."""
        return path_left(self.world, self._followed(), which)

    def _followed(self) -> Followed:
        levels = self.levels.number[self.world.level]
        reach = reach_of(self.distances)
        return Followed(reach, self.levels.doors, levels, self.entry, self.switch_hit)

    def _observe_state(self, chosen: np.ndarray, rows: dict[str, np.ndarray]) -> None:
        """Physics, routes to the exit, dangers and the action mask; of pixels alone, the mask."""
        w = self.world
        if "game_state" not in rows:
            write_action_masks(w.worlds, chosen, rows["action_mask"])
            return
        t = self.level_table.tables
        routes = Routes(
            self.distances.hops,
            self.distances.goal_row,
            self.distances.scale_px,
            self.entry,
            self.switch_hit,
            self.limit,
        )
        worlds = Worlds(w.worlds, w.entities, w.movers, t.levels, t.things)
        written = Rows(*(rows[name] for name in Rows._fields))

        def write(first: int, end: int) -> None:
            observe(worlds, routes, self.levels.places, chosen, self._nearest, written, first, end)

        w.share(len(chosen), write)

    def _write_routes(self, chosen: np.ndarray, rows: dict[str, np.ndarray], reach: Reach) -> None:
        """Reachability and locked doors of the worlds in `chosen`."""
        w = self.world
        write_routes(
            reach,
            self.levels.doors,
            self.levels.number[w.level],
            self.entry,
            *self._of_ninjas("x", "y"),
            self.switch_hit,
            w.entity_active,
            w.entity_state,
            chosen,
            rows["reachability_features"],
            rows["locked_door_features"],
            rows["num_locked_doors"],
        )

    def _write_path(self, chosen: np.ndarray, rows: dict[str, np.ndarray]) -> None:
        """The path ahead of the worlds in `chosen`."""
        (reach, doors, level, entry, hit), w = self._followed(), self.world
        active, (x, y) = w.entity_active, self._of_ninjas("x", "y")
        out = rows[PATH_FIELD.name]
        write_path_ahead(reach, doors, level, entry, x, y, hit, active, chosen, out)

    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Statistics of the episodes that ended in the worlds listed, [M] float64 each."""
        w = self.world
        cause = w.death_cause[which]
        sums = self.tracker.sums[which]
        stats = {
            "return": sums.sum(axis=1),
            "length": self.steps[which].astype(np.float64),
            "success": w.won[which].astype(np.float64),
            "frames": w.frame[which].astype(np.float64),
            "level": w.level[which].astype(np.float64),
            "switch_hit": self.switch_hit[which].astype(np.float64),
            "gold": w.gold[which].astype(np.float64),
        }
        if self.curriculum is not None:
            stats |= self.curriculum.told(w.level[which])
        for code, name in ((1, "mine"), (2, "impact"), (3, "hazard"), (4, "other")):
            stats[f"death_{name}"] = (cause == code).astype(np.float64)
        return stats | {f"reward_{name}": sums[:, k] for k, name in enumerate(COMPONENTS)}

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        kept = self.world.snapshot()._asdict()
        arrays = {name: np.ascontiguousarray(a).view(np.uint8) for name, a in kept.items()}
        return {
            "world": arrays,
            "limit": self.limit.copy(),
            "switch_hit": self.switch_hit.copy(),
            "steps": self.steps.copy(),
            "turns": self.turns.copy(),
            "rewards": self.tracker.state(),
            "graphs": self.graphs.keys() if self.graphs is not None else [],
            "curriculum": self.curriculum.state() if self.curriculum else None,
            "rngs": generator_states(self._rngs),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        if self.curriculum is not None:
            self.curriculum.load(state["curriculum"])  # levels that joined have worlds
        w = self.world
        for name, stored in state["world"].items():
            dtype, shape = getattr(w, name).dtype, np.shape(stored)[:-1]
            columns = (
                (-1,) if name == "worlds" else (*shape, np.shape(stored)[-1] // dtype.itemsize)
            )
            setattr(w, name, np.array(stored).view(dtype).reshape(columns))
        for name in ("limit", "switch_hit", "steps", "turns"):
            getattr(self, name)[:] = state[name]
        if self.graphs is not None:
            self.graphs.intern_again(state["graphs"])
        self._find_entries(self._every)
        self._find_graphs(self._every)
        self.tracker.load(state["rewards"])
        self._rngs = restored(state["rngs"])

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""
        parts = {
            "worlds": self.world.nbytes,
            "levels": self.level_table.nbytes + self.tables[LEVEL_TABLE].nbytes,
            "path distances": self.distances.nbytes,
            "raw rows": sum(a.nbytes for a in self.raw.values()) + self._nearest.nbytes,
            "rewards": self.tracker.nbytes + self.step_reader.nbytes,
        }
        if self.foresight is not None:
            parts["copies of worlds"] = self.foresight.nbytes
        if self.curriculum is not None:
            parts["levels"] += self.curriculum.nbytes
        return parts if self.graphs is None else parts | {"graphs": self.graphs.table.nbytes}

    def _next(self, which: np.ndarray, draw: np.ndarray) -> np.ndarray:
        """Ids of the next levels."""
        if self.curriculum is not None:
            return self.curriculum.next(draw)
        playlist = self.levels.playlist
        if self.order == "random":
            return playlist[(draw * len(playlist)).astype(np.int64)]
        turn = self.turns[which] % len(playlist)
        self.turns[which] += self.num_worlds
        return playlist[turn]

    def _find_entries(self, which: np.ndarray) -> None:
        """The distance tables that belong to the worlds' present levels and open doors."""
        level = self.world.level[which]
        entry = self.entry[which]
        bits = np.array([self._door_bits(n) for n in which], np.int64)
        self.distances.reacquire(entry, self.levels.number[level], bits, range(len(which)))
        self.entry[which] = entry
        self.door_bits[which] = bits

    def _find_graphs(self, which: np.ndarray) -> None:
        """The graphs of the worlds' present levels, open doors and objectives."""
        if self.graphs is None:
            return
        for n in which:
            objective = EXIT_DOOR if self.switch_hit[n] else EXIT_SWITCH
            number = int(self.levels.number[self.world.level[n]])
            self.graph_id[n] = self.graphs.id_of(number, self._door_bits(n), objective)

    def _door_bits(self, n: int) -> int:
        marks = self.marks[self.world.level[n]]
        open_doors = self.world.entity_active[n, marks.door_entities] == 0
        return int(open_doors @ (1 << np.arange(len(open_doors)))) if len(open_doors) else 0

    def _of_ninjas(self, *names: str) -> list[np.ndarray]:
        """Fields of all worlds, [N] each; in one piece, as that of a single world is by itself.

        Else kernels would be compiled once more for games of one world.
        """
        return [np.ascontiguousarray(self.world.worlds[name]) for name in names]

    def _paths(self) -> Any:
        level = self.levels.number[self.world.level]
        return self.tracker.paths(
            self.distances, self.entry, level, self.switch_hit, self.world.entity_state
        )
