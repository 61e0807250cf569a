"""A block's money by a formula over the model's columns: `ton * (au * 0.9 * 60 - 14)`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.untrusted.printing import printable
from mine_rl_npv.data.missing import refuse_missing

LONGEST = 1000
"""Characters of a formula, so that none is nested deeper than the parser goes."""
_OPERATORS: dict[type[ast.operator], Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], int]] = {
    "min": (np.minimum, 2),
    "max": (np.maximum, 2),
    "where": (np.where, 3),
}


def formula_values(formula: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """What the formula gives for each block (N,) float64.

    It knows numbers, columns, `+ - * / **`, comparisons, `min(a, b)`, `max(a, b)` and
    `where(a > b, then, else)`, and nothing else of Python.

    Args:
        formula: as the user wrote it.
        columns: (N,) float64 by role or lower-case name; at least one.

    Raises:
        ConfigError: it is none, names an unknown column, or some block has no finite value.
    """
    told = f"economics.formula='{printable(formula)}'"
    if len(formula) > LONGEST:
        raise ConfigError(f"economics.formula has {len(formula)} characters; {LONGEST} at most.")
    try:
        tree = ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ConfigError(f"{told} cannot be read: {printable(str(error))}.") from error
    for name in sorted({node.id.lower() for node in ast.walk(tree) if isinstance(node, ast.Name)}):
        if name in columns:
            refuse_missing(told, name, columns[name])
    count = len(next(iter(columns.values())))
    try:
        with np.errstate(all="ignore"):
            found = np.broadcast_to(_value(tree, columns), count).astype(np.float64)
    except _UnknownError as error:
        raise ConfigError(
            f"{told}: {error}. It may hold numbers, + - * / **, comparisons, min(a, b), max(a, b), "
            f"where(a > b, then, else) and the columns {printable(', '.join(columns))}."
        ) from error
    wrong = ~np.isfinite(found)
    if wrong.any():
        raise ConfigError(
            f"{told} gives no finite number for {int(wrong.sum())} of {count} blocks, the first of "
            f"which is block {int(np.argmax(wrong)) + 1} of the file."
        )
    return found


class _UnknownError(Exception):
    """What a formula may not hold."""


def _value(node: ast.expr, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """One part of a formula, for all blocks or as a number."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return np.asarray(number, np.float64)
        case ast.Name(id=name) if name.lower() in columns:
            return columns[name.lower()]
        case ast.Name(id=name):
            raise _UnknownError(f"the model has no column of numbers '{printable(name)}'")
        case ast.UnaryOp(op=ast.USub(), operand=one):
            return -_value(one, columns)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(left, columns), _value(right, columns))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
            holds = _COMPARISONS[type(sign)](_value(left, columns), _value(right, columns))
            return holds.astype(np.float64)
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in _FUNCTIONS:
            function, wanted = _FUNCTIONS[name]
            if len(parts) != wanted:
                raise _UnknownError(f"{name} takes {wanted} values")
            return np.asarray(function(*(_value(part, columns) for part in parts)))
    raise _UnknownError(f"'{printable(ast.unparse(node))}' is none of what it knows")
