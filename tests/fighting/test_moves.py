"""Frame data, blocking, throws, waves and combos: what the table promises, the cartridge does."""

import pytest

from fighting.machine import duel
from fighting.machine.duel import DOWN, LEFT, RIGHT, UP, A, B

# move: buttons, startup, active, recovery, damage, chip, hit stun, block stun, push hit, push block
GROUND = {
    1: ([(A, 1)], 4, 3, 7, 5, 0, 12, 8, 6, 8),
    2: ([(B, 1)], 9, 4, 16, 12, 1, 18, 12, 10, 10),
    3: ([(DOWN, 1), (DOWN | A, 1)], 5, 3, 8, 4, 0, 12, 8, 6, 8),
    4: ([(DOWN, 1), (DOWN | B, 1)], 10, 4, 20, 10, 1, 40, 12, 8, 10),
}
WAVE = [(DOWN, 3), (RIGHT, 3), (RIGHT | A, 1)]
RISING = [(RIGHT, 2), (DOWN, 2), (RIGHT | B, 1)]
LOW = (3, 4)


def begin(match, move, steps):
    """Presses until the move has begun; the last frame played is the move's first."""
    match.script(steps[:-1])
    buttons, _ = steps[-1]
    match.play(buttons)
    assert match.fighter(0, duel.MOVE) == move
    assert match.fighter(0, duel.STATE_T) == 0


@pytest.mark.parametrize("move", GROUND)
def test_a_ground_move_hits_in_its_first_active_frame_for_its_damage(match, move):
    steps, startup, _, _, damage, _, stun, _, push, _ = GROUND[move]
    fight = match()
    begin(fight, move, steps)
    fight.play(frames=startup - 1)
    assert fight.fighter(1, duel.HP) == 112
    fight.play()  # the frame after `startup` frames: the first active one
    assert fight.fighter(1, duel.HP) == 112 - damage
    assert fight.fighter(1, duel.STUN) == stun
    assert fight.fighter(1, duel.F_STATE) == (8 if move == 4 else 6)
    before = fight.place(1)
    fight.play(frames=40)
    assert fight.place(1) - before == push * 16
    assert fight.fighter(0, duel.LANDED) == 1
    assert fight.fighter(0, duel.DEALT) == damage


@pytest.mark.parametrize("move", GROUND)
def test_a_blocked_move_takes_chip_stun_and_push(match, move):
    steps, startup, _, _, _, chip, _, stun, _, push = GROUND[move]
    fight = match(gap=24)
    away = RIGHT | DOWN if move in LOW else RIGHT
    begin(fight, move, steps)
    fight.play(frames=startup - 2)
    fight.until(lambda: fight.fighter(1, duel.F_STATE) == 7, second=away, limit=startup + 1)
    assert fight.fighter(1, duel.HP) == 112 - chip
    assert fight.fighter(1, duel.STUN) == stun
    assert fight.fighter(1, duel.BLOCKED) == 1
    before = fight.place(1)
    fight.play(frames=30)
    assert fight.place(1) - before == push * 16


@pytest.mark.parametrize("move", GROUND)
def test_a_missed_ground_move_lasts_startup_active_and_recovery(match, move):
    steps, startup, active, recovery, *_ = GROUND[move]
    fight = match(gap=120)
    begin(fight, move, steps)
    frames = 1
    while True:
        fight.play()
        if fight.fighter(0, duel.F_STATE) != 5:
            break
        frames += 1
    assert frames == startup + active + recovery


@pytest.mark.parametrize("move", GROUND)
def test_a_ground_move_stays_active_for_its_active_frames(match, move):
    """The defender's body enters the box late; only in active frames does it hit."""
    steps, startup, active, *_ = GROUND[move]
    for late in range(-1, active + 2):
        fight = match(gap=100)
        begin(fight, move, steps)
        fight.play(frames=startup - 1 + late)
        fight.emulator.memory[duel.FIGHTERS[1] + duel.X] = fight.fighter(0, duel.X) + 20
        fight.play()
        hit = fight.fighter(1, duel.HP) < 112
        assert hit == (0 <= late < active), late


