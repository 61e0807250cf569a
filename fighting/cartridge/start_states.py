"""The states from which episodes on a cartridge begin, made by its profile's recipe."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.cartridge.meaning import Meanings
from fighting.cartridge.rule import Rule, rule_of
from fighting.cartridge.scene import Scene
from fighting.cartridge.source import Text
from fighting.cartridge.watching import watch
from fighting.machine.emulator import (
    BUTTONS,
    MOST_STATE_BYTES,
    PYBOY_VERSION,
    Emulator,
    StateError,
    sha1,
)
from fighting.machine.trial import try_states
from frugal_rl.errors import ConfigError, DataError
from frugal_rl.invocation import command
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.untrusted.files import inflate, read_bytes
from frugal_rl.untrusted.printing import printable

if TYPE_CHECKING:
    from fighting.cartridge.memory import Address
    from fighting.cartridge.profile import Profile

COMPARISONS = {"ge": ">=", "le": "<=", "eq": "=="}
PATIENCE = 3000
"""Frames within which an `until` must happen, unless its step says `timeout`."""
MOST_FRAMES = 60 * 60 * 10
"""Ten minutes of play."""
FIRST = np.zeros(1, np.int64)
AGAIN = "Without the file the states are made again."


def _remedy() -> str:
    return f"save one by {command('play')} record=FOLDER and the key P"


class StartStates:
    """A profile's start states, kept compressed, in memory and in a folder if one is given."""

    def __init__(self, folder: str | None, emulator: Emulator, rom: bytes, game: Profile) -> None:
        self.emulator, self.game, self.rom = emulator, game, rom
        recipe = json.dumps(game.start, sort_keys=True, default=str).encode()
        for number, step in enumerate(game.start):
            if "state" in step:
                recipe += self._read(str(step["state"]), game.source.at("start", number))
        key = hashlib.sha1(recipe, usedforsecurity=False).hexdigest()[:12]
        name = f"{sha1(rom)[:16]}-{key}-pyboy{PYBOY_VERSION}.states"
        self.path = Path(folder) / name if folder else None
        self.states = self._kept() or self._made()

    def load(self, index: int, emulator: Emulator | None = None) -> None:
        """Goes to a state and draws one frame: a state holds the colours it was saved with."""
        emulator = emulator or self.emulator
        try:
            emulator.load(inflate(self.states[index], MOST_STATE_BYTES))
        except DataError as error:
            if self.path is None:
                raise
            raise StateError(f"{self.path}: {error} {AGAIN}") from error
        emulator.hold(0)
        emulator.tick(1, True)

    def _kept(self) -> list[bytes]:
        if self.path is None or not self.path.is_file():
            return []
        data, states = read_bytes(self.path), []
        while data:
            size = int.from_bytes(data[:4], "little")
            if len(data) < 4 + size:
                raise ConfigError(f"{self.path} is truncated; delete it, it will be made again.")
            states.append(data[4 : 4 + size])
            data = data[4 + size :]
        try:
            try_states(self.rom, (inflate(state, MOST_STATE_BYTES) for state in states))
        except DataError as error:
            raise StateError(f"{self.path}: {error}. {AGAIN}") from error
        return states

    def _made(self) -> list[bytes]:
        found: list[bytes] = []
        for number, step in enumerate(self.game.start):
            self._run(number, step, found)
        states = [zlib.compress(state) for state in found or [self.emulator.save()]]
        if self.path is not None:
            with finished_or_absent(self.path) as part:
                part.write_bytes(b"".join(len(s).to_bytes(4, "little") + s for s in states))
        return states

    def _run(self, number: int, step: Mapping[str, Any], found: list[bytes]) -> None:
        where = self.game.source.at("start", number)
        if "press" in step:
            self._press(number, step, where)
        elif "wait" in step:
            self.emulator.tick(_frames(step, "wait", 0, where))
        elif "until" in step:
            self._until(number, step, where)
        elif "state" in step:
            self.emulator.load(self._read(str(step["state"]), where))
            found.append(self.emulator.save())
        else:
            found.append(self.emulator.save())

    def _press(self, number: int, step: Mapping[str, Any], where: str) -> None:
        """Once, or with `until` again and again."""
        if step["press"] not in BUTTONS:
            known = ", ".join(BUTTONS)
            raise ConfigError(f"{where}: no button {step['press']!r}; there are {known}.")
        frames = _frames(step, "frames", 4, where)
        if "until" in step:
            self._until(number, step, where, 1 << BUTTONS.index(step["press"]), frames)
            return
        self.emulator.hold(1 << BUTTONS.index(step["press"]))
        self.emulator.tick(frames)
        self.emulator.hold(0)
        self.emulator.tick(1)

    def _until(
        self, number: int, step: Mapping[str, Any], where: str, button: int = 0, held: int = 4
    ) -> None:
        """Waits for a condition; a button is pressed anew every `every` frames."""
        condition, meanings = self._condition(number, step["until"], where)
        every, patience = (
            _frames(step, "every", 30, where),
            _frames(step, "timeout", PATIENCE, where),
        )
        scene = Scene.empty(1, meanings.watched, len(meanings.slots), len(meanings.maps))
        runs, drawn = meanings.watched.runs(), bool(meanings.watched.pixels)
        for frame in range(patience):
            scene.pass_on()
            watch(self.emulator, meanings.watched, runs, scene.memory[0], scene.pixels[0])
            if frame == 0:
                meanings.begin(scene, FIRST)
            meanings.keep(scene)
            if condition(scene)[0]:
                self.emulator.hold(0)
                return
            self.emulator.hold(button if frame % max(every, held + 1) < held else 0)
            self.emulator.tick(1, drawn)
            scene.frames += 1
        raise ConfigError(
            f"{where}: `{condition.text.text}` did not happen within {patience} frames. "
            f"Look at the game with {command('play')}, or raise timeout."
        )

    def _condition(self, number: int, until: Any, where: str) -> tuple[Rule, Meanings]:
        """`until: "phase == 2"`, or as older profiles say it: `until: {memory: phase, eq: 2}`."""
        if isinstance(until, Mapping):
            words = [word for word in until if word in COMPARISONS]
            if "memory" not in until or len(words) != 1 or len(until) != 2:
                raise ConfigError(f"{where}: until takes one of {', '.join(COMPARISONS)}.")
            self.game.address(str(until["memory"]))
        meanings = Meanings(self.game.memory)
        text = Text(condition_words(until), ("start", number, "until"), self.game.source)
        return rule_of(meanings, text), meanings

    def _read(self, name: str, where: str) -> bytes:
        """A saved state beside the profile, which must belong to this cartridge."""
        path = self.game.source.folder / name
        if not path.is_file():
            raise ConfigError(f"{where}: there is no saved state {path}; {_remedy()}.")
        return read_state(path, self.rom, where)


