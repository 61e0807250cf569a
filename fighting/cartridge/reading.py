"""Profiles from their YAML files; every problem names file, line and remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from fighting.cartridge.buttons import UnknownButtonError, buttons
from fighting.cartridge.meaning import CLOCKS
from fighting.cartridge.memory import Address, Kind, Status
from fighting.cartridge.pads import Pads
from fighting.cartridge.profile import Goal, Image, Profile, System
from fighting.cartridge.source import Keys, Source, Text, read
from frugal_rl.errors import ConfigError
from frugal_rl.untrusted.printing import printable

FOLDER = Path(__file__).parents[1] / "profiles"
SCHEMA = 1
EXAMPLE = "fighting/profiles/duel.yaml"
REQUIRED = {"schema", "id", "title", "system", "memory", "actions"}
OF_GOALS = {"reward", "end", "success", "score", "time_limit"}
OPTIONAL = OF_GOALS | {
    "cartridge_title",
    "roms",
    "rules",
    "start",
    "features",
    "pads",
    "fastest_startup",
    "longest_startup",
}
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
STEPS = {
    "press": {"frames", "until", "every", "timeout"},
    "until": {"timeout"},
    "wait": set(),
    "state": set(),
    "save": set(),
}
"""What a step of `start:` does, and what it may say beside; the first that it names is meant."""
LOWEST, HIGHEST = 0x8000, 0xFFFF
BYTE = (0, 255)
LONGEST_MACRO_FRAMES = 3600
MOST_FEATURES = 1024
"""Of one name."""


def load_profile(name: str) -> Profile:
    """The bundled profile of that name, or the one in a YAML file."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = sorted(p.stem for p in FOLDER.glob("*.yaml"))
        raise ConfigError(f"There is no profile {path}; bundled ones are {', '.join(known)}.")
    return parse_profile(*read(path))


def parse_profile(node: Any, source: Source | str) -> Profile:
    """A profile from the content of its file."""
    reader = _Reader(Source(source) if isinstance(source, str) else source)
    try:
        return reader.profile(node)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        if isinstance(error, ConfigError):
            raise
        raise reader.wrong(
            f"a value is of a wrong kind ({error}); compare with {EXAMPLE}."
        ) from error


