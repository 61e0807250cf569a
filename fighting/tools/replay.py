"""Replays: how a game began, and the buttons of every frame. They repeat it exactly.

A file is a line of JSON, then (on a cartridge with a profile) the state it began from, then one
byte per player and frame.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from fighting.machine import duel
from fighting.machine.console import boot
from fighting.machine.emulator import MOST_STATE_BYTES, Emulator, read_rom, sha1
from fighting.machine.trial import try_states
from fighting.rom import ROM_PATH, image_of
from frugal_rl.errors import DataError, FrugalError
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.untrusted.files import inflate, read_bytes
from frugal_rl.untrusted.nested import parse_json
from frugal_rl.untrusted.printing import printable

MOST_BYTES = 1 << 28
"""More than a month of play."""
WORK_RAM, WORK_RAM_BYTES = 0xC000, 0x2000
JUDGED = (duel.STATE, 11)
"""Of Duel's state, what a match decides: frames, phase, clock, rounds, result."""


class ReplayError(FrugalError):
    """A replay that cannot be read, or that was made on another cartridge."""


@dataclass
class Replay:
    """A match of Duel: its settings and both players' buttons, frame by frame."""

    FORMAT: ClassVar[str] = "duel-replay-1"
    settings: duel.MatchSettings
    frames: bytearray = field(default_factory=bytearray)
    end: str = ""
    """A hash of how it ended; replays of before have none."""

    def add(self, first: int, second: int) -> None:
        """One frame's buttons."""
        self.frames += bytes((first, second))

    def save(self, path: Path, emulator: Emulator | None = None) -> None:
        """Writes it, whole or not at all; `emulator` stands at the end that is to be reached."""
        end = self.outcome(emulator) if emulator is not None else self.end
        head = {"rom": sha1(ROM_PATH.read_bytes()), **asdict(self.settings), "end": end}
        _write(path, self.FORMAT, head, bytes(self.frames))

    @classmethod
    def load(cls, path: Path) -> Replay:
        """Reads what `save` wrote."""
        head, frames = _read(path, cls.FORMAT)
        if (rom := head.pop("rom", None)) != sha1(ROM_PATH.read_bytes()):
            shown = printable(str(rom))
            raise ReplayError(f"{path} was made on the cartridge {shown}; this one is another.")
        if len(frames) % 2:
            raise ReplayError(f"{path} is truncated: it ends within a frame.")
        end = str(head.pop("end", ""))
        return cls(_settings(path, head), bytearray(frames), end)

    @property
    def length(self) -> int:
        """Frames."""
        return len(self.frames) // 2

    def opened(self) -> Emulator:
        """A machine that it can be played on."""
        return boot()

    @staticmethod
    def outcome(emulator: Emulator) -> str:
        """A hash of both fighters and of what the match decided."""
        seen = emulator.read(*JUDGED)
        for fighter in duel.FIGHTERS:
            seen += emulator.read(fighter, duel.FIGHTER_BYTES)
        return sha1(bytes(seen))

    def play(self, emulator: Emulator, render: bool = False) -> Iterator[int]:
        """Fights it again; yields each frame's number after it was emulated."""
        duel.start_match(emulator, self.settings)
        for frame in range(self.length):
            emulator.memory[duel.P1_IN] = self.frames[2 * frame]
            emulator.memory[duel.P2_IN] = self.frames[2 * frame + 1]
            emulator.tick(1, render)
            yield frame


