"""What a file says of rows is looked at here, before a kernel or a gather follows it unchecked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.fields import EPISODE, Derived

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding, RowSpec
    from frugal_rl.observation.history import History
    from frugal_rl.observation.tables import Tables
    from frugal_rl.vec_env.interface import VectorEnv

AGE = "age"


def followed(encoding: Encoding) -> set[str]:
    """Names of rows whose numbers something is looked up by: ids, ages, sources of derived fields.

    Other rows reach networks only, which compute with any number.
    """
    sources = {s for f in encoding.spec.fields if isinstance(f, Derived) for s in f.sources}
    ages = {AGE} if encoding.windowed else set()
    return ages | {row.name for row in encoding.rows if row.name in {*sources, *_ids(encoding)}}


def _ids(encoding: Encoding) -> set[str]:
    return set(encoding.spec.id_rows())


def check_rows(
    encoding: Encoding, tables: Tables, rows: Mapping[str, np.ndarray], episode_steps: int
) -> None:
    """Refuse rows of a file that lead outside of what the run has built.

    Args:
        encoding: which rows there are, and their bounds.
        tables: what ids name.
        rows: in policy form or newest rows only, [B, ...] by name; some may be left out.
        episode_steps: of the longest episode; where windows hold whole ones, no age is above.

    Raises:
        EncodingError: naming the row.
    """
    tables.check_ids(rows)
    for row in encoding.rows:
        values = rows.get(row.name)
        if values is None or row.name in _ids(encoding):
            continue
        if values.dtype.kind == "f":
            if not np.isfinite(values).all():
                raise EncodingError(f"'{row.name}' holds a value that is not finite.")
        elif row.name in followed(encoding) and _as_declared(encoding, row):
            _check_range(row.name, values, row.low, row.high)
    if AGE in rows and encoding.windowed:
        whole = any(row.window == EPISODE for row in encoding.windowed)
        _check_range(AGE, rows[AGE], 0, episode_steps if whole else np.iinfo(np.int32).max)
    if encoding.spec.check is not None:
        encoding.spec.check(rows, tables)


def _as_declared(encoding: Encoding, row: RowSpec) -> bool:
    """Whether a row holds its field's values; others are bits of several, which any number is."""
    return row.shape == tuple(encoding.spec.by_name[row.name].shape)


def _check_range(name: str, values: np.ndarray, low: float, high: float) -> None:
    if values.size and not low <= values.min() <= values.max() <= high:
        raise EncodingError(
            f"'{name}' holds {values.min()} to {values.max()}, outside of {low:g} to {high:g}."
        )


def check_going_on(vec_env: VectorEnv, history: History, obs: Mapping[str, np.ndarray]) -> None:
    """Refuse what a checkpoint shows of running episodes, where it leads elsewhere.

    Args:
        vec_env: the environments, whose tables are those of the checkpoint.
        history: with the checkpoint's windows.
        obs: the observation that the next action answers, in policy form.

    Raises:
        EncodingError: naming the row.
    """
    kept = history.state()
    windows = {**kept["windows"], **({AGE: kept["age"]} if kept["windows"] else {})}
    for rows in (obs, {**obs, **windows}):
        check_rows(vec_env.encoding, vec_env.tables, rows, history.episode_steps)
    if AGE in windows and not np.array_equal(obs[AGE], windows[AGE]):
        raise EncodingError(f"'{AGE}' differs between what is observed and its history.")
