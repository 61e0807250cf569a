"""Duel's computer: it mixes, it gives up what loses, and nobody beats it by doing nothing."""

import pytest

from fighting.machine import duel
from fighting.rom import ROM_PATH
from fighting.rom.logic import address

ME, HE = duel.FIGHTERS
PLAN, SCORES = HE + 0x46, HE + 0x4C
PLANS, SITUATIONS, CHOICES, SCRIPTS = 5, 32, 8, 20


def against(match, level, **settings):
    return match(mode=duel.HOST_CPU, level=level, wins_needed=1, **settings)


@pytest.mark.parametrize("level", range(1, 8))
def test_no_level_loses_to_somebody_who_stands_still(match, level):
    for seed in (3, 40, 500):
        fight = against(match, level, seed=seed, gap=30 + 12 * level)
        fight.until(lambda fight=fight: fight.state(duel.PHASE) != duel.FIGHT, limit=3700)
        assert fight.state(duel.RESULT) == 2


def test_a_plan_that_loses_health_is_given_up_for_one_that_did_not(match):
    fight = against(match, 7, seed=8, gap=120)
    memory = fight.emulator.memory
    fight.until(lambda: memory[PLAN])
    tried = []
    for _ in range(4):
        before = memory[PLAN]
        tried.append(before)
        memory[HE] -= 20
        fight.until(lambda before=before: memory[PLAN] != before, limit=90)
    assert sorted(tried) == [1, 2, 3, 4]
    assert all(memory[SCORES + plan] > 127 for plan in range(4))  # negative: all have lost


def test_a_plan_that_gains_is_kept(match):
    fight = against(match, 7, seed=8, gap=120)
    memory = fight.emulator.memory
    fight.until(lambda: memory[PLAN])
    plan = memory[PLAN]
    for _ in range(6):
        memory[ME] -= 5
        fight.play(frames=60)
        assert memory[PLAN] == plan
    assert 0 < memory[SCORES + plan - 1] < 128


def test_the_same_start_with_other_seeds_is_played_differently(match):
    def hands(seed):
        fight = against(match, 7, seed=seed, gap=64)
        pressed = []
        for _ in range(90):
            fight.play()
            pressed.append(fight.fighter(1, duel.IN))
        return tuple(pressed)

    assert len({hands(seed) for seed in range(1, 41)}) >= 30
    assert hands(7) == hands(7)


def test_every_place_of_every_plan_names_a_script():
    rom = ROM_PATH.read_bytes()
    plans = rom[address("Plans") : address("Plans") + PLANS * SITUATIONS * CHOICES]
    assert max(plans) < SCRIPTS
    for free in range(16):  # where nothing forces an answer, the four plans have several
        rows = [256 * plan + CHOICES * free for plan in range(1, PLANS)]
        assert len({script for row in rows for script in plans[row : row + CHOICES]}) >= 2
