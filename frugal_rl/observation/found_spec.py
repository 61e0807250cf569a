"""What a study found of an environment's observation, as a YAML file that a user may edit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]

from frugal_rl.errors import DataError
from frugal_rl.invocation import command
from frugal_rl.observation.found_form import FoundForm, read_form
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_yaml
from frugal_rl.untrusted.printing import printable, shown

Kind = tuple[tuple[int, ...], np.dtype[Any]]

UNKNOWN_SHARE = 0.99
"""Expected of a field that nobody has studied: as large as it is, and still to be looked at."""


@dataclass(frozen=True)
class FoundField:
    """One field: how it is kept smallest, in words, and its bytes before and after."""

    form: str
    dense_bytes: float
    found_bytes: float
    shape: tuple[int, ...] = ()
    dtype: str = ""


@dataclass(frozen=True)
class FoundSpec:
    """Fields by name."""

    fields: Mapping[str, FoundField]

    def share(self, name: str) -> float:
        """The part of its size that a field is expected to take, at most `UNKNOWN_SHARE`."""
        known = self.fields.get(name)
        if known is None or not known.dense_bytes:
            return UNKNOWN_SHARE
        return min(known.found_bytes / known.dense_bytes, UNKNOWN_SHARE)

    def form(self, name: str) -> FoundForm | None:
        """The form that a field is frozen in; None where nobody has studied it."""
        return read_form(self.fields[name].form) if name in self.fields else None

    def check(self, observed: Mapping[str, Kind], where: str) -> None:
        """Refuse fields that the environment does not have, or has in another form.

        Args:
            observed: shape and dtype of each field.
            where: the file.
        """
        anew = f"Study it anew: {command('study', 'env=gymnasium', 'env.id=...')}"
        unknown = sorted(set(self.fields) - set(observed))
        if unknown:
            raise DataError(
                f"{where} names {unknown}, which this environment does not observe; it has "
                f"{sorted(observed)}. {anew}"
            )
        for name, found in self.fields.items():
            shape, dtype = observed[name]
            kind = (found.shape or shape, found.dtype or str(dtype))
            row_bytes = math.prod(shape) * dtype.itemsize
            if kind != (shape, str(dtype)) or found.dense_bytes not in (0, row_bytes):
                raise DataError(
                    f"{where} is of another environment: its '{name}' is {kind[0]} {kind[1]} of "
                    f"{found.dense_bytes:g} B, this one's {shape} {dtype} of {row_bytes} B. {anew}"
                )
            if not read_form(found.form).fits(shape, dtype.itemsize):
                raise DataError(
                    f"{where}: '{name}' of {row_bytes} B cannot be kept as '{found.form}'. {anew}"
                )

    def text(self) -> str:
        """As YAML."""
        plain = {n: {**vars(f), "shape": list(f.shape)} for n, f in self.fields.items()}
        return str(yaml.safe_dump({"fields": plain}, sort_keys=False))


def read_found_spec(path: Path) -> FoundSpec:
    """A file that `FoundSpec.text` wrote."""
    try:
        fields = parse_yaml(read_text(path))["fields"]
        return FoundSpec(
            {
                str(name): FoundField(
                    _form(str(f["form"])),
                    float(f["dense_bytes"]),
                    float(f["found_bytes"]),
                    tuple(int(n) for n in f.get("shape", ())),
                    str(f.get("dtype", "")),
                )
                for name, f in fields.items()
            }
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = printable(f"{type(error).__name__}: {error}")
        raise DataError(
            f"env.spec={shown(path)} is no study of an environment ({why})."
            f" Write one with: {command('study', 'env=gymnasium', 'env.id=...')}"
        ) from error


def _form(text: str) -> str:
    """Words of a form, looked at."""
    read_form(text)
    return text
