"""The probe guided by marks: scripted games marked as by a person find the true addresses."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.reading import load_profile
from fighting.machine import duel
from fighting.machine.emulator import BUTTONS, Emulator, sha1
from fighting.rom import HOP, ROM_PATH, STACK, VOLLEY
from fighting.spec import View
from fighting.tools import joypad
from fighting.tools.joypad import opened
from fighting.tools.listening import heard
from fighting.tools.marks import Mark, Moment, read_marks, write_marks
from fighting.tools.play import play
from fighting.tools.replay import CartridgeReplay, Replay
from fighting.tools.tried_out import judged, trial
from frugal_rl.errors import ConfigError, DataError
from frugal_rl.memory.finding import Severity
from frugal_rl.run.compose import compose_plain, compose_run, options
from frugal_rl.run.play import Keys, PlayOptions, Probe, WindowError

FRAMES = 3000
A, B, START, RIGHT, LEFT, UP, DOWN = (
    1 << BUTTONS.index(n) for n in ("a", "b", "start", "right", "left", "up", "down")
)
SOONEST, LATEST, APART, QUIET = 10, 60, 25, 150
"""Frames after which somebody presses a key, between two presses, and of calm worth a press."""


def again(memory, frame):
    """Start, now and then, once a game is over."""
    return START * (memory[0xC000] == 2 and frame % 40 == 0)


def hop(memory, frame):
    """Runs and jumps; rests every fourth 150 frames, forgets to jump in each third 200."""
    if memory[0xC000] == 2 or frame // 150 % 4 == 3:
        return again(memory, frame)
    near = memory[0xC013] <= 14 and not memory[0xC011] and not memory[0xC016]
    return RIGHT | A if near and frame // 200 % 3 != 2 else RIGHT


def stack(memory, frame):
    """Moves over the two lowest columns and drops, four times a second."""
    if memory[0xC000] == 2 or frame % 16:
        return again(memory, frame)
    heights, column = memory[0xC030:0xC036], memory[0xC011]
    goal = int(np.maximum(heights[:-1], heights[1:]).argmin())
    return RIGHT if column < goal else LEFT if column > goal else B


def fight(memory, frame):
    """Walks up and presses B, then holds back for a while."""
    toward, away = (RIGHT, LEFT) if memory[0xC202] > memory[0xC102] else (LEFT, RIGHT)
    if frame % 400 > 230:
        return away
    if abs(memory[0xC202] - memory[0xC102]) > 30:
        return toward
    return B if frame % 24 < 2 else 0


def volley(memory, frame):
    """Follows the ball, looks away in each third 300 frames."""
    if memory[0xC000] == 2 or frame // 300 % 3 == 2:
        return again(memory, frame)
    below = memory[0xC015] - memory[0xC012] - 9
    return DOWN if below > 4 else UP if below < -4 else 0


@dataclass(frozen=True)
class Game:
    """A cartridge, who plays it, and where it truly keeps what is lost and gained."""

    name: str
    rom: Path
    player: object
    lost: int | None
    gained: int
    rises: bool = True
    conceded: bool = False
    """What is lost is a point of the rival's: it rises."""

    @property
    def true(self):
        """Names of the lines that are told, with their addresses."""
        if self.conceded:
            return {"score": self.gained, "conceded": self.lost}
        if not self.rises:
            return {"p1_hp": self.lost, "p2_hp": self.gained}
        return {"score": self.gained} | ({"hp": self.lost} if self.lost else {})

    def begun(self):
        """A cartridge that begins to be played, a fight so that the player hits, too."""
        if self.name != "duel":
            _, rom, emulator = opened(GameBoyConfig(profile=self.name))
            return emulator, CartridgeReplay(rom, emulator.save())
        emulator = Emulator(self.rom.read_bytes())
        emulator.tick(120)
        settings = duel.MatchSettings(
            mode=duel.JOYPAD_CPU, level=1, hp=(40, 40), wins_needed=3, flags=duel.RESTART
        )
        duel.start_match(emulator, settings)
        return emulator, CartridgeReplay(self.rom.read_bytes(), emulator.save())


GAMES = {
    "hop": Game("hop", HOP.image, hop, 0xC003, 0xC002),
    "stack": Game("stack", STACK.image, stack, None, 0xC002),
    "volley": Game("volley", VOLLEY.image, volley, 0xC019, 0xC002, conceded=True),
    "duel": Game("duel", ROM_PATH, fight, 0xC100, 0xC200, rises=False),
}


SHORT = ("volley", "duel")
"""Games of `make test`: one tells a rival's points, one two players' health."""


