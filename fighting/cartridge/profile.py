"""Game profiles: what a cartridge's memory means, what can be pressed, how a fight begins.

A profile is one YAML file; the ROM itself is the user's and is found only where they say.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fighting.machine.emulator import BUTTONS, read_rom, sha1
from fighting.rom import ROM_PATH
from frugal_rl.errors import ConfigError

FOLDER = Path(__file__).parents[1] / "profiles"
SCHEMA = 1
DIRECTIONS = {"toward": 1 << 4, "away": 1 << 5, "up": 1 << 6, "down": 1 << 7}
"""Directions as button bits, for a fighter who looks right."""
WORDS = {**{name: 1 << bit for bit, name in enumerate(BUTTONS)}, **DIRECTIONS}
NEEDED = ("p1_hp", "p2_hp")


class Status(Enum):
    """How sure an address is."""

    verified = "verified"
    documented = "documented"
    guess = "guess"
    unknown = "unknown"


class Kind(Enum):
    """How a number is written in memory."""

    binary = "binary"
    bcd = "bcd"
    digits = "digits"
    frames = "frames"


class System(Enum):
    """Which Game Boy: `dmg` has four shades, `cgb` colours."""

    dmg = "dmg"
    cgb = "cgb"


@dataclass(frozen=True)
class Address:
    """Where a value lies and how it reads."""

    addr: int | None
    size: int = 1
    kind: Kind = Kind.binary
    min: int = 0
    max: int = 255
    status: Status = Status.unknown
    source: str = ""
    fight: tuple[int, ...] = ()
    over: tuple[int, ...] = ()
    match_over: tuple[int, ...] = ()

    def value(self, data: list[int]) -> int:
        """The number in `size` bytes, little-endian unless it is decimal."""
        if self.kind is Kind.bcd:
            digits = [d for byte in data for d in (byte >> 4, byte & 15)]
        elif self.kind is Kind.digits:
            digits = data
        else:
            return sum(byte << 8 * i for i, byte in enumerate(data))
        return int("".join(str(min(d, 9)) for d in digits))


@dataclass(frozen=True)
class Image:
    """A cartridge image that a profile is known to fit."""

    sha1: str
    name: str
    bundled: bool = False


@dataclass(frozen=True)
class Profile:
    """Everything that the environment knows about one game."""

    id: str
    title: str
    system: System
    roms: tuple[Image, ...]
    memory: Mapping[str, Address]
    ko_values: tuple[int, ...]
    round_seconds: int
    combos: tuple[int, ...]
    """Button bytes for a fighter who looks right."""
    macros: Mapping[str, tuple[tuple[int, int], ...]]
    """Name -> steps of (button byte, frames)."""
    commands: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    start: tuple[Mapping[str, Any], ...] = ()
    fastest_startup: int = 0
    longest_startup: int = 0

    def address(self, name: str) -> Address:
        """An address that must be known."""
        found = self.memory.get(name)
        if found is None or found.addr is None or found.status is Status.unknown:
            raise ConfigError(
                f"The profile '{self.id}' does not know where {name} is. Find it with the probe "
                f"(scripts/play.py) and add memory.{name} to the profile."
            )
        return found

    def check_trainable(self, accept_guesses: bool) -> None:
        """Refuses a profile whose health addresses are unknown, or only guessed."""
        for name in NEEDED:
            if self.address(name).status is Status.guess and not accept_guesses:
                raise ConfigError(
                    f"The profile '{self.id}' only guesses where {name} is "
                    f"(${self.address(name).addr:04X}). Check it with the probe, or set "
                    "env.accept_guesses=true."
                )

    def open_rom(self, path: str | None, allow_unknown: bool = False) -> bytes:
        """The cartridge image at `path`, which must be one that the profile lists."""
        if not path:
            if any(image.bundled for image in self.roms):
                return read_rom(ROM_PATH)
            raise ConfigError(
                f"The profile '{self.id}' needs your own cartridge image: env.rom=path/to/file.gb."
            )
        rom = read_rom(Path(path))
        digest = sha1(rom)
        if digest in {image.sha1 for image in self.roms}:
            return rom
        known = ", ".join(f"{i.sha1} ({i.name})" for i in self.roms) or "none yet"
        problem = (
            f"{path} has the SHA-1 {digest}; the profile '{self.id}' fits {known}. "
            "Addresses may differ in other versions."
        )
        if not allow_unknown:
            raise ConfigError(f"{problem} Set env.allow_unknown_rom=true to try it anyway.")
        warnings.warn(problem, stacklevel=2)
        return rom


def load_profile(name: str) -> Profile:
    """The bundled profile of that name, or the one in a YAML file."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = sorted(p.stem for p in FOLDER.glob("*.yaml"))
        raise ConfigError(f"There is no profile {path}; bundled ones are {', '.join(known)}.")
    try:
        node = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path.name} is not valid YAML: {error}") from error
    return parse_profile(node, path.name)


