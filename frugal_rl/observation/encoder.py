"""The environment's edge: raw fields become the rows that travel, once, and back for reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs.codec import DenseCodec
from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.observation.spec import AnyField, Derived, ObservationSpec, Private, Static, Stored

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.codec import Codec
    from frugal_rl.observation.encoding import Encoding, RowSpec
    from frugal_rl.observation.tables import StaticTable, Tables

Raw = Mapping[str, np.ndarray]
"""Raw fields by name, each [N, *shape]; ids of static tables as `<table>_id` [N]."""


class Encoder:
    """Turns raw fields of N environments into the rows of an encoding.

    With `reuse`, coded rows are written into arrays allocated once (valid until the next call), and
    dense rows are the raw arrays themselves; otherwise each call returns arrays of its own. With
    `debug`, each call also checks that raw values lie within the ranges that the spec declares.
    """

    def __init__(
        self,
        encoding: Encoding,
        tables: Tables,
        num_envs: int,
        reuse: bool = True,
        debug: bool = False,
    ) -> None:
        self.encoding = encoding
        self.tables = tables
        self._needs_past = _derived_from_windows(encoding)
        self._made_names = made_names(encoding)
        self.reuse = reuse
        self.debug = debug
        self._coded = {r.name for r in encoding.rows if _is_coded(encoding.spec, r)}
        self._out = {
            r.name: np.zeros((num_envs, *r.shape), r.dtype)
            for r in encoding.rows
            if reuse and r.name in self._coded
        }
        self._coded_tables: dict[str, GrowingArray] = {}

    def encode(self, raw: Raw, lasting: bool = False) -> dict[str, np.ndarray]:
        """The rows [N, *row shape] of raw fields [N, *shape]; N may be below `num_envs`.

        With `lasting` they are arrays of their own, as without `reuse`.
        """
        values: dict[str, np.ndarray] = {}
        reused = self.reuse and not lasting
        return {r.name: self._encode_row(r, raw, values, reused) for r in self.encoding.rows}

    @property
    def nbytes(self) -> int:
        """Bytes of the reused rows and of coded copies of static tables."""
        arenas = sum(a.nbytes for a in self._coded_tables.values())
        return sum(int(a.nbytes) for a in self._out.values()) + arenas

    def _encode_row(
        self, row: RowSpec, raw: Raw, values: dict[str, np.ndarray], reused: bool
    ) -> np.ndarray:
        f = self.encoding.spec.by_name.get(row.name)
        if f is None:
            ids = np.asarray(_given(raw, row.name), np.int32)
            return ids if reused else ids.copy()
        made = self._made_names[row.name]
        if made in raw:
            return self._made(row, raw[made], reused)
        if isinstance(f, Static) and f.name not in raw:
            return self._gather_static(f, row, raw, reused)
        if f.name in self._needs_past and f.name not in raw:
            raise EncodingError(
                f"Field '{f.name}' is computed from past rows, which the encoder does not have: "
                f"choose env.fields.{f.name}=derived, or let the environment give it as well."
            )
        value = value_of(f.name, self.encoding, raw, self.tables, values)
        self._check(f, value)
        if row.name not in self._coded:
            return value if reused else value.copy()
        try:
            if not reused:
                return row.codec.encode(value)
            out = self._out[row.name][: len(value)]
            row.codec.encode_into(value, out)
        except EncodingError as error:
            raise EncodingError(f"Field '{f.name}'{_none_of(value)}: {error}") from error
        return out

    def _made(self, row: RowSpec, stored: np.ndarray, reused: bool) -> np.ndarray:
        """A row that the environment has encoded itself."""
        if stored.shape[1:] != row.shape or stored.dtype != row.dtype:
            raise EncodingError(
                f"'{self._made_names[row.name]}' holds rows of {row.shape} {row.dtype}, but the "
                f"environment gave {stored.shape[1:]} {stored.dtype}."
            )
        return stored if reused else stored.copy()

    def _gather_static(self, f: Static, row: RowSpec, raw: Raw, reused: bool) -> np.ndarray:
        """Rows of a static field by id, coded once per distinct content."""
        coded = self._coded_tables.setdefault(f.name, GrowingArray(row.shape, row.dtype))
        table = self.tables[f.table]
        if coded.used < len(table):
            coded.append(row.codec.encode(dense_static(table, f, coded.used)))
        ids = _given(raw, f"{f.table}_id")
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(table):
            raise EncodingError(
                f"Ids of table '{f.table}' run from {ids.min()} to {ids.max()}, but it has "
                f"{len(table)} rows. Intern a row before handing out its id."
            )
        if not reused:
            return np.take(coded.values, ids, axis=0)
        out = self._out[row.name][: len(ids)]
        np.take(coded.values, ids, axis=0, out=out, mode="clip")
        return out

    def _check(self, f: AnyField, value: np.ndarray) -> None:
        """Shape and dtype always, ranges in debug mode."""
        if value.shape[1:] != f.shape or value.dtype != np.dtype(f.dtype):
            raise EncodingError(
                f"Field '{f.name}' is declared as {f.shape} {np.dtype(f.dtype)}, but the "
                f"environment gave {value.shape[1:]} {value.dtype}. "
                "Change the spec or the environment."
            )
        if self.debug and value.size and not f.low <= value.min() <= value.max() <= f.high:
            raise EncodingError(
                f"Field '{f.name}' is declared within [{f.low}, {f.high}], but the environment "
                f"gave values from {value.min()} to {value.max()}."
            )


def _none_of(value: np.ndarray) -> str:
    """Which of N environments gave a field's first value that is not finite, if one did."""
    if value.dtype.kind != "f" or np.isfinite(value).all():
        return ""
    return f" of environment {np.argwhere(~np.isfinite(value))[0][0]}"


