"""Drawings: everything a level can hold goes to text and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays

from nclone.errors import LevelError
from nclone.levels.ascii import GLYPHS, draw_level, parse_drawing
from nclone.levels.entity_types import EntityType
from nclone.levels.format import RECORDS_AT, pack_level
from nclone.levels.level import load_level

KINDS = sorted(set(EntityType) - {0, 3, 4, 7, 9}) + [15, 27]


@some.composite
def record_lists(draw):
    place = some.tuples(some.integers(0, 176), some.integers(0, 100))
    records = [(0, *draw(place), 0, 0)]
    for kind in draw(some.lists(some.sampled_from(KINDS), max_size=12)):
        records.append((kind, *draw(place), draw(some.integers(0, 7)), draw(some.integers(0, 3))))
        if kind in (6, 8):
            records.append((kind + 1, *draw(place), 0, 0))
    for kind in (3, 4) * draw(some.integers(0, 3)):
        records.append((kind, *draw(place), 0, 0))
    return records


@given(arrays(np.uint8, (23, 42), elements=some.integers(0, 37)), record_lists())
def test_a_drawing_gives_back_tiles_and_records(tiles, records):
    data = pack_level(tiles, records, title="Any level")
    assert parse_drawing(draw_level(load_level(data))) == data


def test_every_tile_has_a_character():
    tiles = np.zeros((23, 42), np.uint8)
    tiles[0, :38] = np.arange(38)
    drawing = draw_level(load_level(pack_level(tiles, [(0, 50, 50, 0, 0)])))
    assert drawing.splitlines()[1].startswith(GLYPHS)


def test_a_drawing_may_be_small_and_commented():
    level = load_level(parse_drawing("; a note\ntitle: Tiny\n@.S.X\n"))
    assert level.name == "Tiny"
    assert level.tiles[1, 1:6].tolist() == [0] * 5
    assert level.tiles[2:].min() == 1
    assert level.entities[:, 0].tolist() == [3, 4]
    assert level.spawn == (36.0, 36.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@.!\n", "Line 1, column 3"),
        ("@.\nlocked_door 3 x switch 4 5\n", "Line 2: 'locked_door 3 x"),
        ("@" + 50 * "#", "at most 23 rows"),
        ("#.#\n", "exactly one ninja"),
        ("@.X\n", "1 exits, but 0 switches"),
    ],
)
def test_a_bad_drawing_is_refused_with_its_place(text, message):
    with pytest.raises(LevelError, match=message):
        parse_drawing(text)


def test_a_packed_drawing_is_a_level_of_the_original_format():
    data = parse_drawing("@.S.X\n")
    assert len(data) == RECORDS_AT + 3 * 5 == int.from_bytes(data[:4], "little")
    assert data[1150 + 2 * 3] == 1
