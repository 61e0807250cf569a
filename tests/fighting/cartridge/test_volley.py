"""Volley, the ball game for two pads: its rules beside a twin, its mirror image, its computer."""

from dataclasses import astuple, dataclass, replace

import numpy as np
import pytest

from fighting.cartridge.reading import load_profile
from fighting.machine.emulator import BUTTONS, Emulator
from fighting.rom import VOLLEY

PHASE, SCORE, RNG = 0xC000, 0xC001, 0xC006
P2_PAD, MODE, PADDLE1, PADDLE2, BALL_X, BALL_Y, SPEED_X, SPEED_Y = range(0xC010, 0xC018)
POINTS1, POINTS2, RALLY, WAIT, BIT_X = range(0xC018, 0xC01D)
START, UP, DOWN = (1 << BUTTONS.index(name) for name in ("start", "up", "down"))
LEFT_SERVE = {SPEED_X: 256 - 24, BIT_X: 0x78}
RIGHT_SERVE = {SPEED_X: 24, BIT_X: 0x88}


def signed(byte):
    """-128 to 127."""
    return byte - 256 if byte > 127 else byte


@dataclass
class Court:
    """The twin: what stands at $C012 to $C01D, places of the ball in 256ths of a pixel."""

    paddle1: int
    paddle2: int
    x: int
    y: int
    speed_x: int
    speed_y: int
    points1: int
    points2: int
    rally: int
    wait: int

    def frame(self, pads, rng):
        """One frame of the game with the buttons of both, `rng` being what chance holds in it."""
        self.paddle1 = moved(self.paddle1, pads[0])
        self.paddle2 = moved(self.paddle2, pads[1])
        if self.wait:
            self.wait -= 1
            return
        self.y += self.speed_y * 16
        if not 0 <= self.y < 115 * 256:
            self.y, self.speed_y = (0 if self.y < 0 else 114 * 256), -self.speed_y
        before, self.x = self.x >> 8, self.x + self.speed_x * 16
        pixel = self.x >> 8
        if not 0 <= pixel < 155:
            self.point(rng)
        elif self.speed_x < 0 and pixel < 14 <= before:
            self.met(self.paddle1, 14 * 256 + 8, rng)
        elif self.speed_x > 0 and before < 141 <= pixel:
            self.met(self.paddle2, 141 * 256 - 8, rng)

    def met(self, paddle, face, rng):
        """A return, if the paddle is where the ball is."""
        beside = (self.y >> 8) - paddle - 9
        if abs(beside) > 14:
            return
        self.x, self.rally = face, min(self.rally + 1, 255)
        self.speed_y = 3 * beside + 2 * (rng >> 8 & 15) - 15
        faster = min(abs(self.speed_x) + 2, 64)
        self.speed_x = faster if self.speed_x < 0 else -faster

    def point(self, rng):
        """For the other; the next ball goes to who missed."""
        right = self.speed_x > 0
        self.points1, self.points2 = self.points1 + right, self.points2 + (not right)
        self.x, self.speed_x = 77 * 256 + (0x88 if right else 0x78), 24 if right else -24
        self.y, self.speed_y = ((rng & 63) + 25) * 256, 2 * (rng >> 8 & 15) - 15
        self.rally, self.wait = 0, 32

    def seen_from_the_other_side(self):
        """The mirror image."""
        return replace(
            self,
            paddle1=self.paddle2,
            paddle2=self.paddle1,
            x=155 * 256 - self.x,
            speed_x=-self.speed_x,
            points1=self.points2,
            points2=self.points1,
        )


def moved(paddle, pad):
    """Two pixels up or down, between the walls."""
    return min(max(paddle + 2 * ((pad & DOWN != 0) - (pad & UP != 0)), 0), 96)