@pytest.fixture(
    scope="module",
    params=[
        game if game in SHORT else pytest.param(game, marks=pytest.mark.slow) for game in GAMES
    ],
)
def recording(request):
    """A game, its recording, and [frame] of what was truly lost, gained, and changed at all."""
    game = GAMES[request.param]
    emulator, replay = game.begun()
    emulator.load(replay.state)
    values = np.zeros((FRAMES, 2), np.int16)
    for frame in range(FRAMES):
        replay.add(game.player(emulator.memory, frame))
        emulator.hold(replay.frames[-1])
        emulator.tick(1)
        values[frame] = [emulator.memory[a] if a else 0 for a in (game.lost, game.gained)]
    emulator.close()
    change = np.diff(values, axis=0)
    gains = change[:, 1] > 0 if game.rises else change[:, 1] < 0
    losses = change[:, 0] > 0 if game.conceded else change[:, 0] < 0
    return game, replay, [np.flatnonzero(e) + 1 for e in (losses, gains, change.any(1))]


def person(lost, gained, changed, rng, wrong):
    """Presses late, misses some, says when nothing happens, and errs `wrong` times."""
    events = [(int(f), Mark.lost) for f in lost] + [(int(f), Mark.gained) for f in gained]
    made, last = [], 0
    for frame, mark in sorted([*events, (FRAMES, Mark.nothing)], key=lambda event: event[0]):
        calm = last + QUIET + int(rng.integers(LATEST))
        if calm < frame and not ((changed > last) & (changed <= calm)).any():
            made.append(Moment(calm, Mark.nothing))
            last = calm
        pressed = frame + int(rng.integers(SOONEST, LATEST + 1))
        if pressed - last >= APART and pressed < FRAMES:
            made.append(Moment(pressed, mark))
            last = pressed
    slips = rng.integers(FRAMES, size=wrong)
    return made + [Moment(int(f), Mark.lost if len(lost) else Mark.gained) for f in slips]


def first(game, replay, moments, folder, rom=""):
    """Addresses that come first, by name, and the lines that were said; `rom` asks for files."""
    marks = folder / "marks.csv"
    write_marks(marks, moments)
    named = {"replay": "game.replay", "marks": str(marks), "record": str(folder) if rom else ""}
    asked = PlayOptions(probe=Probe.replay, **named)
    lines = list(heard(replay, asked, load_profile(game.name), rom))
    told = {}
    for name, address in re.findall(r"(\w+): {addr: (0x\w+)", "\n".join(lines)):
        told.setdefault(name, int(address, 16))
    return told, lines


@pytest.fixture(scope="module")
def marked(recording, tmp_path_factory):
    """What is told and written of a game that a person marked with one slip."""
    game, replay, events = recording
    folder = tmp_path_factory.mktemp(game.name)
    moments = person(*events, np.random.default_rng(0), wrong=1)
    told, lines = first(game, replay, moments, folder, sha1(game.rom.read_bytes()))
    return game, folder, told, [line for line in lines if line[0].isdigit()], moments


def test_marks_with_a_persons_delay_and_one_slip_put_the_true_addresses_first(marked):
    game, _, told, heard_marks, moments = marked
    assert {name: told.get(name) for name in game.true} == game.true
    assert len(heard_marks) == len(moments) > 15


def test_the_profile_that_marks_wrote_trains_as_it_stands(marked):
    game, folder, *_ = marked
    config = GameBoyConfig(
        profile=str(folder / f"{game.name}_found.yaml"),
        rom=str(game.rom),
        obs=View.ram,
        accept_guesses=True,
    )
    addresses = {name: value.addr for name, value in config.game.memory.items()}
    names = {"hp": "lives_0", "score": "score_0", "conceded": "conceded_0"}
    assert all(addresses[names.get(n, n)] == a for n, a in game.true.items())
    missing = {f.id for f in judged(config, trial(config)) if f.severity is not Severity.ok}
    assert missing <= ({"F41"} if game.name == "stack" else set())  # random play fills no row


def test_marks_at_other_moments_put_other_addresses_first(recording, tmp_path):
    game, replay, events = recording
    moments = person(*events, np.random.default_rng(0), wrong=0)
    frames = np.random.default_rng(1).integers(FRAMES, size=len(moments)).tolist()
    shuffled = [Moment(f, m.mark) for f, m in zip(frames, moments, strict=True)]
    told, _ = first(game, replay, shuffled, tmp_path)
    assert all(told.get(name) != address for name, address in game.true.items())


class Pretended:
    """A window in which somebody holds buttons and presses keys at given frames."""

    def __init__(self, title, shape, scale, instead):
        self.captions, self.shown = [title], 0
        self.name = self.captions.append
        Pretended.last = self

    def show(self, picture, rate):
        held = {"right"} if self.shown % 20 else {"right", "a"}
        pressed = [key for frame, key in Pretended.keys if frame == self.shown]
        self.shown += 1
        return Keys(held, pressed, "escape" in pressed)

    def close(self):
        pass


