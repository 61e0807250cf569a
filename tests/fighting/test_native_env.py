"""Fights by the translated logic are the emulator's fights: rows, rewards, ends, statistics."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from fighting.choices import Actions, Emulation, Episode, Rival
from fighting.config import DuelConfig
from fighting.machine.emulator import StateError
from fighting.rom import logic
from fighting.spec import View
from fighting.vec_env import DuelVecEnv
from frugal_rl.errors import ConfigError, DataError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.vec_env import check_vec_env

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
SETTINGS = {
    "level 7, rounds": {"levels": (7,), "round_seconds": 4, "max_steps": 50},
    "matches, special moves, six frames": {
        "levels": (1, 4, 7),
        "episode": Episode.match,
        "actions": Actions.macros,
        "frame_skip": 6,
        "press_frames": 3,
        "round_seconds": 3,
        "sticky": 0.1,
    },
    "self-play, buttons held": {
        "opponent": Rival.self_play,
        "pool_share": 0.5,
        "frame_skip": 3,
        "press_frames": 0,
        "round_seconds": 2,
    },
    "a script, either side": {"opponent": Rival.turtle, "round_seconds": 3, "frame_skip": 2},
}


def batch(config, count=4):
    return DuelVecEnv(
        config, count, Encoding.choose(config.spec(), Storage.lossless), MemoryProfile()
    )


def played(config, steps):
    check_vec_env(
        lambda: batch(config),
        lambda: batch(replace(config, emulator=Emulation.native)),
        steps=steps,
    )


@needs_compiler
@pytest.mark.parametrize("name", SETTINGS)
def test_native_fights_are_the_emulators(name):
    played(DuelConfig(threads=1, **SETTINGS[name]), 150)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_native_fights_stay_the_emulators_for_long(name):
    played(DuelConfig(threads=1, **{**SETTINGS[name], "round_seconds": 60, "max_steps": 0}), 6000)


@needs_compiler
def test_native_fights_go_on_from_their_state():
    config = DuelConfig(emulator=Emulation.native, levels=(6,), round_seconds=2)
    env, other = batch(config), batch(config)
    rng = np.random.default_rng(0)
    env.reset(0)
    for _ in range(30):
        env.step(rng.integers(0, 16, 4))
    other.load(env.state())
    for _ in range(30):
        actions = rng.integers(0, 16, 4)
        a, b = env.step(actions), other.step(actions)
        np.testing.assert_array_equal(a.rows["signals"], b.rows["signals"])
        np.testing.assert_array_equal(a.reward, b.reward)


@needs_compiler
def test_a_state_of_the_emulator_is_refused():
    env = batch(DuelConfig(emulator=Emulation.native), 1)
    with pytest.raises(StateError, match=r"it is PyBoy's\. Choose env.emulator=pyboy"):
        env.game.emulators.load([bytes(40_000)])


@pytest.mark.parametrize("view", [View.gray, View.both])
def test_pictures_are_refused(view):
    with pytest.raises(ConfigError, match=r"which env.obs=\w+ shows: choose env.obs=ram, or"):
        DuelConfig(emulator=Emulation.native, obs=view)


def test_without_a_compiler_it_says_so_in_one_line(monkeypatch):
    logic.library.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(
        DataError, match=r"no compiler `cc` was found: install gcc, or choose env\."
    ) as told:
        batch(DuelConfig(emulator=Emulation.native), 1)
    assert "\n" not in str(told.value)
