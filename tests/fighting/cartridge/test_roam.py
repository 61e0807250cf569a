"""Roam, the large world: its rule, its walker, its doors and keys, what exploring pays."""

import runpy
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.game import CartridgeGame
from fighting.machine import roam
from fighting.machine.emulator import BUTTONS, Emulator
from fighting.rom import ROAM
from fighting.spec import View
from frugal_rl.memory.profile import MemoryProfile

ROOT = Path(__file__).parents[3]
START, RIGHT, LEFT, UP, DOWN = (
    1 << BUTTONS.index(n) for n in ("start", "right", "left", "up", "down")
)
MOVES = {RIGHT: (0, 1), LEFT: (0, -1), UP: (-1, 0), DOWN: (1, 0)}
SCORE, RNG_SEED, MAP = 0xC001, 0x2F1D, 0x9800
BEGIN = (72, 136)
"""Row and column where the walker begins."""


class Walk:
    """One machine that has just begun a game; `step` holds a direction for one tile."""

    def __init__(self):
        self.emulator = Emulator(ROAM.image.read_bytes())
        self.memory = self.emulator.memory
        self.emulator.tick(120)
        self.emulator.hold(START)
        self.emulator.tick(2)

    def step(self, buttons):
        self.emulator.hold(buttons)
        self.emulator.tick(4)

    def put(self, row, column):
        """The walker somewhere else; what is seen there is drawn as he walks."""
        self.memory[roam.PLACE_X], self.memory[roam.PLACE_Y] = column, row

    @property
    def place(self):
        return self.memory[roam.PLACE_Y], self.memory[roam.PLACE_X]

    @property
    def score(self):
        return int(bytes(self.emulator.read(SCORE, 2)).hex())

    def number(self, address):
        low, high = self.emulator.read(address, 2)
        return high << 8 | low


@pytest.fixture
def walk():
    made = Walk()
    yield made
    made.emulator.close()


@pytest.fixture(scope="module")
def tiles():
    made = Walk()
    yield roam.world(made.emulator)
    made.emulator.close()


class Chance:
    """The twin of the cartridge's shift register."""

    def __init__(self):
        self.state = RNG_SEED

    def byte(self):
        for _ in range(8):
            self.state <<= 1
            if self.state >> 16:
                self.state = self.state & 0xFFFF ^ 0x2D
        return self.state & 0xFF


def ruled():
    """(128,) the rooms as the rule of roam_world.inc says: ways, then doors and keys by region."""
    chance, rooms = Chance(), []
    for room in range(128):
        drawn = chance.byte()
        west, north = room & 3 > 0, room & 16 > 0
        if west and north and not drawn & 2:
            west, north = bool(drawn & 1), not drawn & 1
        rooms.append(drawn & 0xE0 | west | north << 2)
    for region in range(16):
        drawn, first = chance.byte(), region // 4 * 32 + region % 4 * 4
        rooms[first + (drawn >> 5 & 3) + (drawn >> 7) * 16] |= 16
        west = region % 4 and (region < 4 or drawn & 4)
        if west:
            rooms[first + (drawn & 1) * 16] |= 2
        elif region:
            rooms[first + (drawn & 3)] |= 8
    return rooms


def reached(tiles):
    """(128, 256) bool: where one gets from the start with all doors as they are."""
    seen, todo = np.zeros(tiles.shape, bool), deque([BEGIN])
    while todo:
        place = todo.popleft()
        if tiles[place] >= roam.GRASS and not seen[place]:
            seen[place] = True
            todo.extend(((place[0] + r) % 128, (place[1] + c) % 256) for r, c in MOVES.values())
    return seen


def region_of(row, column):
    return row // 32 * 4 + column // 64


def test_the_world_is_the_one_that_the_rule_makes(walk):
    assert walk.emulator.read(roam.ROOMS, 128) == ruled()


