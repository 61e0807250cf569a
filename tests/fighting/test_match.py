"""Boot, commands, determinism, mirror symmetry, rounds."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from fighting.machine import duel
from fighting.machine.console import boot
from fighting.machine.duel import DOWN, LEFT, RIGHT, UP, A, B

QUICK = duel.NO_INTRO | duel.SHORT_END


def test_the_cartridge_reports_ready_within_80_frames_and_starts_a_match():
    emulator = boot()
    assert emulator.pyboy.frame_count <= 80
    emulator.tick(2)
    assert emulator.memory[duel.STATE + duel.PHASE] == duel.INTRO
    emulator.close()


def random_buttons(seed, frames):
    """Buttons held for a few frames at a time, as hands do."""
    generator = np.random.default_rng(seed)
    choices = [
        0,
        RIGHT,
        LEFT,
        DOWN,
        UP,
        A,
        B,
        RIGHT | A,
        RIGHT | B,
        DOWN | A,
        DOWN | B,
        UP | RIGHT,
        UP | LEFT,
        LEFT | B,
        DOWN | LEFT,
        DOWN | RIGHT,
    ]
    held = generator.choice(choices, size=frames)
    lengths = generator.integers(1, 6, size=frames)
    return np.repeat(held, lengths)[:frames]


@pytest.mark.parametrize("mode", range(5))
def test_logic_never_lags_in_2000_random_frames(match, mode):
    fight = match(mode=mode, level=7, level1=7, flags=QUICK | duel.RESTART, round_seconds=10)
    for first, second in zip(random_buttons(1, 2000), random_buttons(2, 2000), strict=True):
        fight.emulator.hold(int(first))
        fight.play(int(first), int(second))
    fight.emulator.hold(0)
    assert fight.state(duel.LAG) == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", range(5))
def test_logic_never_lags_in_10000_random_frames(match, mode):
    fight = match(mode=mode, level=7, level1=7, flags=QUICK | duel.RESTART, round_seconds=10)
    for first, second in zip(random_buttons(3, 10000), random_buttons(4, 10000), strict=True):
        fight.emulator.hold(int(first))
        fight.play(int(first), int(second))
    fight.emulator.hold(0)
    assert fight.state(duel.LAG) == 0


def test_a_new_match_is_obeyed_in_one_frame_from_every_phase(match):
    def begins(fight):
        duel.start_match(fight.emulator, duel.MatchSettings(mode=duel.HOST_HOST, seed=77))
        assert fight.state(duel.PHASE) == duel.FIGHT
        assert fight.state(duel.FRAME) == 0
        assert fight.state(duel.ROUND) == 1
        assert fight.state(duel.TIMER) == 60
        assert (fight.state(duel.WINS1), fight.state(duel.WINS2)) == (0, 0)
        assert (fight.fighter(0, duel.X), fight.fighter(1, duel.X)) == (48, 112)
        assert (fight.fighter(0, duel.HP), fight.fighter(1, duel.HP)) == (112, 112)
        assert fight.state(duel.RNG) == 77
        assert fight.emulator.memory[duel.COMMAND] == 0

    fight = match(flags=0)
    assert fight.state(duel.PHASE) == duel.INTRO
    begins(fight)
    begins(match())  # from FIGHT
    fight = match(flags=1, hp=(1, 112))
    fight.play(0, A)
    fight.until(lambda: fight.state(duel.PHASE) == duel.ROUND_OVER)
    begins(fight)
    fight = match(hp=(1, 112), wins_needed=1)
    fight.play(0, A)
    fight.until(lambda: fight.state(duel.PHASE) == duel.MATCH_OVER)
    begins(fight)
    fight.emulator.memory[duel.COMMAND] = duel.FREEZE
    fight.play(frames=2)
    assert fight.state(duel.PHASE) == duel.FROZEN
    begins(fight)


def test_freeze_stops_time_and_resume_goes_on(match):
    fight = match()
    fight.play(RIGHT, frames=5)
    fight.emulator.memory[duel.COMMAND] = duel.FREEZE
    fight.play()
    before = fight.emulator.read(0xC020, 22), fight.emulator.read(0xC100, 0x26)
    fight.play(RIGHT, LEFT, frames=20)
    assert (fight.emulator.read(0xC020, 22), fight.emulator.read(0xC100, 0x26)) == before
    fight.emulator.memory[duel.COMMAND] = duel.RESUME
    fight.play()
    assert fight.state(duel.PHASE) == duel.FIGHT
    assert fight.state(duel.FRAME) == before[0][0] + 1


def test_the_intro_lasts_45_frames(match):
    fight = match(flags=0)
    assert fight.until(lambda: fight.state(duel.PHASE) == duel.FIGHT) == 45


FINGERPRINT = """
import hashlib, sys
sys.path[:0] = {paths!r}
import numpy as np
from fighting.machine import duel
from fighting.machine.console import boot
emulator = boot()
duel.start_match(emulator, duel.MatchSettings(mode=4, level=6, level1=5, seed=9, flags=19))
digest = hashlib.sha256()
for frame in range({frames}):
    emulator.tick(1, frame % 7 == 0)
    digest.update(bytes(emulator.read(0xC000, 0x400)))
    if frame % 7 == 0:
        digest.update(emulator.screen.tobytes())
