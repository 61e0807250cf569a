"""The first layer of every network: stored rows become named tensors, on the rows' device.

Only what a network reads is computed, once per minibatch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from frugal_rl.errors import ConfigError
from frugal_rl.observation.aligned import ALIGNMENT
from frugal_rl.observation.encoding import BY_REFERENCE, Encoding
from frugal_rl.observation.fields import AnyField, Derived, Static
from frugal_rl.observation.mirror import TableMirror
from frugal_rl.observation.untraced import untraced
from frugal_rl.plugins import trusted

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.codec import Codec
    from frugal_rl.observation.tables import Tables


def torch_dtype(dtype: Any) -> torch.dtype:
    """The torch dtype of a NumPy dtype."""
    return torch.from_numpy(np.empty(0, np.dtype(dtype))).dtype


def decode_row(codec: Codec, stored: Tensor, plugins: tuple[str, ...] = ()) -> Tensor:
    """The stored form [..., *stored shape] back to values [..., *shape].

    By the codec's torch half, or, where it names none, by its NumPy half on the CPU.
    """
    codec = codec.rows
    if codec.twin:
        package = type(codec).__module__.partition(".")[0]  # its code runs already
        decoded: Tensor = resolve_twin(codec.twin, (*plugins, package))(codec, stored)
        return decoded
    values = np.ascontiguousarray(codec.decode(stored.detach().cpu().numpy()))
    return torch.from_numpy(values).to(stored.device)


@cache
def resolve_twin(path: str, plugins: tuple[str, ...] = ()) -> Callable[..., Any]:
    """The torch half that a field or a codec names as "package.module:function"."""
    module, _, name = path.partition(":")
    packages = trusted(plugins)
    if module.partition(".")[0] not in packages or not name:
        raise ConfigError(
            f"The torch twin '{path}' is not 'package.module:function' inside "
            f"{', '.join(packages)}. Name the package in plugins=[...] to allow it."
        )
    try:
        twin: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The torch twin '{path}' cannot be imported: {error}.") from error
    return twin


def to_tensors(rows: Mapping[str, np.ndarray], device: torch.device) -> dict[str, Tensor]:
    """Rows as tensors; on the CPU they share memory with the arrays."""
    if device.type == "cpu":
        return {name: torch.from_numpy(np.asarray(row)) for name, row in rows.items()}
    return {name: torch.from_numpy(np.asarray(row)).to(device) for name, row in rows.items()}


class Decoder:
    """Turns stored rows of one encoding into decoded fields."""

    def __init__(self, encoding: Encoding, tables: Tables, plugins: tuple[str, ...] = ()) -> None:
        self.encoding, self.static = encoding, tables
        self.tables = {name: TableMirror(table) for name, table in tables.items()}
        self.names = tuple(f.name for f in encoding.spec.observed())
        self._fields: Mapping[str, AnyField] = encoding.spec.by_name
        self._rows = encoding.by_name
        self._ids = encoding.spec.id_rows()
        self._plugins = plugins
        self._dtypes = {name: torch_dtype(f.dtype) for name, f in self._fields.items()}

    def reading(self, tables: Tables) -> Decoder:
        """The same decoder over other static tables."""
        return Decoder(self.encoding, tables, self._plugins)

    def __call__(self, rows: Mapping[str, Tensor]) -> DecodedFields:
        """Rows [B, *row shape] by name, as the policy receives them."""
        return DecodedFields(self, rows)

    def decode(self, name: str, fields: DecodedFields) -> Tensor:
        """One field [B, *observed shape] in its declared dtype, or an id row [B] int64."""
        if name in self._ids:
            return fields.rows[name].reshape(-1).long()
        if name not in self._fields:
            return fields.rows[name]
        field = self._fields[name]
        if self.encoding.choice[name] in BY_REFERENCE:
            values = self._refer(field, fields)
        else:
            if name not in self._rows:
                self.encoding.check_readable(name)
            row = self._rows[name]
            stored = fields.rows[name]
            scalar = row.shape == () and row.window == 1  # SB3's buffer hands these out as [B, 1]
            values = decode_row(row.codec, stored.reshape(-1) if scalar else stored, self._plugins)
        return self._aligned(values.to(self._dtypes[name]))

    @untraced
    def _aligned(self, values: Tensor) -> Tensor:
        """The same where it begins at a multiple of `ALIGNMENT` bytes, else a copy that does.

        Kernels for matrices round differently elsewhere, and then equal observations in arrays of
        other origin would not train to equal parameters.
        """
        astray = values.device.type == "cpu" and values.data_ptr() % ALIGNMENT
        return values.clone() if astray and values.is_floating_point() else values

    def _refer(self, field: AnyField, fields: DecodedFields) -> Tensor:
        if isinstance(field, Static):
            table, ids = self.tables[field.table], fields[f"{field.table}_id"]
            if field.ragged:
                return table.ragged(field.name, ids).padded(field.shape[0])
            return table.rows(field.name, ids)
        assert isinstance(field, Derived)
        derived: Tensor = resolve_twin(field.twin, self._plugins)(fields, self.tables)
        return derived

    @property
    def nbytes(self) -> int:
        """Bytes of the tables' device copies."""
        return sum(mirror.nbytes for mirror in self.tables.values())


class DecodedFields(Mapping[str, Tensor]):
    """Decoded fields by name, each computed when it is first read.

    Beside the observed fields, `<table>_id`, `age` and unobserved sources can be read by name;
    `tables` gives the static tables to networks that read each distinct row once.
    """

    def __init__(self, decoder: Decoder, rows: Mapping[str, Tensor]) -> None:
        self.rows = rows
        self._decoder = decoder
        self._decoded: dict[str, Tensor] = {}

    @property
    def tables(self) -> Mapping[str, TableMirror]:
        """The static tables by name."""
        return self._decoder.tables

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._decoded:
            self._decoded[name] = self._decoder.decode(name, self)
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoder.names)

    def __len__(self) -> int:
        return len(self._decoder.names)
