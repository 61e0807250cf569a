"""Proof that a level can be won: a search, and the winning inputs that it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nclone.graph.distance import DistanceTables
from nclone.graph.goals import GOALS
from nclone.graph.landmarks import Landmarks, find_landmarks
from nclone.levels.inputs import HOLD_FRAMES, Inputs, mirrored_actions
from nclone.search.explore import MAX_GUIDED_DOORS, Archive, Guide, explore, new_archive, word_rows
from nclone.sim.world import Arrays, World

if TYPE_CHECKING:
    from nclone.levels.generators import Recipe
    from nclone.levels.level import Level
    from nclone.levels.pool import PoolLevel


LEVELS_PER_TABLE = 64
"""After so many levels a prover starts a new table, so that it does not grow without end."""


@dataclass(frozen=True)
class Proof:
    """The outcome of a search: inputs, or None, and the frames that were simulated."""

    inputs: Inputs | None
    frames_spent: int


class Prover:
    """Searches levels one after the other with one set of arrays.

    Args:
        entries: most cells that a search may remember (2.7 kB each).
        budget_frames: frames after which a level counts as unsolved.
        frame_limit: a win must come by this frame; None means the level's truncation limit.
    """

    def __init__(
        self, entries: int = 3000, budget_frames: int = 400_000, frame_limit: int | None = None
    ) -> None:
        self.budget_frames = budget_frames
        self.frame_limit = frame_limit
        self._entries = entries
        self._world: World | None = None
        self._archive: Archive = new_archive(entries, nodes=budget_frames // HOLD_FRAMES + 64)

    def prove(
        self,
        level: Level,
        seed: int = 0,
        guided: bool = True,
        after: Sequence[int] | np.ndarray = (),
        frame_skip: int = HOLD_FRAMES,
    ) -> Proof:
        """Search for inputs that win a level within its frame limit.

        Without `guided` the search knows no distances and goes where it has seldom been: slower,
        but not led astray where the way back shuts or the shortest path cannot be walked.

        Args:
            level: the level.
            seed: of everything random.
            guided: whether distances lead the search.
            after: [T] actions 0..5, each held for `frame_skip` frames, after which it begins.
            frame_skip: frames of each action of `after`.
        """
        marks = find_landmarks(level)
        if marks.exit_entities[0] < 0:
            return Proof(None, 0)
        tables = DistanceTables(capacity_mib=3.0)
        number = tables.add_level(marks)
        limit = self.frame_limit or int(tables.limit_frames[tables.acquire(number, 0)])
        world = self._start(level)
        past = np.asarray(after, np.uint8)
        if len(past):
            world.restore(_played(world, int(world.level[0]), past, frame_skip), [0])
            if world.ended[0]:
                return Proof(None, 0)
        guide = _guide(tables, number, marks)
        node, spent = explore(
            world.table.tables,
            world.arrays,
            word_rows(*world.arrays),
            guide if guided else guide._replace(rows=np.full_like(guide.rows, -1)),
            self._archive,
            seed,
            HOLD_FRAMES,
            limit,
            self.budget_frames,
        )
        if node < 0:
            return Proof(None, int(spent))
        inputs = _trace(self._archive, node)
        if not _wins_after(level, past, frame_skip, inputs):
            raise RuntimeError(
                f"The inputs found for level '{level.name}' do not win when played again; "
                "the simulator's snapshots are incomplete. Please report this level."
            )
        return Proof(inputs, int(spent))

    def solution(self, level: Level) -> Inputs | None:
        """Inputs that win, or None: a search led by distances, then one without them."""
        proofs = (self.prove(level, guided=guided).inputs for guided in (True, False))
        return next((inputs for inputs in proofs if inputs is not None), None)

    def _start(self, level: Level) -> World:
        """Put the level into row 0; the rows behind it are the archive's and need no reset."""
        if self._world is None or len(self._world.table) >= LEVELS_PER_TABLE:
            self._world = World([level], np.zeros(self._entries + 1, np.int32), threads=1)
        self._world.reset([0], levels=self._world.table.add(level))
        return self._world


