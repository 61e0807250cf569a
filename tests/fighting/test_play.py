"""Playing by hand, without hands: keys, commands, a policy as the opponent, the window."""

import numpy as np
import pytest

from fighting import duel, play
from fighting.opponents import masher
from fighting.replay import Replay


@pytest.fixture
def session(booted):
    return play.Session(booted)


def fight_on(session, frames, held=frozenset()):
    for _ in range(frames):
        session.frame(set(held))


def test_keys_move_player_one(session):
    fight_on(session, 50)
    place = session.emulator.memory[duel.FIGHTERS[0] + duel.X]
    fight_on(session, 10, {"right"})
    assert session.emulator.memory[duel.FIGHTERS[0] + duel.X] > place


def test_a_key_of_the_second_half_calls_a_second_player(session):
    session.press("j")
    assert session.settings.mode == duel.HOST_HOST
    fight_on(session, 50)
    place = session.emulator.memory[duel.FIGHTERS[1] + duel.X]
    fight_on(session, 10, {"j"})
    assert session.emulator.memory[duel.FIGHTERS[1] + duel.X] < place


def test_commands_restart_choose_the_level_and_freeze(session):
    session.press("6")
    assert session.emulator.memory[duel.LEVEL] == 6
    session.press("f")
    before = session.emulator.pyboy.frame_count
    fight_on(session, 5)
    assert session.emulator.pyboy.frame_count == before
    session.press("f")
    session.press("r")
    assert session.emulator.memory[duel.STATE + duel.PHASE] == duel.INTRO


def test_what_was_played_is_repeated_by_its_replay(session, tmp_path):
    fight_on(session, 120, {"right"})
    fight_on(session, 60, {"a"})
    wanted = session.emulator.read(0xC100, 0x26)
    session.replay.save(tmp_path / "mine.replay")
    replay = Replay.load(tmp_path / "mine.replay")
    assert list(replay.play(session.emulator))[-1] == 179
    assert session.emulator.read(0xC100, 0x26) == wanted


def test_a_player_in_the_second_seat_walks_up_and_hits(booted):
    session = play.Session(booted, rival=masher)
    fight_on(session, 400)
    assert session.emulator.memory[duel.FIGHTERS[0] + duel.HP] < 112


def test_the_window_shows_frames_and_leaves(session, monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = []
    flip = pygame.display.flip

    def remember():
        shown.append(pygame.surfarray.array3d(pygame.display.get_surface()).copy())
        flip()

    monkeypatch.setattr(pygame.display, "flip", remember)
    play.window(session, scale=2, frames=3)
    assert [picture.shape for picture in shown] == [(320, 288, 3)] * 3
    small = shown[-1][::2, ::2].swapaxes(0, 1)
    np.testing.assert_array_equal(small, session.emulator.screen[..., :3])