def test_stun_ends_after_its_frames_and_hit_stop_freezes_both(match):
    fight = match()
    fight.play(A)
    fight.until(lambda: fight.fighter(1, duel.STUN) == 12)
    assert fight.state(duel.HITSTOP) == 4
    frozen = fight.fighter(0, duel.STATE_T)
    fight.play(frames=4)
    assert fight.fighter(0, duel.STATE_T) == frozen
    assert fight.fighter(1, duel.STUN) == 12
    fight.play(frames=12)
    assert fight.fighter(1, duel.F_STATE) == 6
    fight.play()
    assert fight.fighter(1, duel.F_STATE) == 0


@pytest.mark.parametrize(
    ("button", "move", "damage", "stun", "landing"),
    [
        (A, 5, 6, 14, 3),
        (B, 6, 11, 18, 5),
    ],
)
def test_air_attacks_hit_from_above_and_recover_on_landing(
    match, button, move, damage, stun, landing
):
    fight = match(gap=40)
    fight.play(UP | RIGHT, frames=3)
    fight.play(RIGHT, frames=18)
    fight.play(button)
    assert fight.fighter(0, duel.MOVE) == move
    fight.until(lambda: fight.fighter(1, duel.HP) < 112, limit=20)
    assert fight.fighter(1, duel.HP) == 112 - damage
    assert fight.fighter(1, duel.STUN) == stun
    fight.until(lambda: fight.height(0) == 0 and fight.state(duel.HITSTOP) == 0)
    frames = fight.until(lambda: fight.fighter(0, duel.F_STATE) != 5, limit=30)
    assert frames == landing + 1


def test_a_jump_has_three_frames_on_the_floor_and_36_in_the_air_with_apex_40(match):
    fight = match()
    fight.play(UP)
    assert fight.fighter(0, duel.F_STATE) == 4
    heights = []
    while fight.fighter(0, duel.F_STATE) == 4:
        fight.play()
        heights.append(fight.height(0))
    assert heights[:2] == [0, 0]
    in_the_air = heights[2:]
    assert in_the_air.index(0) == 35
    assert max(in_the_air) // 4 == 40


def test_walking_goes_one_and_a_quarter_forward_and_one_back(match):
    fight = match(gap=80)
    start = fight.place(0)
    fight.play(RIGHT, frames=8)
    assert fight.place(0) - start == 8 * 20
    fight.play(LEFT, frames=8)
    assert fight.place(0) - start == 8 * 20 - 8 * 16


def test_a_wave_flies_two_pixels_a_frame_and_hits(match):
    fight = match(gap=80)
    fight.script(WAVE)
    assert fight.fighter(0, duel.MOVE) == 7
    fight.play(frames=12)
    assert fight.fighter(0, duel.PROJECTILE) == 0
    fight.play()
    assert fight.fighter(0, duel.PROJECTILE) == 1
    place = fight.fighter(0, duel.PROJECTILE + 1)
    fight.play(frames=5)
    assert fight.fighter(0, duel.PROJECTILE + 1) == place + 10
    fight.until(lambda: fight.fighter(1, duel.HP) < 112)
    assert fight.fighter(1, duel.HP) == 104
    assert fight.fighter(1, duel.STUN) == 20
    assert fight.fighter(0, duel.PROJECTILE) == 0


def test_a_blocked_wave_takes_one_point_and_pushes_six(match):
    fight = match(gap=60)
    fight.script(WAVE)
    wave = duel.PROJECTILE + 1
    fight.until(lambda: fight.fighter(1, duel.X) - fight.fighter(0, wave) in range(20))
    fight.until(lambda: fight.fighter(1, duel.F_STATE) == 7, second=RIGHT)
    assert fight.fighter(1, duel.HP) == 111
    assert fight.fighter(1, duel.STUN) == 14
    before = fight.place(1)
    fight.play(frames=30)
    assert fight.place(1) - before == 6 * 16