def condition_words(until: Any) -> str:
    """A condition as an expression, whichever way it is written."""
    if not isinstance(until, Mapping):
        return str(until)
    word = next(word for word in until if word in COMPARISONS)
    return f"{until['memory']} {COMPARISONS[word]} {until[word]}"


def waited_for(game: Profile) -> dict[str, Address]:
    """The values in memory that the conditions of a profile's recipe look at."""
    names: set[str] = set()
    for step in game.start:
        until = step.get("until")
        if isinstance(until, Mapping):
            names.add(str(until["memory"]))
        elif until is not None:
            meanings = Meanings(game.memory)
            meanings.of(str(until))
            names |= meanings.used
    return {name: address for name, address in game.memory.items() if name in names}


def write_state(path: Path, emulator: Emulator, rom: bytes) -> None:
    """A state with the hash of its cartridge, whole or not at all."""
    with finished_or_absent(path) as part:
        part.write_bytes(f"state-1 {sha1(rom)}\n".encode() + zlib.compress(emulator.save()))


def read_state(path: Path, rom: bytes, where: str) -> bytes:
    """What `write_state` wrote.

    Raises:
        StateError: it is none, is truncated, or belongs to another cartridge.
    """
    head, _, packed = read_bytes(path, MOST_STATE_BYTES).partition(b"\n")
    words = printable(head.decode("ascii", "replace"), 200).split()
    if len(words) != 2 or words[0] != "state-1":
        raise StateError(f"{where}: {path} is no saved state; {_remedy()}.")
    if words[1] != sha1(rom):
        raise StateError(
            f"{where}: {path} belongs to the cartridge {words[1]}, env.rom is {sha1(rom)}. "
            "Save a state of this cartridge."
        )
    try:
        state = inflate(packed, MOST_STATE_BYTES)
        try_states(rom, [state])
    except DataError as error:
        raise StateError(
            f"{where}: {path} cannot be used: {error}. Save the state again."
        ) from error
    return state


def _frames(step: Mapping[str, Any], key: str, default: int, where: str) -> int:
    """A number of frames that a step states."""
    value = step.get(key, default)
    if type(value) is not int or not 0 <= value <= MOST_FRAMES:
        shown = printable(repr(value))
        raise ConfigError(f"{where}: {key} is {shown}; use 0 to {MOST_FRAMES} frames.")
    return value
