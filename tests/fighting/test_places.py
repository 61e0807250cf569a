"""The probe in a game of places: what says where one is, what only looks so, and what is paid."""

import numpy as np
import pytest
import yaml

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.meaning import Meanings
from fighting.cartridge.memory import Address
from fighting.cartridge.scene import Scene
from fighting.machine.emulator import BUTTONS, sha1
from fighting.rom import ROAM, VOLLEY
from fighting.spec import View
from fighting.tools.address_search import search
from fighting.tools.candidates import WORK_RAM, WORK_RAM_BYTES, Candidate
from fighting.tools.joypad import opened
from fighting.tools.places import unpaid, world
from fighting.tools.tried_out import judged, trial
from frugal_rl.memory.finding import Severity

FRAMES, ROUND = 3600, 900
X, Y = 0x10, 0x11
TIMER, ANIMATION, SCROLL, STRIDE, DOORS, TILES, NOTE, DOTS, ROOM = range(0x20, 0x29)
ARROWS = {"right": (1, 0), "left": (-1, 0), "down": (0, 1), "up": (0, -1)}
ROUNDS = range(ROUND, FRAMES, ROUND)


def walked(size=24, rooms=1, every=4, lag=0, pixels=1, keys=tuple(ARROWS), seed=0):
    """Memory (F, 8192) and buttons (F,) of a walker who takes a step each `every` frames.

    Rooms of `size` by `size` lie in a ring from left to right; around them is the rest of a game.
    """
    rng = np.random.default_rng(seed)
    bits = [1 << BUTTONS.index(key) for key in keys]
    held = np.repeat(rng.choice(bits, FRAMES // 12), 12).astype(np.uint8)
    memory = np.zeros((FRAMES, WORK_RAM_BYTES), np.uint8)
    for frame in range(FRAMES):
        if frame % ROUND == 0:
            x, y, room, steps, doors, dots = size // 2, size // 2, 0, 0, 0, 0
        if frame % every == 0 and frame % ROUND > lag:
            dx, dy = ARROWS[BUTTONS[int(held[frame - lag]).bit_length() - 1]]
            y, steps = min(max(y + pixels * dy, 0), size - 1), steps + 1
            passed = rooms > 1 and not 0 <= x + dx < size
            room, doors = (room + dx * passed) % rooms, doors + passed
            x = (x + pixels * dx) % size if passed else min(max(x + pixels * dx, 0), size - 1)
            dots += int(rng.random() < 0.05)
        memory[frame, [X, Y, ROOM, DOORS, STRIDE, DOTS]] = x, y, 7 * room, doors, steps % 4, dots
        memory[frame, TILES] = room % 2
        memory[frame, NOTE] = max(memory[frame - 1, NOTE] if frame % ROUND else 0, y * (x < 2))
    memory[:, TIMER] = 200 - np.arange(FRAMES) // 60
    memory[:, ANIMATION] = 20 + np.abs(np.arange(FRAMES) // 6 % 24 - 12)
    memory[:, SCROLL] = np.arange(FRAMES) // 2
    return memory, held


def where(found):
    """Addresses by name, from work memory's begin."""
    return {name: c.addr - WORK_RAM for name, c in found.bytes.items()}


def values(expression, names, memory):
    """What an expression is worth in each frame of memory (F, 8192), as `seen` has it."""
    meanings = Meanings({name: Address(WORK_RAM + at) for name, at in names.items()})
    value = meanings.of(expression)
    scene = Scene.empty(len(memory), meanings.watched, 0)
    for address, column in meanings.watched.addresses.items():
        scene.memory[:, column] = memory[:, address - WORK_RAM]
    return value(scene).astype(int) & 0xFFFF


@pytest.mark.parametrize("lag", [0, 15])
def test_coordinates_follow_the_arrows_also_where_a_step_is_entered_at_its_end(lag):
    assert where(world(*walked(lag=lag), ROUNDS)) == {"place_x": X, "place_y": Y}


def test_what_a_timer_or_an_animation_moves_is_no_place():
    memory, _ = walked()
    others = np.random.default_rng(1).choice([16, 32, 64, 128], FRAMES // 12)
    assert world(memory, np.repeat(others, 12).astype(np.uint8), ROUNDS) is None


def test_what_goes_one_way_alone_is_no_coordinate():
    assert world(*walked(keys=("right",)), ROUNDS) is None


def test_a_menu_of_few_lines_is_no_world():
    assert world(*walked(size=5), ROUNDS) is None


def test_a_room_changes_as_the_coordinates_jump_and_comes_back():
    memory, held = walked(size=9, rooms=12)
    found = world(memory, held, ROUNDS)
    assert where(found) == {"place_x": X, "place_y": Y, "place_room": ROOM}
    places = {tuple(row) for row in memory[:, [X, Y, ROOM]].tolist()}
    told_apart = len(set(values(found.place, where(found), memory).tolist()))
    assert 0.95 * len(places) < told_apart <= len(places)


def test_what_counts_doors_or_tells_of_one_is_no_room():
    memory, held = walked(size=9, rooms=12)
    doors = np.flatnonzero(np.diff(memory[:, DOORS])) + 1
    memory[:, ROOM] = memory[:, TILES] = 0
    memory[doors[1] : doors[2], ROOM] = 1
    assert where(world(memory, held, ROUNDS)) == {"place_x": X, "place_y": Y}


def test_a_room_shows_in_few_jumps_but_not_in_one_and_rounds_are_none():
    memory, held = walked(size=36, rooms=12)
    assert len(np.unique(memory[:, DOORS])) <= 9
    memory[:, TILES] = 0  # two rooms were met, which its two values tell apart as well
    assert where(world(memory, held, ROUNDS)) == {"place_x": X, "place_y": Y, "place_room": ROOM}
    memory, held = walked()
    memory[1000 : 2 * ROUND, X] += 100
    memory[1000:1003, ROOM] = 1
    assert where(world(memory, held, ROUNDS)) == {"place_x": X, "place_y": Y}


def test_large_steps_are_no_walk():
    memory, held = walked()
    memory[:, Y] *= 20
    assert where(world(memory, held, ROUNDS)) == {"place_x": X}


def test_two_bytes_are_told_apart_exactly():
    memory, held = walked(size=9, rooms=12, keys=("right", "left"))
    found = world(memory, held, ROUNDS)
    assert where(found) == {"place_x": X, "place_room": ROOM}
    exact = memory[:, ROOM].astype(int) << 8 | memory[:, X]
    assert (values(found.place, where(found), memory) == exact).all()


def test_eight_pixels_are_a_place():
    found = world(*walked(size=160, every=1), ROUNDS)
    assert found.place == "place_y >> 3 << 8 | place_x >> 3"
    assert world(*walked(), ROUNDS).place == "place_y << 8 | place_x"


def riser(address):
    """A score that was found at an address."""
    return Candidate("score", WORK_RAM + address, 9, "")


def test_what_rises_all_over_the_world_is_a_score_and_what_rises_in_a_corner_is_none():
    memory, held = walked()
    note, dots = riser(NOTE), riser(DOTS)
    assert (np.diff(memory[:, NOTE].astype(int)) > 0).sum() >= 3
    assert unpaid(memory, held, ROUNDS, [note], []) is not None
    assert unpaid(memory, held, ROUNDS, [note, dots], []) is None
    twice = memory.copy()
    corners = memory[:, X].astype(int) + memory[:, Y]
    far = sorted([corners.argmin(), corners.argmax()])
    twice[:, DOTS] = np.searchsorted(far, np.arange(FRAMES), side="right")
    assert unpaid(twice, held, ROUNDS, [dots], []) is not None


def test_one_coordinate_is_paid_for_where_nothing_else_is_found():
    memory, held = walked(keys=("right", "left"))
    assert where(unpaid(memory, held, ROUNDS, [], [])) == {"place_x": X}
    assert unpaid(memory, held, ROUNDS, [riser(NOTE)], []) is None
    assert unpaid(memory, held, ROUNDS, [], [riser(TIMER)]) is None
    both = walked()
    assert unpaid(*both, ROUNDS, [], [riser(TIMER)]) is not None


def probed(cartridge, folder, frames):
    """Lines of the probe, and the profile that it wrote."""
    profile, rom, emulator = opened(GameBoyConfig(profile=cartridge.name))
    lines = list(search(emulator, profile, frames, str(folder), sha1(rom)))
    path = folder / f"{cartridge.name}_found.yaml"
    settings = {"rom": str(cartridge.image), "obs": View.ram, "accept_guesses": True}
    return lines, GameBoyConfig(profile=str(path), **settings)


def test_of_roam_the_probe_writes_a_profile_that_pays_each_place_once(tmp_path):
    lines, config = probed(ROAM, tmp_path, 1800)
    assert "#   places: rise(seen(place_y << 8 | place_x)) / 10" in lines
    assert any("moves no score" in line for line in lines)
    game = config.game
    assert (game.memory["place_x"].addr, game.memory["place_y"].addr) == (0xC010, 0xC011)
    assert (game.goal.end, game.goal.time_limit) == (None, 300)
    assert game.goal.score.text == "seen(place_y << 8 | place_x)"
    assert not any(name.startswith(("score", "lives")) for name in game.memory)
    seen = {0xC030 + n for n in range(49)} - {0xC030 + 24}  # the tiles around, not one's own
    assert seen <= {address.addr for address in game.memory.values()}
    assert {"fresh", "went_place_x", "went_place_y"} <= set(game.feature_names)
    assert not [f for f in judged(config, trial(config)) if f.severity is not Severity.ok]


@pytest.mark.slow
def test_a_paddle_that_follows_the_arrows_is_no_world_beside_points(tmp_path):
    _, config = probed(VOLLEY, tmp_path, 1800)
    written = yaml.safe_load((tmp_path / "volley_found.yaml").read_text())
    assert list(written["reward"]) == ["score_0"]
    assert config.game.memory["score_0"].addr == 0xC019
    assert written["time_limit"] == 60
