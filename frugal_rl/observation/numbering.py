"""The order of static rows, kept in checkpoints: stored rows name them by number.

Tables that single environments fill are numbered in the order in which contents were met, which
environments that go on from a state do not repeat.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import EncodingError

if TYPE_CHECKING:
    from frugal_rl.observation.tables import StaticTable, Tables

Kept = dict[str, Any]
WITHOUT = (
    "The checkpoint does not hold the static rows that its observations refer to, as those written "
    "by earlier versions. Begin the run anew; its policy can be evaluated and played."
)


def numbered(tables: Tables) -> Kept:
    """All rows of all tables in the order of their ids: views of arrays, and keys.

    Raises:
        NotImplementedError: a key is none that a file can hold.
    """
    return {name: _table(table) for name, table in tables.items()}


def number_again(tables: Tables, kept: Any) -> dict[str, np.ndarray]:
    """Give rows the ids that they had; others that are there already follow behind.

    Args:
        tables: as new environments have filled them.
        kept: `numbered` of the tables as they were; it comes from a file.

    Returns:
        For each table the new ids [len] of its rows, by the ids they had here.

    Raises:
        EncodingError: it holds something else than rows of these tables.
    """
    if not isinstance(kept, Mapping) or kept.keys() != tables.keys():
        raise EncodingError(WITHOUT)
    for name, table in tables.items():
        _check(table, kept[name])
    return {name: _put(table, kept[name]) for name, table in tables.items()}


def _table(table: StaticTable) -> Kept:
    return {
        "keys": [_plain(key, table.name) for key in table.keys],
        "rows": {name: table[name] for name in table.fields},
        "ends": {name: table.offsets(name) for name, f in table.fields.items() if f.ragged},
    }


def _put(table: StaticTable, kept: Kept) -> np.ndarray:
    present = [(key, _copy(table.row(i))) for i, key in enumerate(table.keys)]
    table.clear()
    for i, key in enumerate(kept["keys"]):
        table.intern(_key(key), partial(_row, table, kept, i))
    return np.array([table.intern(key, partial(dict, rows)) for key, rows in present], np.int32)


def _row(table: StaticTable, kept: Kept, i: int) -> dict[str, np.ndarray]:
    row = {}
    for name, spec in table.fields.items():
        values = kept["rows"][name]
        row[name] = values[slice(*kept["ends"][name][i : i + 2])] if spec.ragged else values[i]
    return row


def _copy(row: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in row.items()}


def _plain(key: Hashable, name: str) -> Any:
    if isinstance(key, tuple):
        return [_plain(part, name) for part in key]
    if isinstance(key, np.generic):
        key = key.item()
    if key is None or type(key) in (bool, int, float, str, bytes):
        return key
    raise NotImplementedError(f"A key of table '{name}' is a {type(key).__name__}.")


def _key(plain: Any) -> Hashable:
    return tuple(_key(part) for part in plain) if isinstance(plain, list) else plain


def _check(table: StaticTable, kept: Any) -> None:
    """Refuse what a file says of a table before it is read by its numbers."""
    try:
        keys, rows, ends = kept["keys"], kept["rows"], kept["ends"]
        fits = len({_key(key) for key in keys}) == len(keys) and rows.keys() == table.fields.keys()
        for name, spec in table.fields.items():
            values, item = rows[name], table[name]
            fits = fits and (values.dtype, values.shape[1:]) == (item.dtype, item.shape[1:])
            length = len(keys)
            if spec.ragged:
                fits, length = fits and _sound(ends[name], len(keys)), int(ends[name][-1])
            fits = fits and len(values) == length
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        fits = False
    if not fits:
        raise EncodingError(f"The rows that are kept of table '{table.name}' are none of its rows.")


def _sound(ends: np.ndarray, rows: int) -> bool:
    """Whether these are where ragged rows begin."""
    whole = ends.dtype == np.int64 and ends.shape == (rows + 1,) and ends[0] == 0
    return bool(whole and (np.diff(ends) >= 0).all())