def by_person(monkeypatch, folder, keys, **more):
    """What probe=person says of Hop, the keys pressed at their frames."""
    monkeypatch.setattr(joypad, "Window", Pretended)
    Pretended.keys = keys
    run = compose_run(["env=fighting_game_boy", "env.profile=hop", "tracking=disabled"])
    return run, play(run, PlayOptions(probe=Probe.person, record=str(folder), **more))


def test_a_person_marks_in_the_window_and_the_files_say_the_same_again(monkeypatch, tmp_path):
    keys = [(150, "x"), (200, "v"), (260, "c"), (330, "q"), (340, "x"), (420, "escape")]
    run, lines = by_person(monkeypatch, tmp_path, keys)
    lines = list(lines)
    assert lines[0].startswith("X: I lost something")
    assert "1. lost (frame 150, 2.5 s)" in lines
    assert any(re.match(r"  health or lives: \d+ left", line) for line in lines)
    assert len(Pretended.last.captions) == 1 + 4  # one more after each mark
    assert Pretended.last.captions[1].startswith("health or lives ")
    marks, replay = tmp_path / "hop_1.csv", tmp_path / "hop_1.replay"
    assert [m.line for m in read_marks(marks, 421, "")] == [
        "150,lost",
        "200,nothing",
        "260,gained",
        "340,lost",
    ]
    written = (tmp_path / "hop_found.yaml").read_text()
    asked = PlayOptions(
        probe=Probe.replay, replay=str(replay), marks=str(marks), record=str(tmp_path / "again")
    )
    again_said = [line for line in play(run, asked) if str(tmp_path) not in line]
    assert again_said == [line for line in lines[1:] if str(tmp_path) not in line]
    assert (tmp_path / "again" / "hop_found.yaml").read_text() == written
    assert (tmp_path / "again" / "hop_found.png").stat().st_size > 1000


def test_who_marks_nothing_is_told_so_and_keeps_the_replay(monkeypatch, tmp_path):
    _, lines = by_person(monkeypatch, tmp_path, [(30, "v")], frames=60)
    with pytest.raises(DataError, match=r"marked as lost or gained in 60 frames.* press X after"):
        list(lines)
    assert (tmp_path / "hop_1.replay").is_file()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], Probe.off),
        (["probe=false"], Probe.off),
        (["probe=true"], Probe.random),
        (["probe=random"], Probe.random),
        (["probe=person"], Probe.person),
        (["probe=replay", "replay=a.replay", "marks=a.csv"], Probe.replay),
    ],
)
def test_the_words_of_the_command_line(words, meant):
    cfg, _ = compose_plain("play", ["env=fighting_game_boy", *words])
    assert options(cfg, PlayOptions).probe is meant


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"probe": Probe.replay}, "probe=replay listens to a recording: name it .* replay=FILE"),
        ({"marks": "a.csv"}, "marks= is read by probe=replay alone"),
    ],
)
def test_options_that_do_not_go_together_are_refused(asked, words):
    with pytest.raises(ConfigError, match=words):
        PlayOptions(**asked)


def test_what_cannot_be_listened_to_is_refused_in_one_line(monkeypatch, tmp_path):
    duel_run = compose_run(["env=fighting", "tracking=disabled"])
    with pytest.raises(ConfigError, match="type env=fighting_game_boy"):
        list(play(duel_run, PlayOptions(probe=Probe.person)))
    monkeypatch.setenv("SDL_VIDEODRIVER", "offscreen")
    run = compose_run(["env=fighting_game_boy", "tracking=disabled"])
    with pytest.raises(WindowError, match=r"screen, probe=replay replay=FILE\.replay marks=FILE"):
        list(play(run, PlayOptions(probe=Probe.person)))


@pytest.mark.parametrize(
    ("frames", "words"),
    [(0, "has 0 frames; .* Record it again"), (18_001, "has 18001 frames; .* frames=18000")],
)
def test_a_recording_that_is_empty_or_too_long_is_refused(frames, words):
    replay = CartridgeReplay(b"", b"", bytearray(frames))
    asked = PlayOptions(probe=Probe.replay, replay="a.replay", marks="a.csv")
    with pytest.raises(DataError, match=words):
        list(heard(replay, asked, load_profile("hop"), ""))


def test_a_match_of_duel_is_listened_to(tmp_path):
    replay = Replay(duel.MatchSettings(), bytearray([RIGHT, 0] * 90))
    replay.save(tmp_path / "a.replay")
    (tmp_path / "a.csv").write_text("70,lost\n80,gained\n")
    run = compose_run(["env=fighting", "tracking=disabled"])
    named = {"replay": str(tmp_path / "a.replay"), "marks": str(tmp_path / "a.csv")}
    lines = list(play(run, PlayOptions(probe=Probe.replay, **named)))
    assert "# 90 frames and 2 marks on 'duel'." in lines