def test_every_tile_can_be_reached_and_a_key_is_left_whatever_door_is_opened(tiles):
    tiles, held, opened = tiles.copy(), 0, 0
    while True:
        seen = reached(tiles)
        held += int((tiles[seen] == roam.KEY).sum())
        tiles[seen & (tiles == roam.KEY)] = roam.GRASS
        assert held == 1  # one region more was one key more, and one door cost one
        assert len({region_of(*p) for p in np.argwhere(seen)}) == opened + 1
        beside = sum(np.roll(seen, shift, axis) for axis in (0, 1) for shift in (1, -1)) > 0
        doors = np.argwhere(beside & (tiles == roam.DOOR))
        if not len(doors):
            break
        row, column = doors[-1]  # both tiles of one door
        room = tiles[row // 16 * 16 :, column // 16 * 16 :][:16, :16]
        side = room[:, 0] if column % 16 == 0 else room[0]
        side[side == roam.DOOR] = roam.FRESH
        held, opened = held - 1, opened + 1
    assert opened == 15
    assert (seen == (tiles >= roam.GRASS)).all()


def test_a_step_is_a_tile_in_four_frames_and_walls_stop_it(walk, tiles):
    rng, (row, column), met = np.random.default_rng(3), BEGIN, {BEGIN}
    stopped = 0
    for _ in range(400):
        buttons = int(rng.choice(list(MOVES)))
        there = row + MOVES[buttons][0], column + MOVES[buttons][1]
        if tiles[there] >= roam.GRASS:
            row, column = there
        stopped += tiles[there] < roam.GRASS
        walk.step(buttons)
        met.add((row, column))
        assert walk.place == (row, column)
    assert walk.number(roam.PLACES) == len(met) == roam.trodden(walk.emulator).sum()
    assert stopped > 10
    walk.emulator.hold(0)
    walk.emulator.tick(40)
    assert walk.place == (row, column)


def test_what_is_told_and_drawn_is_the_world_around(walk):
    rng = np.random.default_rng(1)
    for direction in rng.choice(list(MOVES), 60):
        for _ in range(6):  # far enough for rows and columns that were not there at first
            walk.step(int(direction))
        world, (row, column) = roam.world(walk.emulator), walk.place
        near = np.ix_(np.arange(row - 3, row + 4) % 128, np.arange(column - 3, column + 4) % 256)
        np.testing.assert_array_equal(walk.emulator.read(roam.AROUND, 49), np.ravel(world[near]))
        walk.emulator.hold(0)
        walk.emulator.tick(1)
        drawn = np.array(walk.emulator.read(MAP, 1024)).reshape(32, 32)
        rows, columns = np.arange(row - 8, row + 10), np.arange(column - 10, column + 10)
        shown = drawn[np.ix_(rows % 32, columns % 32)]
        np.testing.assert_array_equal(shown, world[np.ix_(rows % 128, columns % 256)])


def test_the_room_and_those_beside_it_are_told(walk, tiles):
    for _ in range(60):
        walk.step(RIGHT)
    tables = (roam.ROOMS, roam.COUNTS, roam.ENTERED)
    rooms, counts, entered = (walk.emulator.read(address, 128) for address in tables)
    row, column = (p // 16 for p in walk.place)
    here = row * 16 + column
    beside = [(here + n) % 128 for n in (1, -1, -16, 16)]
    sides = [rooms[beside[0]] & 3, rooms[here] & 3, rooms[here] >> 2 & 3, rooms[beside[3]] >> 2 & 3]
    assert walk.emulator.read(roam.SIDES, 4) == sides
    assert walk.emulator.read(roam.BEYOND, 4) == [counts[room] for room in beside]
    assert walk.memory[roam.HERE] == counts[here]
    times = [entered[r] if side == 1 else 255 for r, side in zip(beside, sides, strict=True)]
    assert walk.emulator.read(roam.TIMES, 4) == times
    assert sum(counts) == walk.number(roam.PLACES)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_door_stops_until_a_key_opens_it_and_behind_it_is_a_new_region(walk, tiles, axis):
    row, column = next(p for p in np.argwhere(tiles == roam.DOOR).tolist() if p[1 - axis] % 16)
    step, buttons = ((1, 0), DOWN) if axis == 0 else ((0, 1), RIGHT)
    before = (row - step[0], column - step[1])
    walk.put(*before)
    walk.step(buttons)
    assert walk.place == before
    walk.memory[roam.KEYS] = 1
    walk.step(buttons)
    assert (walk.place, walk.memory[roam.KEYS], walk.memory[roam.DOORS]) == (before, 0, 1)
    regions, points = walk.memory[roam.REGIONS], walk.score
    walk.step(buttons)
    assert walk.place == (row, column)
    assert walk.memory[roam.REGION] == region_of(row, column) != region_of(*before)
    assert (walk.memory[roam.REGIONS], walk.score) == (regions + 1, points + 1)
    walk.step(buttons)
    walk.step({DOWN: UP, RIGHT: LEFT}[buttons])
    assert (walk.memory[roam.REGIONS], walk.score) == (regions + 1, points + 1)


def test_a_key_is_taken_once_and_is_a_point(walk, tiles):
    row, column = np.argwhere(tiles == roam.KEY)[0].tolist()
    walk.put(row, column - 1)
    walk.step(RIGHT)
    points = walk.score
    assert (walk.place, walk.memory[roam.KEYS]) == ((row, column), 1)
    assert points == 2  # the key, and the region that the test went to
    walk.step(LEFT)
    assert walk.memory[roam.AROUND + 25] == roam.GRASS  # to his right
    walk.step(RIGHT)
    assert (walk.memory[roam.KEYS], walk.score) == (1, points)


@pytest.fixture
def game():
    config = GameBoyConfig(profile="roam", obs=View.ram, warmup_noop_max=0, threads=1, max_steps=30)
    made = CartridgeGame(config, 2)
    made.seed([np.random.default_rng(n) for n in range(2)])
    made.begin(np.arange(2))
    yield made
    made.close()


def test_exploring_pays_each_place_of_roam_once(game):
    paid = np.zeros(2)
    for number in range(30):
        told = game.advance(np.array([2 + number % 2, number < 5]))
        paid += told.reward
        assert not told.terminated.any()
        assert told.truncated.all() == (number == 29)
    # One goes up and down between two places; one goes five to the left, then back and beyond.
    world = [roam.trodden(machine).sum() for machine in game.emulators.machines]
    assert world[0] == 2
    np.testing.assert_allclose(paid, [(n - 1) / 10 for n in world], rtol=1e-6)
    assert world[1] > 10
    score = game.outcomes(np.arange(2))["score"]
    np.testing.assert_array_equal(score, world)
    assert replace(game.config, max_steps=0).longest == 20_000
    parts = {p.name: p.ram_bytes for p in game.config.parts(2, None, MemoryProfile(), None)}
    assert parts["values seen"] == game.scene.maps.nbytes == 2 * 8192


def test_a_walker_who_remembers_sees_more_than_noise(monkeypatch):
    explorer = runpy.run_path(str(ROOT / "benchmarks" / "fighting_explorer.py"))["Explorer"]()
    config = GameBoyConfig(profile="roam", obs=View.ram, threads=1)
    made = CartridgeGame(config, 2)
    made.seed([np.random.default_rng(n) for n in range(2)])
    made.begin(np.arange(2))
    rng = np.random.default_rng(0)
    for _ in range(300):
        features = made.observe()["features"]
        made.advance(np.array([explorer({"features": features[:1]})[0], rng.integers(4)]))
    script, noise = made.outcomes(np.arange(2))["score"]
    made.close()
    assert script > 250
    assert noise < 150
