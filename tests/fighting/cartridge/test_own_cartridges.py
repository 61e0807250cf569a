"""The small cartridges: rules and pictures of Hop and Stack, and what all profiles keep."""

import numpy as np
import pytest

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.game import CartridgeGame
from fighting.machine.emulator import BUTTONS, Emulator, StateError, sha1
from fighting.rom import HOP, ROAM, STACK, VOLLEY, Cartridge
from fighting.spec import View
from fighting.tools.address_search import search
from fighting.tools.joypad import opened
from fighting.tools.tried_out import judged, trial
from frugal_rl.memory.finding import Severity
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.env import check_env
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.serial import Serial

PHASE, SCORE, LIVES, SHOWN_AT = 0xC000, 0xC001, 0xC003, 0xC009
SCROLL, HEIGHT, EDGE, SINK, CARRIED, WORLD = 0xC010, 0xC011, 0xC013, 0xC015, 0xC016, 0xC100
SHAPE, COLUMN, ROW, WELL, HEIGHTS, PIECES = 0xC010, 0xC011, 0xC012, 0xC020, 0xC030, 0xC036
BOOT_FRAMES = 120
A, B, START, RIGHT, LEFT = (1 << BUTTONS.index(n) for n in ("a", "b", "start", "right", "left"))


class Console:
    """One machine that has just begun a game; `press` holds buttons for some frames."""

    def __init__(self, cartridge: Cartridge):
        self.emulator = Emulator(cartridge.image.read_bytes())
        self.memory = self.emulator.memory
        self.emulator.tick(BOOT_FRAMES)
        self.press(START)
        self.press(0)

    def press(self, buttons, frames=1, draw=False):
        self.emulator.hold(buttons)
        for _ in range(frames):
            self.emulator.tick(1, draw)

    @property
    def score(self):
        """Two bytes of decimal digits."""
        return int(bytes(self.emulator.read(SCORE, 2)).hex())

    def run_on(self):
        """One frame to the right, jumping where a gap begins."""
        m = self.memory
        near = m[EDGE] <= 14 and not m[HEIGHT] and not m[CARRIED]
        self.press(RIGHT | A if near else RIGHT)


@pytest.fixture(params=[HOP, STACK, ROAM, VOLLEY], ids=lambda c: c.name)
def console(request):
    made = Console(request.param)
    yield made
    made.emulator.close()


@pytest.fixture
def hop():
    made = Console(HOP)
    while made.memory[CARRIED] or made.memory[HEIGHT]:
        made.press(0)
    yield made
    made.emulator.close()


@pytest.fixture
def stack():
    made = Console(STACK)
    yield made
    made.emulator.close()


def test_pictures_are_ready_before_the_screen_is_drawn_and_a_game_waits_for_start(console):
    assert console.memory[PHASE] == 1
    lines = set()
    for frame in range(200):
        console.press((RIGHT | A, B, LEFT, 0)[frame % 4])
        lines.add(console.memory[SHOWN_AT])
    assert lines <= set(range(144, 154)), lines
    console.memory[PHASE] = 0
    console.press(RIGHT | A | B, 30)
    assert console.memory[PHASE] == 0


def test_a_runner_who_jumps_scores_a_point_for_each_gap(hop):
    over, gaps = 0, 0
    while hop.score < 12:
        hop.run_on()
        column = (hop.memory[SCROLL] + 44 & 255) >> 3
        gaps += over and not hop.memory[WORLD + column]
        over = hop.memory[WORLD + column]
        assert hop.score == gaps
    assert bytes(hop.emulator.read(SCORE, 2)) == b"\x00\x12"
    assert hop.memory[LIVES] == 3


def test_a_runner_who_never_jumps_falls_three_times_and_scores_nothing(hop):
    lives = [hop.memory[LIVES]]
    for _ in range(1200):
        hop.press(RIGHT)
        if hop.memory[LIVES] != lives[-1]:
            lives.append(hop.memory[LIVES])
    assert lives == [3, 2, 1, 0]
    assert (hop.memory[PHASE], hop.score) == (2, 0)
    hop.press(START)
    assert (hop.memory[PHASE], hop.memory[LIVES]) == (1, 3)


def test_going_back_to_a_state_saves_none(hop, monkeypatch):
    state, place = hop.emulator.save(), hop.memory[SCROLL]
    hop.emulator.load(state)
    monkeypatch.setattr(hop.emulator, "save", lambda: pytest.fail("it took three times the load"))
    hop.press(RIGHT, 10)
    assert hop.memory[SCROLL] != place
    hop.emulator.load(state)
    assert hop.memory[SCROLL] == place
    with pytest.raises(StateError, match="truncated"):
        hop.emulator.load(state[:-1])


