"""What a refusal says, whole: its text is a promise to whoever reads it."""

from __future__ import annotations

from collections.abc import Callable


def text_of(kind: type[Exception], act: Callable[[], object]) -> str:
    """The text of the error that `act` raises.

    Args:
        kind: the error that is expected; any other one passes through.
        act: what is refused.

    Raises:
        AssertionError: nothing was refused.
    """
    try:
        act()
    except kind as error:
        return str(error)
    raise AssertionError(f"nothing was refused; a {kind.__name__} was expected")
