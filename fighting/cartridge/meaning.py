"""What an expression of a profile is worth: its tree becomes functions of a scene, [N] float64.

An expression that is meant `each` times, `n` counting, gives [each, N] in one go: `n` is a column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from fighting.cartridge.memory import Address, Kind
from fighting.cartridge.scene import FRAMES_PER_SECOND, Scene, Watched
from fighting.cartridge.syntax import Call, ExpressionError, Name, Number, Tree, parse

Value = Callable[[Scene], np.ndarray]
"""A moment of N machines -> [N] float64."""
HIGHEST = 0xFFFF
LOWEST = 0x8000


class UndefinedError(ArithmeticError):
    """An expression has no value at some moment, as a division by zero."""


def _integers(value: np.ndarray) -> np.ndarray:
    return np.asarray(value).astype(np.int64)


def _divided(by: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if not np.all(b):
            raise UndefinedError("divides by zero")
        return by(a, b)

    return divide


def _bits(operation: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda a, b: operation(_integers(a), _integers(b)).astype(np.float64)


def _shift(operation: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def shift(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if np.any(b < 0) or np.any(b > 31):
            raise UndefinedError("shifts by something else than 0 to 31")
        return operation(_integers(a), _integers(b)).astype(np.float64)

    return shift


def _one_of(value: np.ndarray, *others: np.ndarray) -> np.ndarray:
    return np.any([value == other for other in others], axis=0)


PLAIN: Mapping[str, tuple[int, int, Callable[..., np.ndarray]]] = {
    "or": (2, 2, lambda a, b: (a != 0) | (b != 0)),
    "and": (2, 2, lambda a, b: (a != 0) & (b != 0)),
    "not ": (1, 1, lambda a: a == 0),
    "==": (2, 2, np.equal),
    "!=": (2, 2, np.not_equal),
    "<": (2, 2, np.less),
    "<=": (2, 2, np.less_equal),
    ">": (2, 2, np.greater),
    ">=": (2, 2, np.greater_equal),
    "|": (2, 2, _bits(np.bitwise_or)),
    "^": (2, 2, _bits(np.bitwise_xor)),
    "&": (2, 2, _bits(np.bitwise_and)),
    "~ ": (1, 1, lambda a: (~_integers(a) & 0xFF).astype(np.float64)),
    "<<": (2, 2, _shift(np.left_shift)),
    ">>": (2, 2, _shift(np.right_shift)),
    "+": (2, 2, np.add),
    "-": (2, 2, np.subtract),
    "- ": (1, 1, np.negative),
    "*": (2, 2, np.multiply),
    "/": (2, 2, _divided(np.divide)),
    "//": (2, 2, _divided(np.floor_divide)),
    "%": (2, 2, _divided(np.mod)),
    "min": (2, 9, lambda *v: np.minimum.reduce(np.broadcast_arrays(*v))),
    "max": (2, 9, lambda *v: np.maximum.reduce(np.broadcast_arrays(*v))),
    "abs": (1, 1, np.abs),
    "clip": (3, 3, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "if": (3, 3, lambda c, a, b: np.where(c != 0, a, b)),
    "one_of": (2, 33, _one_of),
}
"""Operators and functions of values: fewest and most operands, and what they do."""
READS: Mapping[str, tuple[int, int]] = {
    "byte": (1, 1),
    "signed": (1, 1),
    "word": (1, 1),
    "word_be": (1, 1),
    "bcd": (2, 2),
    "digits": (2, 3),
    "pixel": (2, 2),
}
"""Functions of constants that read memory or the screen."""
CHANGES: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "was": lambda now, before: before,
    "change": lambda now, before: now - before,
    "rise": lambda now, before: np.maximum(now - before, 0),
    "fall": lambda now, before: np.maximum(before - now, 0),
    "changed": lambda now, before: now != before,
    "began": lambda now, before: (now != 0) & (before == 0),
    "ended": lambda now, before: (now == 0) & (before != 0),
}
"""Functions of a value now and one step before."""
KEPT: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "start": lambda kept, now: kept,
    "best": np.maximum,
    "lowest": np.minimum,
    "seen": lambda kept, new: kept + new,
}
"""Functions that remember the episode: what is kept after one more step."""
CLOCKS: Mapping[str, Value] = {
    "steps": lambda scene: scene.steps.astype(np.float64),
    "frames": lambda scene: scene.frames.astype(np.float64),
    "seconds": lambda scene: scene.frames / FRAMES_PER_SECOND,
}
FUNCTIONS = (*sorted(n for n in PLAIN if n.isidentifier() and n not in ("or", "and")),)
EVERY = (*FUNCTIONS, *READS, *CHANGES, *KEPT)


@dataclass
class Meanings:
    """Compiles the expressions of one profile; together they say what must be watched.

    `slots` are the values that `start`, `best`, `lowest` and `seen` keep, inner ones first.
    """

    memory: Mapping[str, Address]
    watched: Watched = field(default_factory=Watched)
    slots: list[tuple[str, Value]] = field(default_factory=list)
    maps: dict[int, int] = field(default_factory=dict)
    """Slots of `seen`, and the map of each."""
    used: set[str] = field(default_factory=set)
    each: int = 0
    """Of the expression that is being compiled."""

    def of(self, text: str, each: int = 0) -> Value:
        """The value of an expression; `each` is how many `n` it is asked for, 0 without `n`.

        Raises:
            ExpressionError: it cannot be read, or names something unknown.
        """
        self.each = each
        return _whole(self._value(parse(text), inside=""), each)

    def _value(self, tree: Tree, inside: str) -> Value:
        if isinstance(tree, Number):
            number = np.float64(tree.value)
            return lambda scene: number
        if isinstance(tree, Name):
            return self._name(tree)
        if tree.name in PLAIN:
            return self._plain(tree, inside)
        if tree.name in READS:
            return self._read(tree)
        if tree.name in CHANGES or tree.name in KEPT:
            return self._of_time(tree, inside)
        raise ExpressionError(f"no function {tree.name!r}; there are {', '.join(EVERY)}", tree.at)

    def _name(self, tree: Name) -> Value:
        if tree.name in CLOCKS:
            return CLOCKS[tree.name]
        if self.each and tree.name == "n":
            numbers = np.arange(self.each, dtype=np.float64)[:, None]
            return lambda scene: numbers
        address = self.memory.get(tree.name)
        if address is None:
            known = ", ".join([*self.memory, *CLOCKS])
            raise ExpressionError(f"no value {tree.name!r}; there are {known}", tree.at)
        self.used.add(tree.name)
        if address.addr is None:
            raise ExpressionError(f"the profile does not know where {tree.name!r} is", tree.at)
        return self._at(address)

    def _plain(self, tree: Call, inside: str) -> Value:
        fewest, most, function = PLAIN[tree.name]
        self._count(tree, fewest, most)
        values = [self._value(operand, inside) for operand in tree.operands]
        return lambda scene: np.asarray(function(*(v(scene) for v in values)), np.float64)

    def _of_time(self, tree: Call, inside: str) -> Value:
        self._count(tree, 1, 1)
        if tree.name in KEPT:
            if self.each:
                raise ExpressionError(f"{tree.name} cannot stand in an expression of each", tree.at)
            return self._kept(tree)
        if inside:
            raise ExpressionError(f"{tree.name} cannot stand inside {inside}", tree.at)
        value, function = self._value(tree.operands[0], tree.name), CHANGES[tree.name]

        def changed(scene: Scene) -> np.ndarray:
            assert scene.before is not None
            return np.asarray(function(value(scene), value(scene.before)), np.float64)

        return changed

    def _kept(self, tree: Call) -> Value:
        value = self._value(tree.operands[0], tree.name)
        place = len(self.slots)
        self.slots.append((tree.name, value))
        if tree.name == "seen":
            self.maps[place] = len(self.maps)
        return lambda scene: scene.slots[:, place]

    def _read(self, tree: Call) -> Value:
        self._count(tree, *READS[tree.name])
        first, *others = tree.operands
        counts = 0
        if self.each and tree.name != "pixel" and _is_sum_with_n(first):
            first, counts = first.operands[0], self.each
        numbers = [self._constant(operand, tree.name) for operand in (first, *others)]
        if tree.name == "pixel":
            return self._pixel(numbers, tree.at)
        address, size = numbers[0], numbers[1] if len(numbers) > 1 else 1
        kind = Kind(tree.name) if tree.name in ("bcd", "digits") else Kind.binary
        if tree.name in ("word", "word_be"):
            size = 2
        last = address + size - 1 + max(counts - 1, 0)
        if address < LOWEST or last > HIGHEST or not 1 <= size <= 8:
            words = f"{size} bytes at ${address:04X} lie outside ${LOWEST:04X}-${HIGHEST:04X}"
            raise ExpressionError(words, tree.at)
        found = Address(
            address,
            size=size,
            kind=kind,
            signed=tree.name == "signed",
            big=tree.name == "word_be",
            zero=numbers[2] if len(numbers) > 2 else 0,
        )
        return self._in_turn(found, counts) if counts else self._at(found)

    def _in_turn(self, address: Address, count: int) -> Value:
        """The numbers at `count` addresses that follow each other, [count, N]."""
        first, size = address.addr, address.size
        assert first is not None
        columns = [[self.watched.byte(first + n + i) for i in range(size)] for n in range(count)]

        def numbers(scene: Scene) -> np.ndarray:
            data = scene.memory[:, columns].reshape(-1, size)
            return address.numbers(data).reshape(-1, count).T

        return numbers

    def _at(self, address: Address) -> Value:
        """The number at an address, of all machines."""
        assert address.addr is not None
        columns = [self.watched.byte(address.addr + i) for i in range(address.size)]
        return lambda scene: address.numbers(scene.memory[:, columns])

    def _pixel(self, place: Sequence[int], at: int) -> Value:
        x, y = place
        if not (0 <= x < 160 and 0 <= y < 144):
            raise ExpressionError(f"pixel ({x}, {y}) lies outside the screen of 160 x 144", at)
        column = self.watched.pixel(x, y)
        return lambda scene: scene.pixels[:, column].astype(np.float64)

    @staticmethod
    def _constant(tree: Tree, name: str) -> int:
        if not isinstance(tree, Number) or tree.value != int(tree.value):
            raise ExpressionError(f"{name} takes whole numbers, written out", tree.at)
        return int(tree.value)

    @staticmethod
    def _count(tree: Call, fewest: int, most: int) -> None:
        if not fewest <= len(tree.operands) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            words = f"{tree.name.strip()} takes {wanted} values, not {len(tree.operands)}"
            raise ExpressionError(words, tree.at)

    def begin(self, scene: Scene, which: np.ndarray) -> None:
        """New episodes: what is kept is what is now, and nothing has changed yet."""
        scene.steps[which] = scene.frames[which] = 0
        scene.pass_on(which)
        for place, (_, value) in enumerate(self.slots):
            now = np.broadcast_to(value(scene), scene.steps.shape)[which]
            if place in self.maps:
                scene.maps[which, self.maps[place]] = 0
                now = _met(scene.maps[:, self.maps[place]], which, now)
            scene.slots[which, place] = now
        scene.pass_on(which)

    def keep(self, scene: Scene) -> None:
        """One more step: what is kept takes in what is now."""
        for place, (name, value) in enumerate(self.slots):
            now = np.broadcast_to(value(scene), scene.steps.shape)
            if place in self.maps:
                now = _met(scene.maps[:, self.maps[place]], np.arange(len(now)), now)
            scene.slots[:, place] = KEPT[name](scene.slots[:, place], now)


def _met(bits: np.ndarray, which: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Marks values [n] in the maps (N, 8192) of the machines `which`; 1 where one is new."""
    cell = _integers(values) & 0xFFFF
    bit = (1 << (cell & 7)).astype(np.uint8)
    new = bits[which, cell >> 3] & bit == 0
    bits[which, cell >> 3] |= bit
    return new.astype(np.float64)


def _is_sum_with_n(tree: Tree) -> TypeGuard[Call]:
    """Whether it reads `... + n`."""
    if not isinstance(tree, Call) or tree.name != "+":
        return False
    last = tree.operands[1]
    return isinstance(last, Name) and last.name == "n"


def _whole(value: Value, each: int) -> Value:
    """A value per machine also where an expression is one number for all."""

    def whole(scene: Scene) -> np.ndarray:
        shape = (each, *scene.steps.shape) if each else scene.steps.shape
        return np.broadcast_to(value(scene), shape).astype(np.float64)

    return whole