def test_exploring_pays_each_place_of_hop_once():
    config = GameBoyConfig(profile="hop_places", obs=View.ram, warmup_noop_max=0)
    game = CartridgeGame(config, 2)
    game.seed([np.random.default_rng(n) for n in range(2)])
    game.begin(np.arange(2))
    paid = np.zeros(2)
    for _ in range(20):
        paid += game.advance(np.array([0, 1])).reward  # one stands, one runs 8 pixels a step
    assert paid[0] == 0
    assert 1.5 < paid[1] <= 2
    assert config.longest == 20_000
    parts = {p.name: p.ram_bytes for p in config.parts(2, None, MemoryProfile(), None)}
    assert parts["values seen"] == game.scene.maps.nbytes == 2 * 3 * 8192
    game.close()


def test_standing_still_costs_nothing_and_a_jump_comes_down_where_it_began(hop):
    before = hop.memory[SCROLL]
    heights = []
    hop.press(A)
    for _ in range(40):
        heights.append(hop.memory[HEIGHT])
        hop.press(A)  # held on: no second jump
    # A speed of 14 quarter pixels a frame, less by one in each.
    assert heights == [14 * n - n * (n - 1) // 2 for n in range(1, 29)] + [0] * 12
    assert (hop.memory[SCROLL], hop.memory[LIVES]) == (before, 3)


def test_the_ground_is_drawn_where_it_is(hop):
    while not hop.emulator.read(WORLD, 32).count(1) > 4:
        hop.run_on()
    hop.press(0, 40)  # down again, and the picture stands still
    hop.press(0, draw=True)
    drawn = hop.emulator.screen[110, :, 0] < 255
    columns = (np.arange(160) + hop.memory[SCROLL] & 255) >> 3
    gaps = np.array(hop.emulator.read(WORLD, 32))[columns] != 0
    behind = np.arange(160) != np.clip(np.arange(160), 40, 47)  # not where the runner may sink
    np.testing.assert_array_equal(drawn[behind], ~gaps[behind])
    assert gaps.any()


def halves(shape, column):
    """The rows of a piece: upper left, upper right, lower right, lower left from bit 0."""
    cells = [shape >> n & 1 for n in range(4)]
    return (cells[0] | cells[1] << 1) << column, (cells[3] | cells[2] << 1) << column


def dropped(well, shape, column, row):
    """Twelve rows after a piece fell from `row`, and how many of them were full."""
    upper, lower = halves(shape, column)
    rows = [*well, 0xFF, 0xFF]
    while not (rows[row + 1] & upper or rows[row + 2] & lower):
        row += 1
    rows[row] |= upper
    rows[row + 1] |= lower
    kept = [cells for cells in rows[:12] if cells != 0x3F]
    return [0] * (12 - len(kept)) + kept, 12 - len(kept)


def height(well, column):
    """Of the highest filled cell of a column."""
    return max((12 - row for row in range(12) if well[row] >> column & 1), default=0)


def test_stack_lays_pieces_as_its_twin_does(stack):
    rng = np.random.default_rng(0)
    points = 0
    for piece in range(60):
        for _ in range(4):
            stack.press(int(rng.choice([A, LEFT, RIGHT])))
            stack.press(0)
        shape, column = stack.memory[SHAPE], stack.memory[COLUMN]
        upper, lower = halves(shape, column)
        # Rows that are full but for the piece, and some that are not.
        bottom = [int(rng.integers(0x3F)), 0x3F & ~(upper | lower), 0x3F & ~(lower or upper)]
        well = [0] * 9 + bottom
        for row, cells in enumerate(well):
            stack.memory[WELL + row] = cells
        expected, full = dropped(well, shape, column, stack.memory[ROW])
        points += full
        stack.press(B)
        assert stack.emulator.read(WELL, 12) == expected, (piece, shape, column)
        assert stack.score == points
        assert stack.memory[PIECES] == piece + 1
        tall = [
            max([12 - r for r in range(12) if expected[r] >> c & 1], default=0) for c in range(6)
        ]
        assert stack.emulator.read(HEIGHTS, 6) == tall
        stack.press(0)
    assert points > 20


def test_a_piece_turns_moves_within_the_walls_and_falls_by_itself(stack):
    stack.memory[SHAPE] = 0b0111
    turns = []
    for _ in range(4):
        stack.press(A)
        turns.append(stack.memory[SHAPE])
        stack.press(0)
    assert turns == [0b1110, 0b1101, 0b1011, 0b0111]
    stack.press(LEFT, 4)
    assert stack.memory[COLUMN] == 1  # four frames are one column
    stack.press(LEFT, 40)
    assert stack.memory[COLUMN] == 0
    stack.press(RIGHT, 60)
    assert stack.memory[COLUMN] == 4
    row = stack.memory[ROW]
    stack.press(0, 24)
    assert stack.memory[ROW] == row + 1


def test_a_full_well_ends_the_game_and_the_picture_shows_its_cells(stack):
    for _ in range(40):
        stack.press(B)
        stack.press(0)
    assert stack.memory[PHASE] == 2
    stack.press(0, draw=True)
    filled = stack.emulator.screen[4 * 8 + 3 : 16 * 8 : 8, 7 * 8 + 3 : 13 * 8 : 8, 0] < 255
    cells = [[row >> c & 1 for c in range(6)] for row in stack.emulator.read(WELL, 12)]
    upper, lower = halves(stack.memory[SHAPE], stack.memory[COLUMN])
    for row, half in enumerate((upper, lower)):
        cells[row] = [cell | half >> c & 1 for c, cell in enumerate(cells[row])]
    np.testing.assert_array_equal(filled, np.array(cells) != 0)


@pytest.mark.parametrize(
    ("name", "obs"),
    [
        ("hop", View.ram),
        ("hop", View.half_size),
        ("stack", View.ram),
        ("stack", View.half_size),
        ("roam", View.ram),
    ],
)
def test_profiles_keep_the_contract_of_environments(name, obs):
    config = GameBoyConfig(profile=name, obs=obs, stack=2, threads=1)
    check_env(config, steps=25, gymnasium_checks=obs is View.ram)
    encoding = Encoding.choose(config.spec(), Storage.lossless, {})

    def made(vec):
        return lambda: config.make_vec(2, encoding, MemoryProfile(), vec, "train")

    check_vec_env(made(None), made(Serial()), steps=25)


@pytest.mark.parametrize("name", ["hop", "stack", "roam", "volley"])
def test_random_play_finds_nothing_missing_in_the_profiles(name):
    config = GameBoyConfig(profile=name, obs=View.ram)
    missing = [f for f in judged(config, trial(config)) if f.severity is not Severity.ok]
    assert not missing


def returns(choose, steps=220, machines=4):
    """What players of Hop are paid in all, `choose(features)` naming their combos."""
    game = CartridgeGame(GameBoyConfig(profile="hop", obs=View.ram, threads=1), machines)
    game.seed([np.random.default_rng(i) for i in range(machines)])
    game.begin(np.arange(machines))
    paid = np.zeros(machines)
    for _ in range(steps):
        told = game.advance(choose(game.observe()["features"]))
        paid += told.reward
        if over := np.flatnonzero(told.terminated | told.truncated).tolist():
            game.begin(np.array(over))
    game.close()
    return paid


def test_a_script_that_reads_the_features_of_hop_beats_random_play():
    rng = np.random.default_rng(0)
    script = returns(lambda f: np.where((f[:, 0] * 96 <= 14) & (f[:, 2] == 0), 2, 1))
    noise = returns(lambda f: rng.integers(4, size=len(f)))
    assert script.min() >= 15
    assert noise.max() < 5


@pytest.mark.parametrize(
    ("cartridge", "score", "end"),
    [
        (HOP, 0xC002, "lives_0 == 0 or not (phase == 1)"),
        pytest.param(STACK, PIECES, "not (phase == 1)", marks=pytest.mark.slow),
    ],
)
def test_the_probe_writes_a_profile_that_pays_and_plays_with_no_editing(
    cartridge, score, end, tmp_path
):
    profile, rom, emulator = opened(GameBoyConfig(profile=cartridge.name))
    lines = list(search(emulator, profile, folder=str(tmp_path), rom=sha1(rom)))
    assert sum("addr: 0xC002" in line for line in lines) == 1  # the points, found in both
    config = GameBoyConfig(
        profile=str(tmp_path / f"{cartridge.name}_found.yaml"),
        rom=str(cartridge.image),
        obs=View.ram,
        accept_guesses=True,
    )
    found = config.game
    assert found.memory["score_0"].addr == score
    assert found.goal.reward["score_0"].text == f"rise(score_0) / {found.memory['score_0'].max}"
    assert (found.goal.end and found.goal.end.text) == end
    assert found.combos == profile.combos
    missing = [f for f in judged(config, trial(config)) if f.severity is not Severity.ok]
    assert not missing
