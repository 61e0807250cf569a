"""The states from which episodes on a cartridge begin, made by its profile's recipe."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fighting.cartridge.profile import Address, Profile
from fighting.machine.emulator import BUTTONS, PYBOY_VERSION, Emulator, StateError, sha1
from frugal_rl.errors import ConfigError

COMPARISONS = {"ge": int.__ge__, "le": int.__le__, "eq": int.__eq__}


class StartStates:
    """The states from which episodes begin, made by a profile's recipe, kept compressed."""

    def __init__(self, folder: str | None, emulator: Emulator, rom: bytes, game: Profile) -> None:
        self.emulator, self.game = emulator, game
        recipe = json.dumps([dict(s) for s in game.start], sort_keys=True).encode()
        key = hashlib.sha1(recipe, usedforsecurity=False).hexdigest()[:12]
        name = f"{sha1(rom)[:16]}-{key}-pyboy{PYBOY_VERSION}.states"
        self.path = Path(folder) / name if folder else None
        self.states = self._kept() or self._made()

    def load(self, index: int) -> None:
        """Goes to a state and draws one frame: a state holds the colours it was saved with."""
        try:
            self.emulator.load(zlib.decompress(self.states[index]))
        except (StateError, zlib.error) as error:
            if self.path is None:
                raise
            words = f"{self.path}: {error} Without the file the states are made again."
            raise StateError(words) from error
        self.emulator.hold(0)
        self.emulator.tick(1, True)

    def _kept(self) -> list[bytes]:
        if self.path is None or not self.path.is_file():
            return []
        data, states = self.path.read_bytes(), []
        while data:
            size = int.from_bytes(data[:4], "little")
            if len(data) < 4 + size:
                raise ConfigError(f"{self.path} is truncated; delete it, it will be made again.")
            states.append(data[4 : 4 + size])
            data = data[4 + size :]
        return states

    def _made(self) -> list[bytes]:
        found: list[bytes] = []
        for number, step in enumerate(self.game.start):
            self._run(number, step, found)
        states = [zlib.compress(state) for state in found or [self.emulator.save()]]
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_suffix(".part")
            part.write_bytes(b"".join(len(s).to_bytes(4, "little") + s for s in states))
            part.replace(self.path)
        return states

    def _run(self, number: int, step: Mapping[str, Any], found: list[bytes]) -> None:
        where = f"profile '{self.game.id}': start[{number}]"
        if "wait" in step:
            self.emulator.tick(int(step["wait"]))
        elif "press" in step:
            if step["press"] not in BUTTONS:
                raise ConfigError(f"{where}: no button {step['press']!r}.")
            self.emulator.hold(1 << BUTTONS.index(step["press"]))
            self.emulator.tick(int(step.get("frames", 4)))
            self.emulator.hold(0)
            self.emulator.tick(1)
        elif "until" in step:
            self._wait_until(step, where)
        elif "save" in step:
            found.append(self.emulator.save())
        else:
            raise ConfigError(f"{where} is none of wait, press, until, save.")

    def _wait_until(self, step: Mapping[str, Any], where: str) -> None:
        condition = dict(step["until"])
        address = self.game.address(str(condition.pop("memory")))
        if len(condition) != 1 or (word := next(iter(condition))) not in COMPARISONS:
            raise ConfigError(f"{where}: until takes one of {', '.join(COMPARISONS)}.")
        for _ in range(int(step.get("timeout", 3000))):
            if COMPARISONS[word](value_at(self.emulator, address), int(condition[word])):
                return
            self.emulator.tick(1)
        raise ConfigError(f"{where} did not happen within {step.get('timeout', 3000)} frames.")


def value_at(emulator: Emulator, address: Address) -> int:
    """The number that lies at an address of the profile."""
    assert address.addr is not None
    return address.value(emulator.read(address.addr, address.size))
