"""How environments of strangers end: a whole program with them, or not even themselves."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from frugal_rl.errors import WorkerError

LONGEST_WORDS = 200


def program_ended(end: SystemExit, where: str) -> WorkerError:
    """The error of an environment that ends the program, as a window does that is closed.

    Without it the run would be over without a word, its exit status that of success.
    """
    return WorkerError(
        f"The environment ended the program by sys.exit({end.code!r:.{LONGEST_WORDS}}) {where}; "
        "let it raise an error, or end its episode, instead."
    )


def close_all(envs: Iterable[Any]) -> None:
    """Close environments; one that fails at it is told, and ends nothing: all was done."""
    for env in envs:
        try:
            env.close()
        except (Exception, SystemExit) as error:
            words = f"{type(error).__name__}: {str(error)!r:.{LONGEST_WORDS}}"
            warnings.warn(f"An environment was not closed as it should ({words}).", stacklevel=2)
