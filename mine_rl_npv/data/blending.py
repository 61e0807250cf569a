"""Blending: the mean of a column over the ore milled in each period stays between two limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.economics import MILL
from mine_rl_npv.data.instance import GeneralRows
from mine_rl_npv.data.missing import refuse_missing

NUMBER = r"\d+(?:\.\d+)?"


def blending_rows(
    fields: Mapping[str, np.ndarray], periods: int, words: Sequence[str]
) -> GeneralRows:
    """Rows sum tonnes * (column - limit) * share milled >= 0 or <= 0, one per limit and period.

    Args:
        fields: (n,) columns of the model by name, `ton` among them.
        periods: T.
        words: `COLUMN:LOW-HIGH` each, as `cu:0.4-0.9`, `clays:-3` or `cu:0.5-`.

    Raises:
        ConfigError: a limit is not of that form, or the model has no such column.
    """
    tonnes, low, high = fields["ton"], [], []
    excess = []
    for word in words:
        name, least, most = _limits(word, fields)
        refuse_missing("constraints.blend", name, fields[name])
        for limit, below in ((least, True), (most, False)):
            if limit is not None:
                excess += [tonnes * (fields[name] - limit)]
                low += [0.0 if below else -np.inf]
                high += [np.inf if below else 0.0]
    blocks, rows = len(tonnes), len(excess)
    each = np.arange(rows * periods)
    return GeneralRows(
        row=np.repeat(each, blocks).astype(np.int32),
        block=np.tile(np.arange(blocks), rows * periods).astype(np.int32),
        destination=np.full(rows * periods * blocks, MILL, np.int32),
        period=np.repeat(each % periods, blocks).astype(np.int32),
        value=np.concatenate([np.tile(one, periods) for one in excess]),
        low=np.repeat(low, periods),
        high=np.repeat(high, periods),
    )


def _limits(word: str, fields: Mapping[str, np.ndarray]) -> tuple[str, float | None, float | None]:
    found = re.fullmatch(rf"\s*([^:]+?)\s*:\s*({NUMBER})?\s*-\s*({NUMBER})?\s*", word)
    if found is None or not (found[2] or found[3]):
        raise ConfigError(
            f"constraints.blend: '{word}' is not of the form COLUMN:LOW-HIGH, COLUMN:LOW- or "
            "COLUMN:-HIGH."
        )
    least, most = (float(number) if number else None for number in found.group(2, 3))
    if found[1] not in fields:
        raise ConfigError(
            f"constraints.blend: the model has no column '{found[1]}'; it has {', '.join(fields)}."
        )
    if least is not None and most is not None and least > most:
        raise ConfigError(f"constraints.blend: '{word}' asks for more than it allows.")
    return found[1], least, most


def by_period_alone(rows: GeneralRows) -> bool:
    """Whether each row looks at one period, and using none of what it knows meets all of them."""
    first = np.full(len(rows.low), -1)
    first[rows.row] = rows.period
    return bool(
        np.all(first[rows.row] == rows.period) and np.all((rows.low <= 0) & (rows.high >= 0))
    )
