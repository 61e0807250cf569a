"""Playing by hand, without hands: keys, commands, a policy as the opponent, the window."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fighting.machine import duel
from fighting.opponents.scripts import masher
from fighting.rom import DUEL, ROM_PATH, VOLLEY
from fighting.tools import by_hand
from fighting.tools.play import play
from fighting.tools.record import record
from fighting.tools.replay import CartridgeReplay, Replay, ReplayError
from frugal_rl.errors import ConfigError, DataError
from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.compose import compose_run
from frugal_rl.run.play import PlayOptions, Probe, Window


@pytest.fixture
def session(booted):
    return by_hand.Session(booted)


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
    session = by_hand.Session(booted, rival=masher)
    fight_on(session, 400)
    assert session.emulator.memory[duel.FIGHTERS[0] + duel.HP] < 112


@pytest.fixture
def no_screen(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield pygame
    pygame.display.quit()


def played(overrides=(), **options):
    run = compose_run(["env=fighting", "tracking=disabled", *overrides])
    return list(play(run, PlayOptions(**options)))


def test_the_window_shows_frames_and_leaves(session, monkeypatch, no_screen):
    shown = []
    flip = no_screen.display.flip

    def remember():
        shown.append(no_screen.surfarray.array3d(no_screen.display.get_surface()).copy())
        flip()

    monkeypatch.setattr(no_screen.display, "flip", remember)
    window = Window("Duel", (144, 160, 3), 2)
    assert list(by_hand.shown(session, window, 3)) == [0, 1, 2]
    window.close()
    assert [picture.shape for picture in shown] == [(320, 288, 3)] * 3
    small = shown[-1][::2, ::2].swapaxes(0, 1)
    np.testing.assert_array_equal(small, session.emulator.screen[..., :3])


def test_what_is_played_by_hand_is_kept_and_filmed(tmp_path, no_screen):
    film, folder = tmp_path / "mine.gif", tmp_path / "mine"
    lines = played(frames=24, every=4, video=str(film), record=str(folder))
    assert lines == [f"Replay: {folder / 'duel_1.replay'}", f"Film: {film} (6 pictures)"]
    assert len(Replay.load(folder / "duel_1.replay").frames) == 2 * 24
    with Image.open(film) as gif:
        assert 2 <= gif.n_frames <= 6  # equal pictures are joined


@pytest.mark.parametrize("name", ["fight.txt", "."])
def test_a_film_that_is_no_film_is_refused_before_anything_is_played(tmp_path, name):
    with pytest.raises(DataError, match=r"ends in .*; use one of \.mp4, \.gif"):
        played(video=str(tmp_path / name))


@pytest.mark.parametrize("option", [{"solver": True}, {"deterministic": False}, {"crop": False}])
def test_what_changes_nothing_on_a_game_boy_is_refused(option):
    with pytest.raises(
        ConfigError, match=f"{next(iter(option))}=.* changes nothing with env=fighting"
    ):
        list(play(compose_run(["env=fighting"]), PlayOptions(**option)))


def test_probing_finds_the_health_of_both_fighters_and_the_clock():
    text = "\n".join(played(probe=Probe.random, frames=1400))
    assert "p1_hp: {addr: 0xC100, max: 112" in text
    assert "p2_hp: {addr: 0xC200, max: 112" in text
    assert "timer: {addr: 0xC025, max: 6" in text
    assert "status: guess" in text


def recorded(env, **options):
    return record(compose_run([f"env={env}", "tracking=disabled"]), RecordOptions(**options))


def test_a_match_that_was_kept_is_verified_filmed_and_shown(tmp_path, no_screen, capsys):
    played(frames=40, record=str(tmp_path))
    path = tmp_path / "duel_1.replay"
    assert recorded("fighting", verify=str(tmp_path)) == 0
    assert recorded("fighting", replay=str(path), video=str(tmp_path / "a.gif"), every=4) == 0
    assert recorded("fighting", replay=str(path)) == 0
    words = capsys.readouterr().out
    assert "duel_1.replay: 40 frames, ends as it did" in words
    assert "(10 pictures)" in words
    changed = Replay.load(path)
    changed.frames[0::2] = bytes([duel.RIGHT]) * 40
    changed.settings = replace(changed.settings, flags=duel.NO_INTRO)
    changed.save(path)
    assert recorded("fighting", verify=str(path)) == 1
    assert "ENDS OTHERWISE" in capsys.readouterr().out


def test_a_cartridge_of_ones_own_is_played_on_its_joypad_and_kept(tmp_path, no_screen, capsys):
    run = compose_run(["env=fighting_game_boy", "tracking=disabled"])
    film, options = tmp_path / "a.gif", {"frames": 30, "record": str(tmp_path), "every": 3}
    lines = list(play(run, PlayOptions(video=str(film), **options)))
    path = tmp_path / "duel_1.replay"
    assert lines == [f"Replay: {path}", f"Film: {film} (10 pictures)"]
    assert recorded("fighting_game_boy", verify=str(tmp_path)) == 0
    assert "30 frames, ends as it did" in capsys.readouterr().out
    replay = CartridgeReplay.load(path, ROM_PATH.read_bytes())
    replay.frames += bytes(60)
    emulator = replay.opened()
    assert list(replay.play(emulator))[-1] == 89
    assert replay.outcome(emulator) != replay.end
    emulator.close()


def test_a_rival_sits_at_the_second_pad_and_is_kept_in_the_replay(tmp_path, no_screen, capsys):
    words = ["env=fighting_game_boy", "env.profile=volley", "env.opponent=random"]
    run = compose_run([*words, "env.actions=combos", "tracking=disabled"])
    list(play(run, PlayOptions(frames=240, record=str(tmp_path))))
    path = tmp_path / "volley_1.replay"
    assert recorded("fighting_game_boy", verify=str(path)) == 0
    assert "240 frames, ends as it did" in capsys.readouterr().out
    replay = CartridgeReplay.load(path, VOLLEY.image.read_bytes())
    first, second = replay.frames[::2], replay.frames[1::2]
    assert replay.second == 0xC010
    assert set(first) == {0}
    assert set(second) == {0, duel.UP, duel.DOWN}
    emulator = replay.opened()
    paddles = {emulator.memory[0xC013] for _ in replay.play(emulator)}
    assert len(paddles) > 10  # the game obeys the second pad
    emulator.close()
    whole = path.read_bytes()
    for wrong, words in (
        (whole[:-1], "ends within a frame"),
        (whole.replace(b'"second": 49168', b'"second": 9'), "its second pad, 9, lies outside"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(ReplayError, match=words):
            CartridgeReplay.load(path, VOLLEY.image.read_bytes())


def test_replays_that_do_not_fit_are_refused(tmp_path, no_screen):
    run = compose_run(["env=fighting_game_boy", "tracking=disabled"])
    list(play(run, PlayOptions(frames=3, record=str(tmp_path))))
    path = tmp_path / "duel_1.replay"
    rom = ROM_PATH.read_bytes()
    ours = DUEL.hash.read_text()[:40]
    with pytest.raises(ReplayError, match=f"made on the cartridge {ours}.* Give that cartridge"):
        CartridgeReplay.load(path, rom[:-1] + b"x")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ReplayError, match="is truncated: its first state"):
        CartridgeReplay.load(path, rom)
    with pytest.raises(ConfigError, match="dataset= is not for env=fighting"):
        recorded("fighting", dataset="x.npz")
    with pytest.raises(ConfigError, match="Type verify=FOLDER, or replay=FILE"):
        recorded("fighting")
