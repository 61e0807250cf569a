"""The words in which a user chooses how observations are stored."""

from __future__ import annotations

from enum import Enum


class Label(Enum):
    """What a saving costs: nothing, rounding, or a smaller problem."""

    lossless = "lossless"
    precision = "precision"
    capacity = "capacity"


class Storage(Enum):
    """The default representation of all fields.

    `dense` stores what the space declares; `half` rounds floats to float16; `sparse` drops padding
    too; `lossless` takes each field's tightest exact form; `smallest` rounds what that leaves.
    """

    dense = "dense"
    half = "half"
    sparse = "sparse"
    lossless = "lossless"
    smallest = "smallest"


class FrameStack(Enum):
    """Whether a window is stored row by row, or copied into every transition."""

    copies = "copies"
    once = "once"
