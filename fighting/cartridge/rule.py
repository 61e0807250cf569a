"""One expression of a profile, ready to be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.meaning import Meanings, UndefinedError, Value
from fighting.cartridge.syntax import ExpressionError

if TYPE_CHECKING:
    from fighting.cartridge.scene import Scene
    from fighting.cartridge.source import Text


@dataclass(frozen=True)
class Rule:
    """One expression, ready to be asked; refuses what has no value in the profile's words."""

    text: Text
    value: Value

    def __call__(self, scene: Scene) -> np.ndarray:
        """[N] float64, finite; [each, N] where the text says `each`."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found = self.value(scene)
        except UndefinedError as error:
            words = f"it {error}; guard the value, for example by max(value, 1)"
            raise self.text.problem(words) from error
        if not np.isfinite(found).all():
            raise self.text.problem("it is no finite number; clip(value, low, high) bounds it")
        return found


def rule_of(meanings: Meanings, text: Text) -> Rule:
    """An expression compiled; what cannot be read is refused with line and column."""
    try:
        return Rule(text, meanings.of(text.text, text.each))
    except ExpressionError as problem:
        raise text.problem(str(problem), problem.at) from problem
