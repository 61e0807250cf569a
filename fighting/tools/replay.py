"""Replays: how a match began, and one byte per player and frame. They repeat a fight exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fighting.machine import duel
from fighting.machine.emulator import Emulator, sha1
from fighting.rom import ROM_PATH
from frugal_rl.errors import FrugalError

FORMAT = "duel-replay-1"


class ReplayError(FrugalError):
    """A replay that cannot be read, or that was made on another cartridge."""


@dataclass
class Replay:
    """A match's settings and both players' buttons, frame by frame."""

    settings: duel.MatchSettings
    frames: bytearray = field(default_factory=bytearray)

    def add(self, first: int, second: int) -> None:
        """One frame's buttons."""
        self.frames += bytes((first, second))

    def save(self, path: Path) -> None:
        """Writes a line of JSON and the bytes, whole or not at all."""
        head = {"format": FORMAT, "rom": sha1(ROM_PATH.read_bytes()), **asdict(self.settings)}
        part = path.with_suffix(path.suffix + ".part")
        part.write_bytes(json.dumps(head).encode() + b"\n" + bytes(self.frames))
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Replay:
        """Reads what `save` wrote."""
        if not path.is_file():
            raise ReplayError(f"There is no replay at {path}.")
        line, _, frames = path.read_bytes().partition(b"\n")
        try:
            head = json.loads(line)
        except ValueError as problem:
            raise ReplayError(f"{path} does not begin with a line of JSON.") from problem
        if head.pop("format", None) != FORMAT:
            raise ReplayError(f"{path} is not a replay of format {FORMAT}.")
        if (rom := head.pop("rom", None)) != sha1(ROM_PATH.read_bytes()):
            raise ReplayError(f"{path} was made on the cartridge {rom}; this one is another.")
        if len(frames) % 2:
            raise ReplayError(f"{path} is truncated: it ends within a frame.")
        head["hp"] = tuple(head["hp"])
        return cls(duel.MatchSettings(**head), bytearray(frames))

    def play(self, emulator: Emulator, render: bool = False) -> Iterator[int]:
        """Fights it again; yields each frame's number after it was emulated."""
        duel.start_match(emulator, self.settings)
        for frame in range(len(self.frames) // 2):
            emulator.memory[duel.P1_IN] = self.frames[2 * frame]
            emulator.memory[duel.P2_IN] = self.frames[2 * frame + 1]
            emulator.tick(1, render)
            yield frame
