"""The cartridge's logic as machine code does what the emulator does with the cartridge."""

import shutil

import numpy as np
import pytest

from fighting.machine import duel
from fighting.rom import DUEL, logic, native
from frugal_rl.errors import DataError

SEEN = [*range(0x20, 0x40), *range(0x100, 0x133), *range(0x200, 0x234)]
QUEUED = 0x42


@pytest.fixture(scope="module")
def frame():
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return logic.library().frame


@pytest.mark.parametrize("mode", [duel.HOST_HOST, duel.HOST_CPU, duel.CPU_CPU])
def test_a_frame_of_machine_code_leaves_what_the_emulator_leaves(booted, frame, mode):
    rom = np.frombuffer(DUEL.image.read_bytes(), np.uint8).copy()
    settings = duel.MatchSettings(mode=mode, level=7, level1=4, seed=5, flags=19, gap=40)
    duel.start_match(booted, settings)
    ram = np.array(booted.read(0xC000, logic.WORK_RAM), np.uint8)
    hands, different = np.random.default_rng(mode), 0
    for number in range(900):
        if number % 3 == 0:
            one, two = hands.choice([0, 1, 2, 16, 18, 32, 80, 129, 130, 160], 2)
        for address, buttons in ((duel.P1_IN, one), (duel.P2_IN, two)):
            booted.memory[address] = ram[address & 0x1FFF] = buttons
        booted.tick()
        frame(ram.ctypes.data, rom.ctypes.data)
        ram[QUEUED] = 0
        now = np.array(booted.read(0xC000, 0x234), np.uint8)
        np.testing.assert_array_equal(ram[SEEN], now[SEEN], err_msg=f"frame {number}")
        different += int(now[0x100] < 112)
    assert different > 100


def test_what_has_no_translation_is_refused():
    with pytest.raises(DataError, match=r"\$0000 halts the processor"):
        native.translated(bytes([0x76, 0, 0]), 0, frozenset())
    with pytest.raises(DataError, match=r"\$10 at \$0000 has no translation"):
        native.translated(bytes([0x10, 0, 0]), 0, frozenset())