class Console:
    """A machine that has just begun a game."""

    def __init__(self, mode=0, frames=120):
        self.emulator = Emulator(VOLLEY.image.read_bytes())
        self.memory = self.emulator.memory
        self.emulator.tick(frames)
        self.press(START)
        self.memory[MODE] = mode
        self.press(0)

    def press(self, pad, other=0, frames=1, draw=False):
        self.emulator.hold(pad)
        self.memory[P2_PAD] = other
        self.emulator.tick(frames, draw)

    def put(self, values):
        for address, value in values.items():
            self.memory[address] = value

    @property
    def court(self):
        m = self.emulator.read(PADDLE1, 12)
        x, y = m[2] << 8 | m[10], m[3] << 8 | m[11]
        return Court(m[0], m[1], x, y, signed(m[4]), signed(m[5]), *m[6:10])


@pytest.fixture
def open_console():
    made = []

    def console(*args, **kwargs):
        made.append(Console(*args, **kwargs))
        return made[-1]

    yield console
    for each in made:
        each.emulator.close()


def follows(court, rng):
    """The pads of two players who go where the ball is, one step in three at random."""
    pads = []
    for paddle in (court.paddle1, court.paddle2):
        below = (court.y >> 8) - paddle - 9
        wanted = DOWN if below > 4 else UP if below < -4 else 0
        pads.append(int(rng.choice([wanted, wanted, UP, DOWN])))
    return pads


def test_a_match_goes_as_its_twin_says(open_console):
    console, rng = open_console(mode=1), np.random.default_rng(0)
    twin, longest, pads = console.court, 0, [0, 0]
    for frame in range(20_000):
        if frame % 4 == 0:
            pads = follows(twin, rng)
        console.press(*pads)
        twin.frame(pads, console.memory[RNG] | console.memory[RNG + 1] << 8)
        assert astuple(console.court) == astuple(twin), frame
        longest = max(longest, twin.rally)
        if console.memory[PHASE] == 2:
            break
    assert max(twin.points1, twin.points2) == 5
    assert min(twin.points1, twin.points2) > 0
    assert bytes(console.emulator.read(SCORE, 2)).hex() == f"{twin.points1:04}"
    assert longest > 3


def test_left_and_right_are_mirror_images_through_a_whole_match(open_console):
    left, right = open_console(mode=1), open_console(mode=1)
    left.put(LEFT_SERVE)
    right.put(RIGHT_SERVE)
    rng, pads = np.random.default_rng(1), [0, 0]
    for frame in range(20_000):
        assert left.court == right.court.seen_from_the_other_side(), frame
        assert left.memory[BALL_X] == 154 - right.memory[BALL_X]
        if left.memory[PHASE] == right.memory[PHASE] == 2:
            break
        if frame % 4 == 0:
            pads = follows(left.court, rng)
        left.press(*pads)
        right.press(*pads[::-1])
    assert left.memory[PHASE] == 2


def test_a_paddle_obeys_its_pad_in_the_next_frame_and_stays_between_the_walls(open_console):
    console = open_console(mode=1)
    console.press(UP, DOWN)
    assert console.emulator.read(PADDLE1, 2) == [46, 50]
    console.press(0, DOWN)
    assert console.emulator.read(PADDLE1, 2) == [46, 52]
    seen = set()
    for pad in (UP, DOWN) * 2:
        for _ in range(60):
            console.press(pad, UP | DOWN ^ pad)
            seen |= set(console.emulator.read(PADDLE1, 2))
        assert console.memory[PADDLE1] == (0 if pad == UP else 96)
    assert seen == set(range(0, 98, 2))
    console.memory[MODE] = 0
    console.put(LEFT_SERVE)
    before = console.memory[PADDLE2]
    console.press(0, UP, 20)
    assert console.memory[PADDLE2] == before  # the computer's, which looks at balls that come


