"""The words of a form are read as its values, and anything else is refused with examples."""

import pytest

from frugal_rl.errors import DataError
from frugal_rl.observation.found_form import FoundForm, read_form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("as it is", FoundForm()),
        ("differences", FoundForm("differences")),
        ("differences in known words", FoundForm("differences in known words")),
        ("distinct rows", FoundForm("distinct rows")),
        ("compressed", FoundForm("compressed")),
        ("whole numbers from -3 in 4 bits", FoundForm(low=-3, bits=4)),
        ("whole numbers from 0 in 16 bits", FoundForm(bits=16)),
        ("pixels in few bits", FoundForm("pixels in few bits")),
        ("tiles of 7 x 12 pixels", FoundForm("tiles", tile=(7, 12))),
        ("stack of 4 along 3 x 70 B, differences", FoundForm("differences", 3, 4, 70)),
        ("stack of 2 along 1 x 1 B newest first, as they are",
         FoundForm("as they are", 1, 2, 1, newest_last=False)),
    ],
)  # fmt: skip
def test_a_form_is_read_from_its_words(text, form):
    assert read_form(text) == form


@pytest.mark.parametrize(
    "text",
    [
        "as they are",  # parts alone are kept so
        "whole numbers from 0 in 3 bits",
        "whole numbers from 0.5 in 4 bits",
        "stack of 1 along 3 x 70 B, differences",
        "stack of 4 along 0 x 70 B, differences",
        "stack of 4 along 3 x 0 B, differences",
        "stack of 4 along 3 x 70 B, somehow",
        "stack of 4 along 3 x 70 B",
        "tiles of 0 x 7 pixels",
        "tiles of 7 x 0 pixels",
        "",
    ],
)
def test_other_words_are_refused_with_those_that_there_are(text):
    with pytest.raises(DataError) as error:
        read_form(text)

    assert str(error.value) == (
        f"'{text}' is no form; write 'as it is', 'differences', 'differences in known words', "
        "'distinct rows', 'compressed', 'whole numbers from 0 in 8 bits', 'pixels in few bits', "
        "'tiles of 7 x 7 pixels' or 'stack of 4 along 1 x 7056 B, differences'"
    )


def test_a_refusal_repeats_no_more_than_sixty_letters_of_a_strangers_text():
    with pytest.raises(DataError, match=r"^'x{60}' is no form"):
        read_form("x" * 1000)


@pytest.mark.parametrize(
    ("form", "shape", "itemsize", "fits"),
    [
        (FoundForm(bits=8), (5,), 2, True),
        (FoundForm(bits=8), (10,), 1, False),  # no smaller than it is
        (FoundForm(bits=3), (2,), 8, False),
        (FoundForm("differences"), (7,), 1, True),
        (FoundForm("differences", 2, 4, 3), (2, 12), 1, True),
        (FoundForm("differences", 2, 4, 3), (5, 5), 1, False),
        (FoundForm("differences", 2, 4, 3), (2, 6), 2, True),  # bytes, not numbers
        (FoundForm("differences", 2, 4, 3), (2, 12), 2, False),
        (FoundForm("tiles", tile=(7, 7)), (84, 84, 3), 1, True),
        (FoundForm("tiles", tile=(7, 7)), (84,), 1, False),
    ],
)
def test_a_form_fits_numbers_that_are_wider_and_rows_of_its_parts(form, shape, itemsize, fits):
    assert form.fits(shape, itemsize) is fits


def test_windows_of_rows_are_stacks_of_them_in_the_same_form():
    assert FoundForm("distinct rows").stacked(3, 40) == FoundForm("distinct rows", 1, 3, 40)
    assert FoundForm().stacked(3, 40) == FoundForm("as they are", 1, 3, 40)
    assert FoundForm(bits=4).stacked(3, 40) is None
    assert FoundForm("differences", 1, 2, 20).stacked(3, 40) is None
    assert FoundForm("tiles", tile=(7, 7)).stacked(3, 40) is None
