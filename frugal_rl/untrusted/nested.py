"""JSON and YAML of bounded length, depth and size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import yaml  # type: ignore[import-untyped]

from frugal_rl.errors import DataError
from frugal_rl.untrusted.limits import LIMITS, MIB, Limits
from frugal_rl.untrusted.printing import printable

MOST_DIGITS = 1000


def parse_json(text: str | bytes, limits: Limits = LIMITS) -> Any:
    """JSON of bounded length and depth.

    Raises:
        DataError: it is longer or deeper, or no JSON.
    """
    if len(text) > limits.text_bytes:
        raise DataError(f"{len(text) / MIB:.1f} MiB of JSON, above {limits.text_bytes / MIB:g}.")
    try:
        values = json.loads(text, parse_int=_whole)
    except RecursionError as error:
        raise DataError(f"JSON is nested deeper than {limits.depth} levels.") from error
    except ValueError as error:
        raise DataError(f"no JSON: {printable(str(error))}") from error
    if deeper_than(values, limits.depth):
        raise DataError(f"JSON is nested deeper than {limits.depth} levels.")
    return values


def _whole(digits: str) -> int:
    """A whole number; reading very long ones takes a time that grows with their square."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def deeper_than(values: Any, depth: int) -> bool:
    """Whether lists and mappings lie deeper inside each other; found without recursion."""
    level = [values]
    for _ in range(depth + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
        if not below:
            return False
        level = below
    return True


def parse_yaml(text: str, limits: Limits = LIMITS) -> Any:
    """YAML of plain values, bounded in length, depth and, with its aliases written out, in size.

    Raises:
        DataError: it is longer, deeper or larger, or no YAML; names the line.
    """
    return yaml_and_marks(text, limits)[0]


def yaml_and_marks(text: str, limits: Limits = LIMITS) -> tuple[Any, yaml.Node | None]:
    """The values of `parse_yaml`, and the nodes, which know their lines."""
    if len(text) > limits.yaml_bytes:
        raise DataError(f"{len(text) / MIB:.1f} MiB of YAML, above {limits.yaml_bytes / MIB:g}")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        _check_size(node, limits)
        return (None if node is None else loader.construct_document(node)), node
    except DataError:
        raise
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        words = printable(error.problem or "it cannot be read")
        raise DataError(f"{line}not valid YAML: {words}") from error
    except RecursionError as error:
        raise DataError(f"YAML is nested deeper than {limits.depth} levels") from error
    except Exception as error:  # PyYAML's constructors raise whatever a wrong scalar runs into
        raise DataError(f"not valid YAML: {printable(str(error))}") from error


def _check_size(node: yaml.Node | None, limits: Limits) -> None:
    """Refuse what is too deep or, where aliases repeat a part, too large to be walked through."""
    level, seen = [node] if node is not None else [], 0
    for _ in range(limits.depth + 1):
        seen += len(level)
        if seen > limits.entries:
            raise DataError(f"YAML holds more than {limits.entries:,} values")
        if not level:
            return
        below = chain.from_iterable(map(_below, level))
        level = list(islice(below, limits.entries + 1))
    raise DataError(f"YAML is nested deeper than {limits.depth} levels")


def _below(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from (key, value)
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