def test_a_missed_ball_is_a_point_and_five_end_the_game(open_console):
    console = open_console(mode=1)
    console.put(LEFT_SERVE)
    for points in range(1, 6):
        console.put({PADDLE1: 0, BALL_Y: 100, SPEED_Y: 0})
        while console.memory[WAIT] == 0 or console.memory[BALL_Y] == 100:
            console.press(0)
        assert console.emulator.read(POINTS1, 3) == [0, points, 0]
        assert signed(console.memory[SPEED_X]) == -24  # to who missed
        assert console.memory[PHASE] == (2 if points == 5 else 1)
    still = console.court
    console.press(UP, DOWN, 40)
    assert console.court == still
    console.press(START)
    assert (console.memory[PHASE], console.memory[MODE]) == (1, 1)
    assert console.emulator.read(POINTS1, 2) == [0, 0]


def test_a_return_is_faster_within_a_bound_and_steeper_off_the_middle(open_console):
    console = open_console(mode=1)
    slopes, speeds, rallies = {}, set(), set()
    for beside in range(-16, 17):
        paddle = 50 - 9 - beside
        console.put({**LEFT_SERVE, WAIT: 0, BALL_X: 15, BALL_Y: 50, SPEED_Y: 0})
        console.put({PADDLE1: paddle, RALLY: 254 + (beside & 1), SPEED_X: 256 - 63 + abs(beside)})
        console.press(0, frames=2)
        if (faster := signed(console.memory[SPEED_X])) > 0:
            slopes[beside] = signed(console.memory[SPEED_Y])
            speeds.add((abs(beside), faster))
            rallies.add(console.memory[RALLY])
    assert list(slopes) == list(range(-14, 15))
    assert all(abs(slope - 3 * beside) <= 15 for beside, slope in slopes.items())
    assert speeds == {(beside, min(65 - beside, 64)) for beside in range(15)}
    assert rallies == {255}


def against_the_computer(open_console, choose, games):
    """Points of player 1 and of the computer, of all games."""
    won = np.zeros(2, int)
    for game in range(games):
        console, rng = open_console(frames=120 + 7 * game), np.random.default_rng(game)
        while console.memory[PHASE] == 1:
            console.press(choose(console.court, rng), frames=4)
        points = console.emulator.read(POINTS1, 2)
        won += (points[0] > points[1], points[1] > points[0])
    return won.tolist()


def test_the_computer_beats_random_play(open_console):
    won = against_the_computer(open_console, lambda c, rng: (0, UP, DOWN)[rng.integers(3)], 5)
    assert won[1] >= 4


def test_who_follows_the_ball_beats_the_computer(open_console):
    def follow(court, rng):
        below = (court.y >> 8) - court.paddle1 - 9
        return DOWN if below > 4 else UP if below < -4 else 0

    assert against_the_computer(open_console, follow, 3)[0] >= 2


def test_the_picture_shows_paddles_ball_and_both_scores_where_they_are(open_console):
    console = open_console(mode=1)
    console.press(UP, DOWN, 10)
    console.put({POINTS1: 1, POINTS2: 3, WAIT: 200, BALL_Y: 90})
    console.press(0, frames=2)
    console.press(0, draw=True)
    dark = console.emulator.screen[18:138, :, 0] < 100
    paddles = np.zeros((120, 2), bool)
    paddles[console.memory[PADDLE1] :][:24, 0] = paddles[console.memory[PADDLE2] :][:24, 1] = True
    np.testing.assert_array_equal(dark[:, [9, 150]], paddles)
    np.testing.assert_array_equal(dark[:, 8:14], dark[::-1, 151:145:-1])
    ball = dark[90:96, 77:83]
    assert ball.sum() > 20
    assert not dark[84:90, 82].any()
    light = console.emulator.screen[34:74, :, 0] == 170
    left, right = (light[4::8, x : x + 24][:, 4::8].astype(int).tolist() for x in (32, 104))
    assert left == [[0, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0], [1, 1, 1]]
    assert right == [[1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1]]


def test_the_profile_knows_the_contract():
    memory = load_profile("volley").memory
    assert memory["p1_y"].addr == PADDLE1
    assert memory["ball_x"].addr == BALL_X
    assert memory["speed_x"].addr == SPEED_X
    assert memory["p2_points"].addr == POINTS2
