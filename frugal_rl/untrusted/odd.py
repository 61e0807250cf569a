"""Values of another kind than was expected, in files of strangers: one error, and it is ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from frugal_rl.errors import FrugalError

ODD = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What Python raises where a value is not what the code takes it for."""


@contextmanager
def refused(refusal: Callable[[Exception], FrugalError], *more: type[Exception]) -> Iterator[None]:
    """Whatever a stranger's values run into becomes the error that `refusal` makes of it.

    Args:
        refusal: names the file and the remedy.
        more: what else the values may run into.
    """
    met: tuple[type[Exception], ...] = (*ODD, *more)
    try:
        yield
    except FrugalError:
        raise
    except met as error:
        raise refusal(error) from error
