"""The language of profiles: numbers, names, operators and calls. Text in, a tree out; no `eval`.

rise(score) / 100 - (lives < was(lives))
byte(0xC0A0) & 0x0F == 3 and seconds > 2
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 2000
"""Characters of one expression."""
DEEPEST = 40
"""Brackets within brackets."""
TOKEN = re.compile(
    r"\s*(?:(?P<hex>(?:0[xX]|\$)[0-9A-Fa-f]+)|(?P<bin>0[bB][01]+)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op><=|>=|==|!=|//|<<|>>|[-+*/%<>&|^~(),]))"
)
LEVELS: tuple[tuple[str, ...], ...] = (
    ("or",),
    ("and",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "//", "%"),
)
"""Binary operators, the loosest first. `&` binds tighter than `==`, as people read it."""
COMPARISONS = LEVELS[2]


class ExpressionError(ValueError):
    """An expression that cannot be read; `at` is the offset of the culprit in its text."""

    def __init__(self, words: str, at: int) -> None:
        super().__init__(words)
        self.at = at


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: float
    at: int


@dataclass(frozen=True)
class Name:
    """A value of the profile's `memory:`, or one of time."""

    name: str
    at: int


@dataclass(frozen=True)
class Call:
    """A function or an operator with its operands."""

    name: str
    operands: tuple[Tree, ...]
    at: int


Tree = Number | Name | Call


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str) -> Tree:
    """The tree of an expression.

    Raises:
        ExpressionError: it cannot be read.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"the expression has {len(text)} characters, at most {LONGEST}", 0)
    return _Parser(_tokens(text), len(text)).whole()


def _tokens(text: str) -> list[_Token]:
    found, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            raise ExpressionError(f"{text[start]!r} means nothing here", start)
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        place = match.end()
    return found


class _Parser:
    """Precedence climbing over the tokens of one expression."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self.tokens, self.end = tokens, end
        self.next, self.depth = 0, 0

    def whole(self) -> Tree:
        tree = self.binary(0)
        if self.next < len(self.tokens):
            token = self.tokens[self.next]
            raise ExpressionError(f"{token.text!r} is left over", token.at)
        return tree

    def peek(self) -> str:
        return self.tokens[self.next].text if self.next < len(self.tokens) else ""

    def take(self, wanted: str = "") -> _Token:
        if self.next == len(self.tokens):
            missing = f"{wanted!r} is missing" if wanted else "a value is missing"
            raise ExpressionError(f"{missing} at the end", self.end)
        token = self.tokens[self.next]
        if wanted and token.text != wanted:
            raise ExpressionError(f"{wanted!r} is missing before {token.text!r}", token.at)
        self.next += 1
        return token

    def binary(self, level: int) -> Tree:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            operator = self.take()
            left = Call(operator.text, (left, self.binary(level + 1)), operator.at)
            if operator.text in COMPARISONS and self.peek() in COMPARISONS:
                raise ExpressionError("join two comparisons by 'and'", self.take().at)
        return left

    def unary(self) -> Tree:
        if self.peek() not in ("-", "~", "not"):
            return self.atom()
        operator = self.take()
        self.deeper(operator)
        # `not a == b` negates the comparison, `-a * b` only the a.
        operand = self.binary(2) if operator.text == "not" else self.unary()
        self.depth -= 1
        return Call(f"{operator.text} ", (operand,), operator.at)

    def atom(self) -> Tree:
        token = self.take()
        match token.kind:
            case "hex":
                return Number(int(token.text.lstrip("$"), 16), token.at)
            case "bin":
                return Number(int(token.text[2:], 2), token.at)
            case "number":
                return Number(float(token.text), token.at)
            case "name" if token.text not in ("and", "or"):
                return self.call(token) if self.peek() == "(" else Name(token.text, token.at)
        if token.text != "(":
            raise ExpressionError(f"{token.text!r} is out of place", token.at)
        self.deeper(token)
        inner = self.binary(0)
        self.take(")")
        self.depth -= 1
        return inner

    def call(self, name: _Token) -> Tree:
        self.deeper(self.take("("))
        operands = [self.binary(0)] if self.peek() != ")" else []
        while self.peek() == ",":
            self.take()
            operands.append(self.binary(0))
        self.take(")")
        self.depth -= 1
        return Call(name.text, tuple(operands), name.at)

    def deeper(self, token: _Token) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ExpressionError(f"more than {DEEPEST} brackets within brackets", token.at)
