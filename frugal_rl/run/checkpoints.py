"""Checkpoints: one file of tensors and JSON, the configuration inside, written whole or not at all.

Nothing in a file is executed when it is read: arrays are tensors (`weights_only=True`), all else is
JSON. A name is given to a file only after its last byte was written.
"""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frugal_rl.errors import CheckpointError

FORMAT = 1
"""Raised when files of an older form can no longer be read."""
LAST = "last.pt"
"""Name of the newest checkpoint in a run's `checkpoints/`."""


def save_checkpoint(path: str | Path, content: Mapping[str, Any]) -> Path:
    """Write nested values, arrays and tensors; an older file at `path` stays until the end."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_to_json(dict(content), tensors, "content"))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            torch.save({"format": FORMAT, "json": text, "tensors": tensors}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote; `path` is a file, a run folder or its `checkpoints/`."""
    file = find_checkpoint(path)
    try:
        raw = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(
            f"{file} cannot be read as a checkpoint ({type(error).__name__}: {error}). It may be "
            "damaged or cut off; use an older one from the same folder."
        ) from error
    if not isinstance(raw, dict) or not {"format", "json", "tensors"} <= set(raw):
        raise CheckpointError(f"{file} is no checkpoint of this program; give a run folder of it.")
    if raw["format"] != FORMAT:
        raise CheckpointError(
            f"{file} has checkpoint format {raw['format']}, this version reads {FORMAT}. Resume it "
            "with the version that wrote it."
        )
    try:
        content = _from_json(json.loads(raw["json"]), raw["tensors"])
    except (KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{file} is damaged: {error}. Use an older one.") from error
    return dict(content)


def find_checkpoint(path: str | Path) -> Path:
    """The checkpoint file meant by a file, a run folder or its `checkpoints/`."""
    path = Path(path)
    for file in (path, path / LAST, path / "checkpoints" / LAST):
        if file.is_file():
            return file
    raise CheckpointError(
        f"There is no checkpoint at {path}: neither a file, nor {LAST} in it or in its "
        "checkpoints/ folder. Give the folder of a run that has saved one."
    )


def rng_state() -> dict[str, Any]:
    """The state of every global random number generator that a run draws from."""
    kind, keys, place, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    version, internal, gauss_next = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": cuda,
        "numpy": [kind, np.asarray(keys), int(place), int(has_gauss), float(gauss)],
        "python": [version, list(internal), gauss_next],
    }


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Put the generators back to `rng_state()`."""
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available() and state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    np.random.set_state(tuple(state["numpy"]))  # noqa: NPY002
    version, internal, gauss_next = state["python"]
    random.setstate((version, tuple(internal), gauss_next))


def _to_json(value: Any, tensors: dict[str, Tensor], where: str) -> Any:
    """JSON of a nested value; arrays and tensors go to `tensors` under their place's name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _to_json(value.item(), tensors, where)
    if isinstance(value, Tensor):
        tensors[where] = value.detach().cpu().contiguous()
        return {"@": "tensor", "at": where}
    if isinstance(value, np.ndarray):
        return _array_to_json(value, tensors, where)
    if isinstance(value, bytes):
        return {"@": "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_to_json(v, tensors, f"{where}.{i}") for i, v in enumerate(value)]
    if isinstance(value, tuple | set | frozenset):
        items = [_to_json(v, tensors, f"{where}.{i}") for i, v in enumerate(value)]
        return {"@": type(value).__name__, "items": items}
    if isinstance(value, Mapping):
        return _mapping_to_json(value, tensors, where)
    raise CheckpointError(
        f"A checkpoint holds plain values, arrays and tensors; '{where}' is a "
        f"{type(value).__name__}. Let state() return its content instead."
    )


def _array_to_json(array: np.ndarray, tensors: dict[str, Tensor], where: str) -> Any:
    if array.dtype.hasobject:
        raise CheckpointError(f"'{where}' is an array of objects; let state() return its content.")
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    tensors[where] = torch.from_numpy(flat if flat.flags.writeable else flat.copy())
    dtype = array.dtype.descr if array.dtype.fields else array.dtype.str
    return {"@": "array", "at": where, "dtype": dtype, "shape": list(array.shape)}


def _mapping_to_json(value: Mapping[Any, Any], tensors: dict[str, Tensor], where: str) -> Any:
    if all(isinstance(k, str) for k in value) and "@" not in value:
        return {k: _to_json(v, tensors, f"{where}.{k}") for k, v in value.items()}
    pairs = [
        [_to_json(k, tensors, f"{where}.key{i}"), _to_json(v, tensors, f"{where}.{i}")]
        for i, (k, v) in enumerate(value.items())
    ]
    return {"@": "dict", "items": pairs}


def _from_json(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_from_json(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("@")
    if kind is None:
        return {k: _from_json(v, tensors) for k, v in value.items()}
    if kind == "tensor":
        return tensors[value["at"]]
    if kind == "array":
        described = value["dtype"]
        dtype = np.dtype(described) if isinstance(described, str) else _record_dtype(described)
        return tensors[value["at"]].numpy().view(dtype).reshape(value["shape"]).copy()
    if kind == "bytes":
        return base64.b64decode(value["base64"])
    items = value["items"]
    if kind == "dict":
        return {_from_json(k, tensors): _from_json(v, tensors) for k, v in items}
    makers: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
    return makers[kind](_from_json(v, tensors) for v in items)


def _record_dtype(described: list[Any]) -> np.dtype[Any]:
    return np.dtype([(d[0], d[1], *(tuple(s) for s in d[2:])) for d in described])