def _is_coded(spec: ObservationSpec, row: RowSpec) -> bool:
    """Whether rows are written by the encoder; others are the raw arrays themselves."""
    return not isinstance(row.codec, DenseCodec) or isinstance(spec.by_name.get(row.name), Static)


def made_name(name: str, codec: Codec) -> str:
    """The raw field of an environment that makes a stored row itself, in place of the field."""
    return f"{name}_{codec.name}"


def made_names(encoding: Encoding) -> dict[str, str]:
    """`made_name` of each row that is a field's; empty where a field of the spec is called so."""
    spec, names = encoding.spec, {}
    for row in encoding.rows:
        made = made_name(row.name, row.codec)
        names[row.name] = "" if made in spec.by_name else made
    return names


def needed_raw(encoding: Encoding, given: Collection[str]) -> list[str]:
    """Names of the raw fields that `Encoder` reads, of those that an environment gives."""
    spec = encoding.spec
    needed: dict[str, None] = {}
    made = made_names(encoding)
    todo = [made[r.name] if made[r.name] in given else r.name for r in encoding.rows]
    while todo:
        name = todo.pop(0)
        f = spec.by_name.get(name)
        if name in given:
            needed[name] = None
        elif isinstance(f, Static):
            todo.append(f"{f.table}_id")
        elif isinstance(f, Derived):
            todo.extend(f.sources)
        else:
            _given({n: np.empty(0) for n in given}, name)
    return list(needed)


def _derived_from_windows(encoding: Encoding) -> set[str]:
    """Derived fields with a windowed source, directly or through another derived field."""
    past = {r.name for r in encoding.windowed}
    past |= {f.name for f in encoding.spec.fields if isinstance(f, Stored) and f.window != 1}
    derived = [f for f in encoding.spec.fields if isinstance(f, Derived)]
    for _ in derived:
        past |= {f.name for f in derived if past & set(f.sources)}
    return past & {f.name for f in derived}


def _given(raw: Raw, name: str) -> np.ndarray:
    if name not in raw:
        raise EncodingError(f"The environment gave no '{name}'; it gave {sorted(raw)}.")
    return raw[name]


def dense_static(table: StaticTable, f: Static, start: int) -> np.ndarray:
    """Rows [start, len) of a static field as observed: ragged ones padded with zeros."""
    if not table.fields[f.name].ragged:
        return table[f.name][start:]
    dense = np.zeros((len(table) - start, *f.shape), f.dtype)
    for i in range(start, len(table)):
        items = table.row(i)[f.name]
        dense[i - start, : len(items)] = items
    return dense


def value_of(
    name: str, encoding: Encoding, raw: Raw, tables: Tables, values: dict[str, np.ndarray]
) -> np.ndarray:
    """A field's observed value [N, *shape] from raw ones; derived fields through `derive`.

    `values` remembers what was computed, so that a source read twice is derived once.
    """
    if name in raw:
        return raw[name]
    if name not in values:
        f = encoding.spec.by_name.get(name)
        if isinstance(f, Static):
            ids = _given(raw, f"{f.table}_id")
            if f.ragged:
                values[name] = _ragged_rows(f, tables, ids)
            else:
                places = tables[f.table].places(ids)
                values[name] = tables[f.table][f.name][places]
        elif isinstance(f, Derived) and f.derive is not None:
            sources = {s: value_of(s, encoding, raw, tables, values) for s in f.sources}
            values[name] = f.derive(sources, tables)
        else:
            _given(raw, name)
    return values[name]


def _ragged_rows(f: Static, tables: Tables, ids: np.ndarray) -> np.ndarray:
    table = tables[f.table]
    dense = np.zeros((len(ids), *f.shape), f.dtype)
    for n, place in enumerate(table.places(ids)):
        items = table.items(f.name, int(place))
        dense[n, : len(items)] = items
    return dense


def decode(
    encoding: Encoding, rows: Mapping[str, np.ndarray], tables: Tables
) -> dict[str, np.ndarray]:
    """Rows in policy form back to the observed fields, in NumPy: the decoder's reference."""
    decoded: dict[str, Any] = {}
    for r in encoding.rows:
        f = encoding.spec.by_name.get(r.name)
        decoded[r.name] = rows[r.name] if f is None else r.codec.decode(rows[r.name])
    values: dict[str, np.ndarray] = {}
    names = [f.name for f in encoding.spec.observed()]
    if encoding.internal:
        names += [f.name for f in encoding.spec.fields if isinstance(f, Private)]
    observed = {n: value_of(n, encoding, decoded, tables, values) for n in names}
    dtypes = {f.name: np.dtype(f.dtype) for f in encoding.spec.fields}
    return {name: value.astype(dtypes[name], copy=False) for name, value in observed.items()}
