"""An observation, declared once, field by field; everything else is computed from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.observation.fields import (
    EPISODE,
    AnyField,
    Derived,
    Field,
    Padding,
    Private,
    Static,
    Stored,
)

if TYPE_CHECKING:
    from frugal_rl.observation.tables import Tables

Check = Callable[[Mapping[str, np.ndarray], "Tables"], None]
__all__ = [
    "EPISODE",
    "AnyField",
    "Derived",
    "Field",
    "ObservationSpec",
    "Padding",
    "Private",
    "Static",
    "Stored",
]


@dataclass(frozen=True)
class ObservationSpec:
    """All fields of an environment's observation.

    `action_mask` names the boolean field that masks actions, if there is one. `check` refuses rows
    [B, ...] of a file that lie in their ranges and still lead elsewhere, by an `EncodingError`.

    Example:
        >>> spec = ObservationSpec((Stored("speed", (2,), np.float32, -1, 1),))
        >>> spec.observation_space["speed"].shape
        (2,)
    """

    fields: tuple[AnyField, ...]
    action_mask: str | None = None
    check: Check | None = field(default=None, repr=False, compare=False)
    by_name: Mapping[str, AnyField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {f.name: f for f in self.fields}
        if len(by_name) != len(self.fields):
            raise ConfigError("Two fields of the observation share one name.")
        object.__setattr__(self, "by_name", by_name)
        taken = {*self.id_rows(), *(["age"] if self._shows_history() else [])} & set(by_name)
        if taken:
            raise ConfigError(
                f"An observation named '{min(taken)}' stands beside one of the same name that is "
                "made here: 'age' counts the steps of an episode where a window or env.frame_stack "
                "shows past rows, and <table>_id names a row of a table. Rename it by a wrapper."
            )
        for f in self.fields:
            for source in f.sources if isinstance(f, Derived) else ():
                if source not in by_name and source not in self.id_rows():
                    raise ConfigError(
                        f"Derived field '{f.name}' reads '{source}', which is not there."
                    )

    def _shows_history(self) -> bool:
        return any(isinstance(f, Stored) and f.window != 1 for f in self.fields)

    def id_rows(self) -> dict[str, str]:
        """Names of the id rows, `<table>_id` -> table."""
        return {f"{f.table}_id": f.table for f in self.fields if isinstance(f, Static)}

    def observed(self) -> tuple[Stored | Static | Derived, ...]:
        """The fields that the policy may read, in order of declaration."""
        return tuple(f for f in self.fields if not isinstance(f, Private) and f.observed)

    @property
    def observation_space(self) -> spaces.Dict:
        """What a plain Gymnasium user sees."""
        boxes: dict[str, spaces.Space[Any]] = {}
        for f in self.observed():
            box = f.box()
            if isinstance(f, Stored) and f.window > 1:
                box = spaces.Box(f.low, f.high, f.observed_shape, np.dtype(f.dtype).type)
            boxes[f.name] = box
        return spaces.Dict(boxes)
