"""What a study found of an environment's observation, as a YAML file that a user may edit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from frugal_rl.errors import DataError
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_yaml
from frugal_rl.untrusted.printing import printable, shown

UNKNOWN_SHARE = 0.99
"""Expected of a field that nobody has studied: as large as it is, and still to be looked at."""


@dataclass(frozen=True)
class FoundField:
    """One field: how it is kept smallest, in words, and its bytes before and after."""

    form: str
    dense_bytes: float
    found_bytes: float


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

    def check(self, names: Collection[str], where: str) -> None:
        """Refuse fields that the environment does not have."""
        unknown = sorted(set(self.fields) - set(names))
        if unknown:
            raise DataError(
                f"{where} names {unknown}, which this environment does not observe; it has "
                f"{sorted(names)}. Study it anew: python scripts/study.py env=gymnasium env.id=..."
            )

    def text(self) -> str:
        """As YAML."""
        plain = {n: vars(f) for n, f in self.fields.items()}
        return str(yaml.safe_dump({"fields": plain}, sort_keys=False))


def read_found_spec(path: Path) -> FoundSpec:
    """A file that `FoundSpec.text` wrote."""
    try:
        fields = parse_yaml(read_text(path))["fields"]
        return FoundSpec(
            {
                str(name): FoundField(
                    str(f["form"]), float(f["dense_bytes"]), float(f["found_bytes"])
                )
                for name, f in fields.items()
            }
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = printable(f"{type(error).__name__}: {error}")
        raise DataError(
            f"env.spec_file={shown(path)} is no study of an environment ({why})."
            " Write one with: python scripts/study.py env=gymnasium env.id=..."
        ) from error
