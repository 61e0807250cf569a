"""Numbers in assembly source: literals, names, operators, `HIGH()` and `LOW()`."""

import re
from collections.abc import Callable

TOKEN = re.compile(
    r"\s*(?:(?P<hex>\$[0-9A-Fa-f]+)|(?P<bin>%[01]+)|(?P<tile>`[0-3]{8})|(?P<dec>\d+)"
    r"|(?P<name>[A-Za-z_.][\w.]*)|(?P<op><<|>>|[-+*/&|^~()]))"
)
BINDING = {"*": 4, "/": 4, "<<": 3, ">>": 3, "&": 2, "|": 2, "^": 2, "+": 1, "-": 1}
"""How tightly an operator binds, in RGBDS' order (bit operators before sums)."""
FUNCTIONS: dict[str, Callable[[int], int]] = {
    "HIGH": lambda value: value >> 8 & 0xFF,
    "LOW": lambda value: value & 0xFF,
}


class ExpressionError(ValueError):
    """An expression that cannot be read or has no value."""


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Splits `text` into (kind, spelling) pairs."""
    found, position, text = [], 0, text.strip()
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"cannot read {text[position:]!r} in the expression {text!r}")
        found.append((match.lastgroup, match.group(match.lastgroup)))
        position = match.end()
    return found


def tile_row(digits: str) -> int:
    """Eight pixels `0`..`3` as a word: low byte the low bits, leftmost pixel in bit 7."""
    low = sum((int(d) & 1) << 7 - i for i, d in enumerate(digits))
    high = sum((int(d) >> 1) << 7 - i for i, d in enumerate(digits))
    return high << 8 | low


class Evaluator:
    """Precedence climbing over one expression.

    Args:
        text: the expression.
        lookup: gives a name's value or raises `ExpressionError`.
    """

    def __init__(self, text: str, lookup: Callable[[str], int]) -> None:
        self.text, self.lookup = text, lookup
        self.tokens = tokens_of(text)
        self.next = 0

    def value(self) -> int:
        """The whole expression's value."""
        result = self.climb(1)
        if self.next != len(self.tokens):
            raise ExpressionError(f"{self.tokens[self.next][1]!r} is left over in {self.text!r}")
        return result

    def take(self) -> tuple[str, str]:
        """The next token."""
        if self.next == len(self.tokens):
            raise ExpressionError(f"the expression {self.text!r} ends too early")
        self.next += 1
        return self.tokens[self.next - 1]

    def climb(self, level: int) -> int:
        """Reads operands joined by operators that bind at least as tightly as `level`."""
        left = self.operand()
        while self.next < len(self.tokens):
            operator = self.tokens[self.next][1]
            if BINDING.get(operator, 0) < level:
                break
            self.next += 1
            left = self.apply(operator, left, self.climb(BINDING[operator] + 1))
        return left

    def apply(self, operator: str, left: int, right: int) -> int:
        """The value of `left operator right`; division rounds down."""
        if operator == "/" and right == 0:
            raise ExpressionError(f"division by zero in {self.text!r}")
        if operator in ("<<", ">>") and not 0 <= right <= 32:
            raise ExpressionError(f"a shift by {right} in {self.text!r}")
        operations: dict[str, Callable[[], int]] = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left // right,
            "<<": lambda: left << right,
            ">>": lambda: left >> right,
            "&": lambda: left & right,
            "|": lambda: left | right,
            "^": lambda: left ^ right,
        }
        return operations[operator]()

    def operand(self) -> int:
        """A literal, a name, a bracketed expression or a unary operator's operand."""
        kind, spelling = self.take()
        match kind:
            case "hex":
                return int(spelling[1:], 16)
            case "bin":
                return int(spelling[1:], 2)
            case "dec":
                return int(spelling)
            case "tile":
                return tile_row(spelling[1:])
            case "name" if spelling.upper() in FUNCTIONS:
                return FUNCTIONS[spelling.upper()](self.operand())
            case "name":
                return self.lookup(spelling)
        if spelling == "(":
            inner = self.climb(1)
            if self.take()[1] != ")":
                raise ExpressionError(f"a bracket is not closed in {self.text!r}")
            return inner
        if spelling in "+-~":
            value = self.operand()
            return {"+": value, "-": -value, "~": ~value}[spelling]
        raise ExpressionError(f"{spelling!r} is out of place in {self.text!r}")
