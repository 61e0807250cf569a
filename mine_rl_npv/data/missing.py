"""Numbers that stand for numbers that are missing."""

from __future__ import annotations

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.untrusted.printing import printable


def refuse_missing(setting: str, name: str, numbers: np.ndarray) -> None:
    """Refuses to reckon with a column in which one number below 0 stands among others, as -99.

    Args:
        setting: which reads the column, for the message.
        name: of the column.
        numbers: (N,) of it.

    Raises:
        ConfigError: whole, below 0, alone there, and others are above 0.
    """
    below = np.unique(numbers[numbers < 0])
    if len(below) == 1 and below[0] == round(below[0]) and (numbers > 0).any():
        raise ConfigError(
            f"{setting}: column '{printable(name)}' holds {below[0]:g} in "
            f"{int((numbers == below[0]).sum())} blocks and nothing else below 0, as where an "
            f"assay is missing. State columns.absent={below[0]:g}, which reads it as 0."
        )