def test_two_waves_that_meet_destroy_each_other(match):
    fight = match(gap=110)
    for first, second in ((DOWN, DOWN), (RIGHT, LEFT), (RIGHT | A, LEFT | A)):
        fight.play(first, second, frames=2)
    fight.play(frames=13)
    assert fight.fighter(0, duel.PROJECTILE) == fight.fighter(1, duel.PROJECTILE) == 1
    fight.play(frames=40)
    assert fight.fighter(0, duel.PROJECTILE) == fight.fighter(1, duel.PROJECTILE) == 0
    assert fight.fighter(0, duel.HP) == fight.fighter(1, duel.HP) == 112


def test_only_one_wave_at_a_time(match):
    fight = match(gap=120)
    fight.script(WAVE)
    fight.play(frames=47)
    assert fight.fighter(0, duel.PROJECTILE) == 1
    fight.script(WAVE)
    assert fight.fighter(0, duel.MOVE) == 1


def test_a_rising_strike_knocks_down_and_costs_28_frames_after_landing(match):
    fight = match(gap=20)
    fight.script(RISING)
    assert fight.fighter(0, duel.MOVE) == 8
    fight.play(frames=4)
    assert fight.fighter(1, duel.HP) == 112
    fight.play()
    assert fight.fighter(1, duel.HP) == 96
    assert fight.fighter(1, duel.F_STATE) == 8
    fight.play(frames=8)
    fight.until(lambda: fight.height(0) == 0)
    frames = fight.until(lambda: fight.fighter(0, duel.F_STATE) != 5)
    assert frames == 28 + 1


def test_a_rising_strike_cannot_be_hit_in_its_first_seven_frames(match):
    for lead in range(12):
        fight = match(gap=20)
        for first in (RIGHT, RIGHT, DOWN, DOWN):
            fight.play(first)
        # The other one's light attack becomes active `lead` frames into the strike.
        for frame in range(-4, 8):
            fight.play(RIGHT | B if frame == 0 else 0, A if frame == lead - 4 else 0)
        if lead < 5:
            assert fight.fighter(0, duel.HP) == 112, lead


@pytest.mark.parametrize(("held", "move"), [(8, 8), (15, 2)])
def test_a_direction_held_for_long_is_no_part_of_a_motion(match, held, move):
    """Who walks up after a duck strikes, he does not rise."""
    fight = match(gap=120)
    fight.script([(RIGHT, 20), (DOWN, 2), (RIGHT, held), (RIGHT | B, 1)])
    assert fight.fighter(0, duel.MOVE) == move


def test_a_throw_cannot_be_blocked_and_takes_14(match):
    fight = match(gap=24)
    fight.play(RIGHT, 0, frames=5)
    fight.play(RIGHT | B, LEFT)
    assert fight.fighter(0, duel.F_STATE) == 12
    fight.play(0, RIGHT, frames=3)
    assert fight.fighter(1, duel.HP) == 98
    assert fight.fighter(1, duel.F_STATE) == 13
    assert fight.fighter(1, duel.STUN) == 45
    assert fight.fighter(0, duel.THROWS) == 1
    rising = fight.until(lambda: fight.fighter(1, duel.F_STATE) == 9)
    assert rising == 45 + 7 + 1  # stun, hit stop, first frame of rising


def test_a_throw_out_of_reach_is_a_heavy_attack(match):
    fight = match(gap=40)
    fight.play(RIGHT | B)
    assert fight.fighter(0, duel.MOVE) == 2


def test_rising_gives_twelve_invulnerable_frames(match):
    fight = match()
    fight.script(GROUND[4][0])
    fight.until(lambda: fight.fighter(1, duel.F_STATE) == 9)
    frames = 0
    while fight.fighter(1, duel.INVUL):
        assert fight.fighter(1, duel.F_STATE) == 9
        fight.play()
        frames += 1
    assert frames == 12