@dataclass
class CartridgeReplay:
    """A game on the user's cartridge: the state it began from and the joypad, frame by frame.

    `second` is where the second pad is read, if somebody sat there; a frame has two bytes then.
    """

    FORMAT: ClassVar[str] = "cartridge-replay-1"
    rom: bytes
    state: bytes
    frames: bytearray = field(default_factory=bytearray)
    end: str = ""
    second: int | None = None

    def add(self, buttons: int, second: int = 0) -> None:
        """One frame's buttons."""
        self.frames += bytes((buttons,) if self.second is None else (buttons, second))

    def save(self, path: Path, emulator: Emulator) -> None:
        """Writes it, whole or not at all; `emulator` stands at the end."""
        packed = zlib.compress(self.state)
        head = {"rom": sha1(self.rom), "state": len(packed), "end": self.outcome(emulator)}
        head |= {} if self.second is None else {"second": self.second}
        _write(path, self.FORMAT, head, packed + bytes(self.frames))

    @classmethod
    def load(cls, path: Path, rom: bytes) -> CartridgeReplay:
        """Reads what `save` wrote; `rom` must be the cartridge that it was made on."""
        head, rest = _read(path, cls.FORMAT)
        if head.get("rom") != sha1(rom):
            shown = printable(str(head.get("rom")))
            raise ReplayError(
                f"{path} was made on the cartridge {shown}, env.rom is {sha1(rom)}. "
                "Give that cartridge by env.rom=."
            )
        size = head.get("state")
        if type(size) is not int or not 0 <= size <= len(rest):
            shown = printable(repr(size))
            raise ReplayError(
                f"{path} is truncated: its first state of {shown} bytes has {len(rest)}. Record it "
                "again."
            )
        try:
            state = inflate(rest[:size], MOST_STATE_BYTES)
            try_states(rom, [state])
        except DataError as error:
            raise ReplayError(
                f"{path} cannot be played from its first state: {error}. Record it again."
            ) from error
        second, frames = head.get("second"), bytearray(rest[size:])
        if second is not None and (type(second) is not int or not 0x8000 <= second <= 0xFFFF):
            shown = printable(repr(second))
            raise ReplayError(f"{path}: its second pad, {shown}, lies outside $8000-$FFFF.")
        if second is not None and len(frames) % 2:
            raise ReplayError(f"{path} is truncated: it ends within a frame.")
        return cls(rom, state, frames, str(head.get("end", "")), second)

    @property
    def length(self) -> int:
        """Frames."""
        return len(self.frames) // (1 if self.second is None else 2)

    def opened(self) -> Emulator:
        """A machine that it can be played on."""
        return Emulator(self.rom)

    @staticmethod
    def outcome(emulator: Emulator) -> str:
        """A hash of the work memory."""
        memory = bytes(emulator.read(WORK_RAM, WORK_RAM_BYTES))
        return hashlib.sha1(memory, usedforsecurity=False).hexdigest()

    def play(self, emulator: Emulator, render: bool = False) -> Iterator[int]:
        """Plays it again; yields each frame's number after it was emulated."""
        emulator.load(self.state)
        emulator.hold(0)
        each = 1 if self.second is None else 2
        for number in range(self.length):
            emulator.hold(self.frames[each * number])
            if self.second is not None:
                emulator.memory[self.second] = self.frames[each * number + 1]
            emulator.tick(1, render)
            yield number


def load_replay(path: Path, rom: str | None) -> Replay | CartridgeReplay:
    """A replay of either kind; one of somebody else's cartridge needs its image, `rom`.

    Raises:
        ReplayError: it cannot be read, or belongs to another cartridge.
    """
    head = _head(path)[0]
    if head.get("format") == CartridgeReplay.FORMAT:
        own = image_of(str(head.get("rom"))) or ROM_PATH
        return CartridgeReplay.load(path, read_rom(Path(rom) if rom else own))
    return Replay.load(path)


def next_path(folder: Path, name: str) -> Path:
    """`duel_3.replay`, the first number that is free in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (folder / f"{name}_{number}.replay").exists():
        number += 1
    return folder / f"{name}_{number}.replay"


def _settings(path: Path, head: dict[str, Any]) -> duel.MatchSettings:
    """How a match began; every number fits the mailbox's bytes."""
    hp = head.get("hp")
    known = {f.name for f in fields(duel.MatchSettings)}
    numbers = [v for k, v in head.items() if k != "hp"] + (hp if isinstance(hp, list) else [])
    if (
        set(head) != known
        or not isinstance(hp, list)
        or len(hp) != 2
        or not all(type(n) is int and 0 <= n <= 0xFFFF for n in numbers)
        or not all(n <= 0xFF for k, n in head.items() if k not in ("hp", "seed"))
        or not all(n <= 0xFF for n in hp)
    ):
        raise ReplayError(
            f"{path}: its first line does not say how a match began: {', '.join(sorted(known))}, "
            "each a byte (seed: two). Record it again."
        )
    return duel.MatchSettings(**{**head, "hp": tuple(hp)})


def _write(path: Path, form: str, head: dict[str, Any], rest: bytes) -> None:
    with finished_or_absent(path) as part:
        part.write_bytes(json.dumps({"format": form, **head}).encode() + b"\n" + rest)


def _head(path: Path) -> tuple[dict[str, Any], bytes]:
    if not path.is_file():
        raise ReplayError(f"There is no replay at {path}.")
    line, _, rest = read_bytes(path, MOST_BYTES).partition(b"\n")
    try:
        head = parse_json(line)
    except DataError as problem:
        raise ReplayError(f"{path} does not begin with a line of JSON.") from problem
    return (head if isinstance(head, dict) else {}), rest


def _read(path: Path, form: str) -> tuple[dict[str, Any], bytes]:
    head, rest = _head(path)
    if head.pop("format", None) != form:
        raise ReplayError(f"{path} is not a replay of format {form}.")
    return head, rest
