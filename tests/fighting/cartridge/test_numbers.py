"""Numbers in memory, against plain arithmetic on their bytes."""

import numpy as np
import pytest

from fighting.cartridge.memory import Address, Kind


def rows(seed, size, count=200):
    return np.random.default_rng(seed).integers(0, 256, (count, size), np.uint8)


@pytest.mark.parametrize("size", range(1, 7))
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_binary_numbers_are_those_of_the_bytes(size, big, signed):
    data = rows(size, size)
    found = Address(0xC000, size=size, big=big, signed=signed).numbers(data)
    order = "big" if big else "little"
    wanted = [int.from_bytes(row.tobytes(), order, signed=signed) for row in data]
    assert found.tolist() == wanted


@pytest.mark.parametrize("size", range(1, 5))
def test_packed_decimals_have_two_digits_per_byte_and_the_highest_first(size):
    data = rows(size, size)
    found = Address(0xC000, size=size, kind=Kind.bcd).numbers(data)
    for row, number in zip(data, found, strict=True):
        digits = [min(d, 9) for byte in row.tolist() for d in (byte >> 4, byte & 15)]
        assert number == int("".join(map(str, digits)))


@pytest.mark.parametrize("zero", [0, 0x30, 0x80, 0xF8])
def test_digits_count_from_the_byte_that_shows_nought(zero):
    data = rows(zero, 3, 2000)
    found = Address(0xC000, size=3, kind=Kind.digits, zero=zero).numbers(data)
    for row, number in zip(data, found, strict=True):
        digits = [(byte - zero) % 256 for byte in row.tolist()]
        assert number == int("".join(str(d if d < 10 else 0) for d in digits))


@pytest.mark.parametrize(
    ("address", "data", "value"),
    [
        (Address(0xC000), [200], 200),
        (Address(0xC000, signed=True), [200], -56),
        (Address(0xC000, size=2), [1, 2], 513),
        (Address(0xC000, size=2, big=True), [1, 2], 258),
        (Address(0xC000, size=2, kind=Kind.bcd), [0x12, 0x34], 1234),
        (Address(0xC000, size=3, kind=Kind.digits, zero=0x30), [0x31, 0x20, 0x39], 109),
    ],
)
def test_a_single_value_is_the_same_number(address, data, value):
    assert address.value(data) == value
    assert type(address.value(data)) is int