print(digest.hexdigest())
"""


def test_the_same_seed_gives_the_same_5000_frames_in_another_process():
    code = FINGERPRINT.format(paths=sys.path, frames=5000)
    prints = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert prints[0].stdout == prints[1].stdout
    assert len(prints[0].stdout.split()[-1]) == 64


def test_another_seed_gives_another_fight(match):
    def digest(seed):
        fight = match(mode=duel.CPU_CPU, level=5, level1=5, seed=seed)
        fight.play(frames=1500)
        return hashlib.sha256(bytes(fight.emulator.read(0xC100, 0x200))).hexdigest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def mirrored(buttons):
    """The same hands on the other side of the mirror."""
    swapped = buttons & ~(RIGHT | LEFT)
    return swapped | (LEFT if buttons & RIGHT else 0) | (RIGHT if buttons & LEFT else 0)


FIELDS = [
    duel.HP,
    duel.Y,
    duel.VY,
    duel.F_STATE,
    duel.STATE_T,
    duel.MOVE,
    duel.HIT_DONE,
    duel.STUN,
    duel.BLOCK,
    duel.COMBO,
    duel.INVUL,
    duel.DEALT,
    duel.LANDED,
    duel.BLOCKED,
    duel.THROWS,
    duel.Y_SUB,
    duel.PROJECTILE,
]


def trace(fight, first, second, swap):
    """Both fighters frame by frame; with `swap` seen in the mirror."""
    rows = []
    for one, two in zip(first, second, strict=True):
        one, two = int(one), int(two)
        fight.play(*((mirrored(two), mirrored(one)) if swap else (one, two)))
        row = []
        for player in (1, 0) if swap else (0, 1):
            place, face = fight.place(player), fight.fighter(player, duel.FACE)
            wave = fight.fighter(player, duel.PROJECTILE + 1)
            if not fight.fighter(player, duel.PROJECTILE):
                wave = 80
            row += [fight.fighter(player, field) for field in FIELDS]
            row += [2560 - place, 1 - face, 160 - wave] if swap else [place, face, wave]
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("seed", range(4))
def test_swapped_fighters_give_the_mirrored_fight(match, seed):
    first, second = random_buttons(10 + seed, 1500), random_buttons(20 + seed, 1500)
    settings = {"gap": 40, "flags": QUICK | duel.RESTART}
    plain = trace(match(**settings), first, second, swap=False)
    mirror = trace(match(**settings), first, second, swap=True)
    np.testing.assert_array_equal(plain, mirror)
    assert (plain[:, 0] < 112).any()


def test_a_knock_out_ends_the_round_and_counts(match):
    fight = match(hp=(112, 5))
    kos = fight.state(duel.KOS1)
    fight.play(A)
    fight.until(lambda: fight.state(duel.PHASE) == duel.ROUND_OVER)
    assert fight.fighter(1, duel.HP) == 0
    assert (fight.state(duel.RESULT), fight.state(duel.REASON)) == (1, 1)
    assert fight.state(duel.WINS1) == 1
    assert fight.state(duel.KOS1) == (kos + 1) % 256
    assert fight.until(lambda: fight.state(duel.PHASE) == duel.FIGHT) == 4
    assert fight.state(duel.ROUND) == 2
    assert fight.fighter(1, duel.HP) == 5


def test_a_long_round_end_lasts_60_frames_and_shows_winner_and_loser(match):
    fight = match(hp=(112, 5), flags=duel.NO_INTRO)
    fight.play(A)
    fight.until(lambda: fight.state(duel.PHASE) == duel.ROUND_OVER)
    fight.play(frames=59)
    assert fight.fighter(0, duel.F_STATE) == 10
    assert fight.fighter(1, duel.F_STATE) == 11
    assert fight.state(duel.PHASE) == duel.ROUND_OVER
    fight.play()
    assert fight.state(duel.PHASE) == duel.FIGHT


@pytest.mark.parametrize(("hp", "result"), [((50, 40), 1), ((40, 50), 2), ((50, 50), 3)])
def test_time_out_is_decided_by_health_after_60_frames_a_second(match, hp, result):
    fight = match(hp=hp, round_seconds=2)
    assert fight.until(lambda: fight.state(duel.PHASE) == duel.ROUND_OVER) == 120
    assert (fight.state(duel.RESULT), fight.state(duel.REASON)) == (result, 2)
    assert fight.state(duel.TIMER) == 0
    assert (fight.state(duel.WINS1), fight.state(duel.WINS2)) == (result == 1, result == 2)


def test_a_double_knock_out_gives_nobody_a_win(match):
    fight = match(hp=(5, 5))
    fight.play(A, A)
    fight.until(lambda: fight.state(duel.PHASE) == duel.ROUND_OVER)
    assert (fight.state(duel.RESULT), fight.state(duel.REASON)) == (3, 3)
    assert (fight.state(duel.WINS1), fight.state(duel.WINS2)) == (0, 0)


def test_after_five_rounds_the_match_ends_as_a_draw(match):
    fight = match(round_seconds=1, wins_needed=3)
    fight.until(lambda: fight.state(duel.PHASE) == duel.MATCH_OVER, limit=400)
    assert fight.state(duel.ROUND) == 5
    assert fight.state(duel.RESULT) == 3


def test_a_match_ends_when_the_wins_are_there_and_waits(match):
    fight = match(hp=(112, 5), wins_needed=2)
    for _ in range(2):
        fight.play(A)
        fight.until(lambda: fight.state(duel.PHASE) != duel.FIGHT)
        fight.until(lambda: fight.state(duel.PHASE) != duel.ROUND_OVER)
    assert fight.state(duel.PHASE) == duel.MATCH_OVER
    assert fight.state(duel.WINS1) == 2
    fight.play(A, B, frames=100)
    assert fight.state(duel.PHASE) == duel.MATCH_OVER


def test_chip_damage_cannot_kill(match):
    fight = match(hp=(112, 2), gap=24)
    for _ in range(3):
        fight.play(B)
        fight.play(frames=6)
        fight.play(0, RIGHT, frames=40)
        fight.play(RIGHT, 0, frames=30)
    assert fight.fighter(1, duel.BLOCKED) >= 2
    assert fight.fighter(1, duel.HP) == 1
    assert fight.state(duel.PHASE) == duel.FIGHT


def test_the_bar_follows_health_by_one_a_frame(match):
    fight = match()
    fight.play(A)
    fight.until(lambda: fight.fighter(1, duel.HP) == 107)
    shown = [fight.fighter(1, duel.HP_SHOWN)]
    for _ in range(6):
        fight.play()
        shown.append(fight.fighter(1, duel.HP_SHOWN))
    assert shown == [111, 110, 109, 108, 107, 107, 107]


def test_the_mailbox_is_clamped(match):
    fight = match(hp=(200, 0), round_seconds=0, gap=5, wins_needed=9)
    assert (fight.fighter(0, duel.HP), fight.fighter(1, duel.HP)) == (112, 1)
    assert fight.state(duel.TIMER) == 1
    assert fight.fighter(1, duel.X) - fight.fighter(0, duel.X) == 24
    assert match(round_seconds=200, gap=200).state(duel.TIMER) == 99


def test_a_stopped_timer_does_not_run(match):
    fight = match(flags=QUICK | duel.NO_TIMER, round_seconds=1)
    fight.play(frames=200)
    assert fight.state(duel.PHASE) == duel.FIGHT