def _played(world: World, number: int, actions: np.ndarray, frame_skip: int) -> Arrays:
    """The state of a level after some actions."""
    alone = World(world.table, [number], threads=1)
    alone.step(actions[:, None], frames=frame_skip)
    return alone.snapshot()


def _wins_after(level: Level, past: np.ndarray, frame_skip: int, inputs: Inputs) -> bool:
    world = World([level], threads=1)
    if len(past):
        world.step(past[:, None], frames=frame_skip)
    world.step(inputs.per_step()[:, None], frames=HOLD_FRAMES)
    return bool(world.won[0])


def wins(level: Level, inputs: Inputs) -> bool:
    """Whether playing the inputs from the start completes the level."""
    return bool(win_all([level], [inputs])[0])


def win_all(levels: Sequence[Level], inputs: Sequence[Inputs]) -> np.ndarray:
    """[N] bool: whether each level is completed by its inputs, all played side by side."""
    world = World(list(levels), threads=1)
    world_of = [world.table.id_of(level) for level in levels]
    world = World(world.table, world_of, threads=1)
    steps = [part.per_step() for part in inputs]
    actions = np.zeros((max(map(len, steps)), len(levels)), np.uint8)
    for n, column in enumerate(steps):
        actions[: len(column), n] = column
    world.step(actions, frames=HOLD_FRAMES)
    return world.won.copy()


def mirrored_members(
    members: Sequence[PoolLevel], generate: Callable[[Recipe], Level]
) -> list[PoolLevel]:
    """The mirror images of pool levels, made by `generate`, that are proved winnable.

    The mirrored inputs are played; where they do not win, a new proof is searched for, and a level
    without one is left out.
    """
    if not members:
        return []
    recipes = [replace(m.recipe, mirrored=not m.recipe.mirrored) for m in members]
    levels = [generate(recipe) for recipe in recipes]
    inputs: list[Inputs | None] = [
        Inputs(mirrored_actions(m.inputs.actions), m.inputs.lengths) for m in members
    ]
    prover = Prover()
    for k in np.flatnonzero(~win_all(levels, inputs)):  # type: ignore[arg-type]
        inputs[k] = prover.prove(levels[k], seed=recipes[k].seed & 0xFFFFFFFF).inputs
    return [
        replace(m, recipe=recipe, inputs=found, key=level.key)
        for m, recipe, level, found in zip(members, recipes, levels, inputs, strict=True)
        if found is not None
    ]


def _guide(tables: DistanceTables, number: int, marks: Landmarks) -> Guide:
    """Distances for every subset of up to three doors; with more, for none and for all."""
    doors = len(marks.door_entities)
    rows = np.full((1 << MAX_GUIDED_DOORS, GOALS), -1, np.int32)
    if doors <= MAX_GUIDED_DOORS:
        subsets = {bits: bits for bits in range(1 << doors)}
    else:
        subsets = dict.fromkeys(range((1 << MAX_GUIDED_DOORS) - 1), 0)
        subsets[(1 << MAX_GUIDED_DOORS) - 1] = (1 << doors) - 1
    for bits, opened in subsets.items():
        rows[bits] = tables.goal_row[tables.acquire(number, opened)]
    return Guide(tables.hops, rows, marks.exit_entities[1], marks.door_entities)


def _trace(archive: Archive, node: int) -> Inputs:
    """The inputs from the root of the tree to a node; equal neighbours are joined."""
    steps: list[list[int]] = []
    while node >= 0:
        action, held = int(archive.action[node]), int(archive.held[node])
        if steps and steps[-1][0] == action and steps[-1][1] + held < 256:
            steps[-1][1] += held
        else:
            steps.append([action, held])
        node = int(archive.parent[node])
    steps.reverse()
    return Inputs(
        np.array([s[0] for s in steps], np.uint8), np.array([s[1] for s in steps], np.uint8)
    )
