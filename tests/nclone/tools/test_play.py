"""Playing by keyboard without hands, and watching a policy without eyes."""

import re

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.invocation import installing
from frugal_rl.run.compose import compose_run
from frugal_rl.run.play import Keys, PlayOptions, Probe, Window, WindowError
from nclone.levels.bundled import bundled_level, winning_inputs
from nclone.replay.outcome import verify_all
from nclone.tools.play import WAIT_FRAMES, Session, play, shown

HELD = ({*()}, {"left"}, {"right"}, {"space"}, {"a", "up"}, {"d", "w"})


@pytest.fixture
def session(tmp_path):
    levels = [bundled_level(name) for name in ("walk", "mines")]
    return Session(levels, 0.25, tmp_path / "kept")


def win(session):
    for action in winning_inputs("walk"):
        session.frame(HELD[action])


def test_keys_are_the_actions_of_the_game(session):
    win(session)
    assert session.world.won[0]
    assert session.actions == winning_inputs("walk").tolist()


def test_a_finished_run_is_kept_and_reproduces_its_outcome(session, tmp_path):
    win(session)
    session.press("n")
    while not session.ended:
        session.frame({"right"})
    verdicts = verify_all(tmp_path / "kept")
    assert [v.path.name.rsplit("_", 1)[1] for v in verdicts] == ["lost.replay", "won.replay"]
    assert all(v.reproduced for v in verdicts)


def test_a_second_run_does_not_overwrite_the_first(session, tmp_path):
    for _ in range(2):
        win(session)
        session.press("r")
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_commands_restart_go_on_go_back_and_pause(session):
    session.frame({"right"})
    session.press("p")
    session.frame({"right"})
    assert len(session.actions) == 1
    session.press("p")
    session.press("r")
    assert (session.place, session.actions) == (0, [])
    for key, place in (("n", 1), ("n", 0), ("b", 1), ("b", 0)):
        session.press(key)
        assert session.place == place


def test_after_a_win_jump_leads_on_but_not_at_once(session):
    win(session)
    session.press("space")
    assert session.place == 0
    for _ in range(WAIT_FRAMES + 1):
        session.frame(set())
    session.press("space")
    assert session.place == 1


def test_the_caption_is_written_into_the_border():
    session = Session([bundled_level("walk")], 1.0)
    bare = session.view.draw(session.world)
    picture = session.picture()
    changed = np.flatnonzero((picture != bare).any(axis=(1, 2)))
    assert changed.size
    assert set(changed) <= {*range(24), *range(576, 600)}
    assert session.picture().shape == (600, 1056, 3)


@pytest.fixture
def screen(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    yield pygame
    pygame.display.quit()


def test_the_window_reads_keys_and_closes_on_escape(screen, session):
    window = Window("N++", session.picture().shape)
    post = screen.event.post

    def key(kind, name):
        post(screen.event.Event(kind, key=screen.key.key_code(name)))

    key(screen.KEYDOWN, "right")
    assert len(list(shown(session, window, 5))) == 5
    assert session.actions[1:] == [2, 2, 2, 2] or session.actions == [2] * 5
    key(screen.KEYUP, "right")
    key(screen.KEYDOWN, "n")
    list(shown(session, window, 2))
    assert session.place == 1
    key(screen.KEYDOWN, "escape")
    assert len(list(shown(session, window, 100))) == 1
    window.close()


def test_the_whole_command_plays_and_films_what_was_shown(screen, tmp_path):
    run = compose_run(["env=nclone", "env.levels=[walk]"])
    film = tmp_path / "mine.gif"
    said = list(play(run, PlayOptions(frames=6, scale=0.25, video=str(film), every=2)))
    assert said == [f"Film: {film} (3 pictures)"]


def test_without_pygame_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pygame", None)
    with pytest.raises(WindowError, match=rf"video=out\.mp4.*{re.escape(installing('play'))}"):
        Window("N++", (10, 10, 3))


@pytest.mark.parametrize("driver", ["nonsense", "offscreen"])
def test_without_a_screen_the_message_says_so(driver, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", driver)
    with pytest.raises(WindowError, match="No window can be opened"):
        Window("N++", (10, 10, 3))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"probe": Probe.random}, ConfigError, "Game Boy"),
        ({"video": "x.avi"}, DataError, r"ends in '\.avi'"),
    ],
)
def test_mistakes_are_refused_before_a_window_opens(options, error, words):
    run = compose_run(["env=nclone"])
    with pytest.raises(error, match=words):
        list(play(run, PlayOptions(**options)))


@pytest.mark.parametrize("wrong", [{"scale": 0.0}, {"every": 0}, {"episodes": -1}])
def test_impossible_options_are_refused(wrong):
    with pytest.raises(ConfigError):
        PlayOptions(**wrong)


def test_keys_start_empty():
    assert Keys() == Keys(set(), [], False)


def test_the_searcher_is_filmed_winning(tmp_path):
    run = compose_run(["env=nclone", "env.levels=[walk]"])
    film = tmp_path / "solver.gif"
    said = list(play(run, PlayOptions(solver=True, video=str(film), scale=0.25, every=16)))
    assert said[0].startswith("Film:")
    assert film.read_bytes()[:4] == b"GIF8"