# attack: what it does, and whether it is stopped standing, crouching, in the air.
HEIGHTS = {
    "mid": (2, (True, True, False)),
    "low": (4, (False, True, False)),
    "over": (6, (True, False, False)),
}


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("stance", [0, 1, 2])
def test_blocking_by_height_and_stance(match, height, stance):
    _, stopped = HEIGHTS[height]
    fight = match(gap=50 if height == "over" else 24)
    guard = (RIGHT, RIGHT | DOWN, RIGHT | UP)[stance]
    if height == "over":
        fight.play(UP | RIGHT, frames=3)
        fight.play(RIGHT, 0, frames=17)
        fight.play(B, 0, frames=5)
    elif height == "low":
        fight.play(DOWN)
        fight.play(DOWN | B)
        fight.play(frames=6)
    else:
        fight.play(B, 0)
        fight.play(frames=5)
    for frame in range(40):
        held = guard if stance < 2 or frame < 2 else RIGHT
        fight.play(0, held)
        if stance == 2:
            fight.emulator.memory[duel.FIGHTERS[1] + duel.X] = fight.fighter(0, duel.X) + 18
        if fight.fighter(1, duel.F_STATE) in (6, 7, 8):
            break
    state = fight.fighter(1, duel.F_STATE)
    if stance == 2:
        assert state != 7
    else:
        assert state == (7 if stopped[stance] else (8 if height == "low" else 6))


def test_simultaneous_hits_trade(match):
    fight = match()
    fight.play(A, A)
    fight.play(frames=4)
    assert fight.fighter(0, duel.HP) == fight.fighter(1, duel.HP) == 112 - 7  # counter hits
    assert fight.fighter(0, duel.STUN) == fight.fighter(1, duel.STUN) == 12 + 4


def test_combo_hits_are_scaled_and_rounded_up(match):
    fight = match(gap=24, flags=duel.NO_INTRO | duel.SHORT_END | duel.NO_HITSTOP)
    memory = fight.emulator.memory
    taken = []
    for _ in range(6):
        before = fight.fighter(1, duel.HP)
        fight.play(A)
        fight.until(lambda before=before: fight.fighter(1, duel.HP) < before, limit=10)
        taken.append(before - fight.fighter(1, duel.HP))
        memory[duel.FIGHTERS[1] + duel.STUN] = 60
        memory[duel.FIGHTERS[0] + duel.X] = fight.fighter(1, duel.X) - 20
        fight.until(lambda: fight.fighter(0, duel.F_STATE) == 0, limit=20)
    assert taken == [5, 5, 4, 4, 3, 3]
    assert fight.fighter(1, duel.COMBO) == 6


def test_push_back_against_the_wall_moves_the_attacker(match):
    fight = match(gap=24)
    fight.emulator.memory[duel.FIGHTERS[0] + duel.X] = 120
    fight.emulator.memory[duel.FIGHTERS[1] + duel.X] = 146
    fight.play(B)
    fight.until(lambda: fight.fighter(1, duel.HP) < 112)
    fight.play(frames=30)
    assert fight.fighter(1, duel.X) == 148
    assert fight.place(0) == (120 - 8) * 16


def test_bodies_do_not_overlap(match):
    fight = match(gap=40)
    fight.play(RIGHT, LEFT, frames=40)
    assert fight.place(1) - fight.place(0) >= 16 * 16


def test_fighters_turn_after_changing_sides(match):
    fight = match(gap=24)
    fight.play(UP | RIGHT, frames=3)
    fight.play(frames=45)
    assert fight.place(0) > fight.place(1)
    assert (fight.fighter(0, duel.FACE), fight.fighter(1, duel.FACE)) == (1, 0)


def test_a_press_counts_up_to_three_frames_early(match):
    for early in range(6):
        fight = match(gap=120)
        fight.play(A)
        fight.play(frames=13 - early)
        fight.play(A)
        fight.play(frames=early)
        again = fight.fighter(0, duel.F_STATE) == 5
        assert again == (early <= 3), early


def test_opposite_directions_count_as_neither(match):
    fight = match(gap=80)
    fight.play(LEFT | RIGHT | UP | DOWN)
    assert fight.fighter(0, duel.F_STATE) == 0
    assert fight.fighter(0, duel.IN) == 0
