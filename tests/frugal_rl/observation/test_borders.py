"""Rows of a file may hold what networks compute with, but nothing that leads out of a table."""

import numpy as np
import pytest

from frugal_rl import Derived, ObservationSpec, Stored
from frugal_rl.errors import EncodingError
from frugal_rl.observation.borders import check_rows, followed
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.tables import Tables


def looked_up(sources, tables):
    return np.arange(10, dtype=np.int32)[sources["place"]]


ENCODING = Encoding.choose(
    ObservationSpec(
        (
            Stored("place", (1,), np.int32, 0, 9),
            Stored("amount", (1,), np.int32, 0, 9),
            Stored("speed", (1,), np.float32, 0, 9),
            Derived("found", (1,), np.int32, sources=("place",), derive=looked_up),
        )
    )
)


def checked(**rows):
    shown = {name: np.array([[value]]) for name, value in rows.items()}
    check_rows(ENCODING, Tables(), shown, 10)


def test_what_something_is_looked_up_by_is_followed():
    assert followed(ENCODING) == {"place"}


@pytest.mark.parametrize("place", [0, 9])
def test_numbers_within_their_bounds_and_those_that_are_only_computed_with_pass(place):
    checked(place=np.int32(place), amount=np.int32(1000), speed=np.float32(-50))


@pytest.mark.parametrize("place", [-1, 10])
def test_what_leads_out_of_a_table_is_refused(place):
    with pytest.raises(EncodingError) as refused:
        checked(place=np.int32(place))
    assert str(refused.value) == f"'place' holds {place} to {place}, outside of 0 to 9."


def test_what_is_no_finite_number_is_refused():
    with pytest.raises(EncodingError, match="'speed' holds a value that is not finite"):
        checked(speed=np.float32(np.nan))
