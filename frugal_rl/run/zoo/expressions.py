"""Arguments that hyperparameter files write as Python, `dict(net_arch=[64, 64])`, never run."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from frugal_rl.errors import DataError

LONGEST = 4096
"""Characters of an expression; published ones have some 200."""


@dataclass(frozen=True)
class Named:
    """Something that is called by its name, such as nn.ReLU."""

    name: str

    def __str__(self) -> str:
        return self.name


def read_expression(text: str) -> Any:
    """The value of literals, lists, `dict(...)` calls and dotted names.

    Raises:
        DataError: it is none of these, and would have to be run.

    Example:
        >>> read_expression("dict(net_arch=[dict(pi=[64], vf=[32])], log_std_init=-2)")
        {'net_arch': [{'pi': [64], 'vf': [32]}], 'log_std_init': -2}
    """
    if len(text) > LONGEST:
        raise DataError(f"it has {len(text):,} characters where {LONGEST:,} are the most")
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DataError("it is no expression of literals and dict(...)") from error
    return _value(parsed)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [_value(key) for key in node.keys if key is not None]
        if all(isinstance(key, str) for key in keys):
            return dict(zip(keys, map(_value, node.values), strict=True))
    if isinstance(node, ast.Call) and _is_dict(node):
        return {str(word.arg): _value(word.value) for word in node.keywords}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(node.operand)
        if isinstance(number, int | float) and not isinstance(number, bool):
            return -number
    if isinstance(node, ast.Name | ast.Attribute):
        return Named(_dotted(node))
    raise DataError(f"{ast.unparse(node)[:80]} would have to be run")


def _is_dict(call: ast.Call) -> bool:
    plain = isinstance(call.func, ast.Name) and call.func.id == "dict" and not call.args
    return plain and all(word.arg for word in call.keywords)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise DataError(f"{ast.unparse(node)[:80]} would have to be run")