def parse_profile(node: Any, where: str) -> Profile:
    """A profile from the content of its file; every problem names its place."""
    if not isinstance(node, dict):
        raise ConfigError(f"{where} is not a profile: it has no keys.")
    required = {"schema", "id", "title", "system", "memory", "actions"}
    optional = {
        "cartridge_title",
        "roms",
        "rules",
        "input",
        "commands",
        "start",
        "features",
        "fastest_startup",
        "longest_startup",
    }
    if missing := sorted(required - set(node)):
        raise ConfigError(f"{where}: {', '.join(missing)} missing.")
    if unknown := sorted(set(node) - required - optional):
        raise ConfigError(f"{where}: unknown key {unknown[0]}.")
    if node["schema"] != SCHEMA:
        raise ConfigError(f"{where}: schema {node['schema']}; this version reads {SCHEMA}.")
    rules = node.get("rules") or {}
    return Profile(
        id=str(node["id"]),
        title=str(node["title"]),
        system=_member(System, node["system"], f"{where}: system"),
        roms=tuple(_image(image, where) for image in node.get("roms") or ()),
        memory={n: _address(v, f"{where}: memory.{n}") for n, v in node["memory"].items()},
        ko_values=tuple(rules.get("ko_values", (0,))),
        round_seconds=int(rules.get("round_seconds", 99)),
        combos=tuple(
            buttons(words, f"{where}: actions.combos[{i}]")
            for i, words in enumerate(node["actions"].get("combos") or ())
        ),
        macros={
            n: _macro(steps, f"{where}: actions.macros.{n}")
            for n, steps in (node["actions"].get("macros") or {}).items()
        },
        commands=node.get("commands") or {},
        inputs=node.get("input") or {},
        start=tuple(node.get("start") or ()),
        fastest_startup=int(node.get("fastest_startup", 0)),
        longest_startup=int(node.get("longest_startup", 0)),
    )


def buttons(words: list[str], where: str) -> int:
    """A button byte from words such as [down, a]."""
    byte = 0
    for word in words:
        if word not in WORDS:
            raise ConfigError(f"{where}: no button {word!r}; there are {', '.join(WORDS)}.")
        byte |= WORDS[word]
    return byte


def facing_left(byte: int) -> int:
    """The same buttons for a fighter who looks left."""
    return byte & ~0x30 | (byte & 0x10) << 1 | (byte & 0x20) >> 1


def sided_combos(combos: Sequence[int]) -> np.ndarray:
    """(2, C) uint8: the buttons of C combos for a fighter on the right, then on the left."""
    return np.array([[facing_left(byte) for byte in combos], combos], np.uint8)


def _macro(steps: list[Any], where: str) -> tuple[tuple[int, int], ...]:
    if len(steps) % 2:
        raise ConfigError(f"{where} must alternate buttons and frames.")
    pairs = list(zip(steps[::2], steps[1::2], strict=True))
    if any(not isinstance(n, int) or n < 1 for _, n in pairs):
        raise ConfigError(f"{where}: frames must be whole numbers of at least 1.")
    return tuple((buttons(words, where), frames) for words, frames in pairs)


def _image(node: Mapping[str, Any], where: str) -> Image:
    digest = str(node.get("sha1", ""))
    if len(digest) != 40 or set(digest) - set("0123456789abcdef"):
        raise ConfigError(f"{where}: roms need a sha1 of 40 lower-case hexadecimal digits.")
    return Image(digest, str(node.get("name", "")), bool(node.get("bundled", False)))


def _address(node: Mapping[str, Any], where: str) -> Address:
    allowed = set(Address.__dataclass_fields__)
    if unknown := sorted(set(node) - allowed):
        raise ConfigError(f"{where}: unknown key {unknown[0]}; there are {sorted(allowed)}.")
    addr = node.get("addr")
    if addr is not None and not 0x8000 <= addr <= 0xFFFF:
        raise ConfigError(f"{where}: address {addr:#06x} lies outside $8000-$FFFF.")
    values: dict[str, Any] = {**node, "addr": addr}
    values["status"] = _member(Status, node.get("status", "unknown"), where)
    values["kind"] = _member(Kind, node.get("kind", "binary"), where)
    for name in ("fight", "over", "match_over"):
        values[name] = tuple(node.get(name, ()))
    return Address(**values)


def _member(kind: type[Enum], word: Any, where: str) -> Any:
    if word not in {m.value for m in kind}:
        raise ConfigError(f"{where}: {word!r} is none of {', '.join(m.value for m in kind)}.")
    return kind(word)
