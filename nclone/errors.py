"""What can be wrong with the files of N++."""

from __future__ import annotations

from frugal_rl.errors import DataError


class LevelError(DataError):
    """Level bytes, or a level drawing, that cannot be read; names the place and the remedy."""


class ReplayError(DataError):
    """A recorded input file that cannot be read; names the place and the remedy."""


class LevelWarning(UserWarning):
    """A level is odd, but the game reads it; or files of a folder were left out, as asked."""