class _Reader:
    """Turns a profile's nested values into a `Profile`, naming the place of what is wrong."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def wrong(self, words: str, *keys: str | int) -> ConfigError:
        return ConfigError(f"{self.source.at(*keys)}: {printable(words, 600)}")

    def profile(self, node: Any) -> Profile:
        self._check_keys(node)
        memory = {n: self._address(n, v) for n, v in self._mapping(node, "memory").items()}
        rules, actions = self._mapping(node, "rules"), self._mapping(node, "actions")
        self._known(rules, {"ko_values", "round_seconds"}, "rules")
        self._known(actions, {"combos", "macros"}, "actions")
        return Profile(
            id=str(node["id"]),
            title=str(node["title"]),
            system=self._member(System, node["system"], "system"),
            roms=tuple(self._image(i, image) for i, image in enumerate(self._list(node, "roms"))),
            memory=memory,
            ko_values=self._bytes(rules, "ko_values", ("rules",), (0,)),
            round_seconds=self._whole(rules, "round_seconds", ("rules",), 99, (1, 3600)),
            combos=tuple(
                self._buttons(words, ("actions", "combos", i))
                for i, words in enumerate(self._list(actions, "combos", "actions"))
            ),
            macros={
                str(n): self._macro(n, steps)
                for n, steps in self._mapping(actions, "macros", "actions").items()
            },
            source=self.source,
            goal=self._goal(node),
            features=self._features(node),
            pads=self._pads(node, memory) if "pads" in node else None,
            start=tuple(self._step(i, step) for i, step in enumerate(self._list(node, "start"))),
            fastest_startup=self._whole(node, "fastest_startup", (), 0, BYTE),
            longest_startup=self._whole(node, "longest_startup", (), 0, BYTE),
        )

    def _check_keys(self, node: Any) -> None:
        if not isinstance(node, dict):
            raise self.wrong(f"is not a profile: it has no keys. See {EXAMPLE}.")
        if missing := sorted(REQUIRED - set(node)):
            raise self.wrong(f"{', '.join(missing)} missing. See {EXAMPLE}.")
        self._known(node, REQUIRED | OPTIONAL)
        if node["schema"] != SCHEMA:
            raise self.wrong(f"schema {node['schema']}; this version reads {SCHEMA}.", "schema")
        if "rules" in node and OF_GOALS & set(node):
            raise self.wrong("count in a fight without reward: and end: only; drop them.", "rules")

    def _known(self, node: Mapping[str, Any], known: Set[str], *keys: str | int) -> None:
        if unknown := sorted(map(str, set(node) - known)):
            there = ", ".join(sorted(known))
            raise self.wrong(f"unknown key {unknown[0]}; there are {there}.", *keys, unknown[0])

    def _step(self, number: int, step: Any) -> Mapping[str, Any]:
        """One step of the recipe, with nothing in it that would not be done."""
        kind = next((k for k in STEPS if isinstance(step, dict) and k in step), None)
        if kind is None:
            kinds = ", ".join(STEPS)
            raise ConfigError(f"{self.source.at('start', number)} is none of {kinds}.")
        self._known(step, {kind} | STEPS[kind], "start", number)
        if kind == "press" and "until" not in step and {"every", "timeout"} & set(step):
            raise self.wrong("every and timeout need an until: condition.", "start", number)
        found: Mapping[str, Any] = step
        return found

    def _mapping(self, node: Mapping[str, Any], key: str, *above: str) -> Mapping[str, Any]:
        value = node.get(key) or {}
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self.wrong("must be names with values, one per line.", *above, key)
        return value

    def _list(self, node: Mapping[str, Any], key: str, *above: str) -> list[Any]:
        value = node.get(key) or []
        if not isinstance(value, list):
            raise self.wrong("must be a list, such as [a, b].", *above, key)
        return value

    def _whole(
        self,
        node: Mapping[str, Any],
        key: str,
        above: Keys,
        default: int,
        between: tuple[int, int],
    ) -> int:
        value, (low, high) = node.get(key, default), between
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(f"{value!r} is no whole number from {low} to {high}.", *above, key)
        return value

    def _bytes(
        self, node: Mapping[str, Any], key: str, above: Keys, default: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        value = node.get(key, list(default))
        low, high = BYTE
        if not isinstance(value, list) or any(
            type(v) is not int or not low <= v <= high for v in value
        ):
            raise self.wrong("must be a list of bytes, such as [0, 1].", *above, key)
        return tuple(value)

    def _goal(self, node: Mapping[str, Any]) -> Goal | None:
        if not OF_GOALS & set(node):
            return None
        if not node.get("reward"):
            raise self.wrong("no reward: add reward: 'rise(score)', or what the game is about.")
        limit = node.get("time_limit") or 0.0
        if isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 0:
            raise self.wrong(f"{limit!r} is no number of seconds above 0.", "time_limit")
        if not node.get("end") and not limit:
            raise self.wrong(
                "no end: an episode would never be over. Add end: 'lives == 0', or time_limit: 60."
            )
        parts = node["reward"]
        reward = (
            self._texts(node, "reward")
            if isinstance(parts, dict)
            else {"reward": self._text(parts, ("reward",))}
        )
        single = {
            name: self._text(node[name], (name,)) if node.get(name) is not None else None
            for name in ("end", "success", "score")
        }
        return Goal(reward, **single, time_limit=float(limit))

    def _pads(self, node: Mapping[str, Any], memory: Mapping[str, Address]) -> Pads:
        """Where the second player's buttons are read, and how the game looks from there."""
        pads = self._mapping(node, "pads")
        self._known(pads, {"second", "set", "exchange", "mirror"}, "pads")
        if "second" not in pads:
            raise self.wrong("second is missing: the address of the second pad's byte.", "pads")
        written = pads.get("set") or {}
        if not isinstance(written, dict):
            raise self.wrong("must be bytes by address, such as {0xC011: 1}.", "pads", "set")
        for address in written:
            self._in_memory(address, 1, "pads", "set", address)
            self._whole(written, address, ("pads", "set"), 0, BYTE)
        mirror = self._mapping(pads, "mirror", "pads")
        for name in mirror:
            self._placed(name, memory, "pads", "mirror", name)
            if memory[name].kind is not Kind.binary:
                raise self.wrong("only binary numbers can be mirrored.", "pads", "mirror", name)
            most = 256 ** memory[name].size - 1
            self._whole(mirror, name, ("pads", "mirror"), 0, (-most, most))
        pairs = [self._pair(i, p, memory) for i, p in enumerate(self._pairs(pads, memory))]
        names = [name for pair in pairs for name in pair]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise self.wrong(f"{twice} stands in it twice.", "pads", "exchange")
        second = self._in_memory(pads["second"], 1, "pads", "second")
        return Pads(second, written, tuple(pairs), mirror)

    def _pairs(self, pads: Mapping[str, Any], memory: Mapping[str, Address]) -> list[Any]:
        """What is exchanged: as the profile says, else each known p1_NAME with its p2_NAME."""
        if "exchange" in pads:
            return self._list(pads, "exchange", "pads")
        known = {name for name, address in memory.items() if address.addr is not None}
        both = [(name, f"p2_{name[3:]}") for name in memory if name.startswith("p1_")]
        return [[one, two] for one, two in both if {one, two} <= known]

    def _pair(self, number: int, pair: Any, memory: Mapping[str, Address]) -> tuple[str, str]:
        keys = ("pads", "exchange", number)
        if not isinstance(pair, list) or len(pair) != 2:
            raise self.wrong("must be two names of memory:, such as [p1_x, p2_x].", *keys)
        one, two = (self._placed(name, memory, *keys) for name in pair)
        form = ("size", "kind", "signed", "big", "zero")
        if any(getattr(one, name) != getattr(two, name) for name in form):
            raise self.wrong(f"{pair[0]} and {pair[1]} are written differently.", *keys)
        return str(pair[0]), str(pair[1])

    def _placed(self, name: Any, memory: Mapping[str, Address], *keys: str | int) -> Address:
        """A value whose address is known."""
        found = memory.get(name) if isinstance(name, str) else None
        if found is None or found.addr is None:
            known = ", ".join(n for n, a in memory.items() if a.addr is not None)
            raise self.wrong(f"memory: places no {name!r}; there are {known}.", *keys)
        return found

    def _texts(self, node: Mapping[str, Any], key: str) -> dict[str, Text]:
        return {n: self._text(v, (key, n)) for n, v in self._mapping(node, key).items()}

    def _features(self, node: Mapping[str, Any]) -> dict[str, Text]:
        """Expressions by name; `{each: 49, is: ...}` gives 49 numbers, n counting from 0."""
        found: dict[str, Text] = {}
        for name, value in self._mapping(node, "features").items():
            if not isinstance(value, dict):
                found[name] = self._text(value, ("features", name))
                continue
            keys = ("features", name)
            self._known(value, {"each", "is"}, *keys)
            text = self._text(value.get("is"), (*keys, "is"))
            each = self._whole(value, "each", keys, 0, (1, MOST_FEATURES))
            found[name] = replace(text, each=each)
        return found

    def _text(self, value: Any, keys: Keys) -> Text:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.wrong("must be an expression, such as 'rise(score)'.", *keys)
        return Text(str(value), keys, self.source)

    def _buttons(self, words: Any, keys: Keys) -> int:
        if not isinstance(words, list):
            raise self.wrong("must be a list of buttons, such as [down, a].", *keys)
        try:
            return buttons(words)
        except UnknownButtonError as error:
            raise self.wrong(f"{error}.", *keys) from error

    def _macro(self, name: str, steps: Sequence[Any]) -> tuple[tuple[int, int], ...]:
        keys = ("actions", "macros", name)
        if not isinstance(steps, list) or not steps or len(steps) % 2:
            raise self.wrong("must alternate buttons and frames: [[down], 3, [a], 2].", *keys)
        pairs = list(zip(steps[::2], steps[1::2], strict=True))
        if any(type(n) is not int or not 1 <= n <= LONGEST_MACRO_FRAMES for _, n in pairs):
            raise self.wrong(
                f"frames must be whole numbers from 1 to {LONGEST_MACRO_FRAMES}.", *keys
            )
        return tuple(
            (self._buttons(words, (*keys, 2 * i)), frames)
            for i, (words, frames) in enumerate(pairs)
        )

    def _image(self, number: int, node: Any) -> Image:
        if not isinstance(node, dict):
            raise self.wrong("must be like {sha1: ..., name: ...}.", "roms", number)
        kind, length = ("sha256", 64) if "sha256" in node else ("sha1", 40)
        digest = str(node.get(kind, ""))
        if len(digest) != length or set(digest) - set("0123456789abcdef"):
            raise self.wrong(
                f"roms need a {kind} of {length} lower-case hexadecimal digits ({kind}sum my.gb).",
                "roms",
                number,
            )
        return Image(digest, str(node.get("name", "")), bool(node.get("bundled", False)))

    def _address(self, name: str, node: Any) -> Address:
        keys = ("memory", name)
        if not isinstance(node, dict):
            raise self.wrong("must be like {addr: 0xC0A0, max: 99}.", *keys)
        if not NAME.fullmatch(name) or name in {*CLOCKS, "and", "or", "not"}:
            raise self.wrong(
                f"{name!r} means something else in an expression; name it otherwise, "
                "by letters, digits and _.",
                *keys,
            )
        self._known(node, set(Address.__dataclass_fields__), *keys)
        addr, size = node.get("addr"), node.get("size", 1)
        if not isinstance(size, int) or not 1 <= size <= 8:
            raise self.wrong(f"size is {size!r}; use 1 to 8 bytes.", *keys, "size")
        if addr is not None:
            self._in_memory(addr, size, *keys, "addr")
        values: dict[str, Any] = {**node, "addr": addr}
        values["status"] = self._member(Status, node.get("status", "unknown"), *keys)
        values["kind"] = self._member(Kind, node.get("kind", "binary"), *keys)
        for switch, kind in (("signed", Kind.binary), ("big", Kind.binary), ("zero", Kind.digits)):
            if switch in node and values["kind"] is not kind:
                raise self.wrong(f"{switch} is for kind: {kind.value}; leave it out.", *keys)
            if switch != "zero" and type(node.get(switch, False)) is not bool:
                raise self.wrong(f"{switch} is {node[switch]!r}; use true or false.", *keys)
        for list_name in ("over", "match_over"):
            values[list_name] = self._bytes(node, list_name, keys)
        most = 256**size - 1
        for number, default, low in (("max", 255, -most), ("zero", 0, 0)):
            values[number] = self._whole(node, number, keys, default, (low, most))
        return Address(**values)

    def _in_memory(self, addr: Any, size: int, *keys: str | int) -> int:
        """An address with room for `size` bytes behind it."""
        if type(addr) is not int:
            raise self.wrong(
                f"address {addr!r} is no number; write it like 0xC0A0, without quotes.", *keys
            )
        if not LOWEST <= addr <= HIGHEST - size + 1:
            reach = f" with {size} bytes" if size > 1 else ""
            raise self.wrong(
                f"address {addr:#06x}{reach} lies outside $8000-$FFFF; write it like 0xC0A0.",
                *keys,
            )
        return addr

    def _member(self, kind: type[Enum], word: Any, *keys: str | int) -> Any:
        if not isinstance(word, str) or word not in {m.value for m in kind}:
            known = ", ".join(m.value for m in kind)
            raise self.wrong(f"{word!r} is none of {known}.", *keys)
        return kind(word)
