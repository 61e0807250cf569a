"""Errors of values that a stranger's file holds become one of ours, and ours stay as they are."""

import pytest

from frugal_rl.errors import DataError
from frugal_rl.untrusted.odd import ODD, refused


def refusal(error):
    return DataError(f"file.json: {type(error).__name__}")


@pytest.mark.parametrize("kind", [*ODD, KeyError, UnicodeError, ZeroDivisionError])
def test_what_values_run_into_is_refused_with_its_cause(kind):
    with pytest.raises(DataError, match=rf"^file.json: {kind.__name__}$") as met, refused(refusal):
        raise kind
    assert type(met.value.__cause__) is kind


def test_an_error_of_ours_keeps_its_words():
    with pytest.raises(DataError, match=r"^line 3 is cut off$"), refused(refusal):
        raise DataError("line 3 is cut off")


def test_other_errors_pass_unless_they_are_named():
    with pytest.raises(RuntimeError, match="mine"), refused(refusal):
        raise RuntimeError("mine")
    with pytest.raises(DataError, match="RuntimeError"), refused(refusal, RuntimeError):
        raise RuntimeError("mine")
