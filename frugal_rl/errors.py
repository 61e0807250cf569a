"""What goes wrong, in words: every error says what, where and what to do next."""

from __future__ import annotations


class FrugalError(Exception):
    """Base of all errors that are meant for a user, not for a debugger."""


class ConfigError(FrugalError, ValueError):
    """A value, key or combination in the configuration is not possible."""


class MemoryBudgetError(FrugalError, MemoryError):
    """The run is planned above its budget; the message names the override that makes it fit.

    Example:
        >>> from frugal_rl import plan
        >>> try:
        ...     plan("env=toy memory.budget_gib=0.01")
        ... except MemoryBudgetError as refusal:
        ...     print(refusal.plan.verdict)
        does not fit
    """


class DataError(FrugalError, ValueError):
    """A file that the user gave cannot be read as what it claims to be."""


class CheckpointError(FrugalError, ValueError):
    """A checkpoint is missing, damaged, or belongs to another configuration."""


class OtherFormatError(CheckpointError):
    """A checkpoint was written by another version; it is sound, and no older one stands in."""


class OutOfReachError(CheckpointError):
    """A checkpoint that this user may not open; it may be sound, and no older one stands in."""


class WorkerError(FrugalError, RuntimeError):
    """An environment worker failed; carries its traceback."""


class EncodingError(FrugalError, ValueError):
    """A value does not fit the representation that was chosen for its field."""


class NumbersError(FrugalError, ArithmeticError):
    """A number of the run is not finite; the message says where it came from."""


class DiskError(FrugalError, OSError):
    """Something could not be written; the message says what is safe and how to go on."""


class FolderInUseError(FrugalError, RuntimeError):
    """Another run writes into the folder."""


class CrowdedError(MemoryBudgetError):
    """Everybody waits for memory beside everybody else; later there may be room."""


class RankError(FrugalError, RuntimeError):
    """A process of a data-parallel run is gone, or the others waited for it too long."""


class LaunchError(FrugalError, RuntimeError):
    """A scheduler does not take a job, or jobs side by side leave no room for it."""
