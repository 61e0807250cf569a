"""Nested plain values as JSON, their arrays and tensors beside it: what a checkpoint is made of."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frugal_rl.errors import CheckpointError, DataError
from frugal_rl.untrusted.forms import checked_shape, plain_dtype
from frugal_rl.untrusted.printing import printable

Blobs = dict[str, np.ndarray | Tensor]
"""Arrays and tensors by the name of their place."""
Fetch = Callable[[str], np.ndarray]
"""Bytes [n] uint8 of an entry, an array of its own."""
DTYPES = {
    str(d).removeprefix("torch."): d
    for d in (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
    )
}
"""Tensor types that a checkpoint may hold, by name."""


def to_json(value: Any, blobs: Blobs, where: str) -> Any:
    """JSON of a nested value; arrays, tensors and bytes go to `blobs` by their place's name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return to_json(value.item(), blobs, where)
    if isinstance(value, Tensor):
        return _tensor_to_json(value, blobs, where)
    if isinstance(value, np.ndarray):
        return _array_to_json(value, blobs, where)
    if isinstance(value, bytes):
        blobs[where] = np.frombuffer(value, np.uint8)
        return {"@": "bytes", "at": where}
    if isinstance(value, list):
        return [to_json(v, blobs, f"{where}.{i}") for i, v in enumerate(value)]
    if isinstance(value, tuple | set | frozenset):
        items = [to_json(v, blobs, f"{where}.{i}") for i, v in enumerate(value)]
        return {"@": type(value).__name__, "items": items}
    if isinstance(value, Mapping):
        return _mapping_to_json(value, blobs, where)
    raise CheckpointError(
        f"A checkpoint holds plain values, arrays and tensors; '{where}' is a "
        f"{type(value).__name__}. Let state() return its content instead."
    )


def _tensor_to_json(value: Tensor, blobs: Blobs, where: str) -> Any:
    name = str(value.dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise CheckpointError(f"'{where}' is a tensor of {name}; a checkpoint holds none of those.")
    blobs[where] = value
    return {"@": "tensor", "at": where, "dtype": name, "shape": list(value.shape)}


def _array_to_json(array: np.ndarray, blobs: Blobs, where: str) -> Any:
    if array.dtype.hasobject:
        raise CheckpointError(f"'{where}' is an array of objects; let state() return its content.")
    blobs[where] = array
    dtype = array.dtype.descr if array.dtype.fields else array.dtype.str
    return {"@": "array", "at": where, "dtype": dtype, "shape": list(array.shape)}


def _mapping_to_json(value: Mapping[Any, Any], blobs: Blobs, where: str) -> Any:
    if all(isinstance(k, str) for k in value) and "@" not in value:
        return {k: to_json(v, blobs, f"{where}.{k}") for k, v in value.items()}
    pairs = [
        [to_json(k, blobs, f"{where}.key{i}"), to_json(v, blobs, f"{where}.{i}")]
        for i, (k, v) in enumerate(value.items())
    ]
    return {"@": "dict", "items": pairs}


def as_bytes(value: np.ndarray | Tensor) -> np.ndarray:
    """The values' bytes [n] uint8 in order; a view where they lie in one piece on the CPU."""
    if isinstance(value, Tensor):
        flat = value.detach().cpu().contiguous().flatten()
        return flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def from_json(value: Any, fetch: Fetch) -> Any:
    """The value that `to_json` was given; arrays and tensors come from `fetch`.

    Raises:
        DataError: the description is none that `to_json` writes.
    """
    try:
        return _from_json(value, fetch)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"a value is described wrongly ({printable(str(error))}).") from error


def _from_json(value: Any, fetch: Fetch) -> Any:
    if isinstance(value, list):
        return [_from_json(v, fetch) for v in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("@")
    if kind is None:
        return {k: _from_json(v, fetch) for k, v in value.items()}
    if kind in ("tensor", "array"):
        return _restored(kind, value, fetch)
    if kind == "bytes" and "at" in value:
        return fetch(str(value["at"])).tobytes()
    if kind == "bytes":  # as text, by earlier versions
        return base64.b64decode(value["base64"], validate=True)
    items = value["items"]
    if kind == "dict":
        return {_from_json(k, fetch): _from_json(v, fetch) for k, v in items}
    makers: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
    return makers[kind](_from_json(v, fetch) for v in items)


def _restored(kind: str, value: Mapping[str, Any], fetch: Fetch) -> np.ndarray | Tensor:
    shape, raw = checked_shape(value["shape"]), fetch(str(value["at"]))
    if kind == "array":
        return raw.view(plain_dtype(value["dtype"])).reshape(shape)
    dtype, flat = DTYPES[value["dtype"]], torch.from_numpy(raw)
    return (flat.view(dtype) if len(raw) else flat.to(dtype)).reshape(shape)
