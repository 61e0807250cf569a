"""Rows of every representation: shapes, types, bytes, ranges and what is refused, in its words."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl.errors import ConfigError, EncodingError
from frugal_rl.observation.choices import FrameStack, Label, Storage
from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.codecs.codec import DenseCodec
from frugal_rl.observation.codecs.half import HalfCodec
from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.observation.codecs.pooled import DeltaCodec, FoundCodec, RaggedCodec
from frugal_rl.observation.codecs.quantised import NarrowCodec
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.encoding import Encoding, default_representation, offered
from frugal_rl.observation.integers import smallest_integer
from frugal_rl.observation.spec import (
    EPISODE,
    Derived,
    ObservationSpec,
    Private,
    Static,
    Stored,
)
from frugal_rl.observation.tables import MAX_ID
from frugal_rl.testing.refusals import text_of
from frugal_rl.testing.toy import TOY_SPEC, map_rows, toy_tables


@pytest.mark.parametrize(
    ("codec", "shape", "dtype", "stored", "bounds"),
    [
        (DenseCodec(), (2, 3), np.float32, ((2, 3), "float32"), (-5, 1e9)),
        (HalfCodec(), (2, 3), np.float32, ((2, 3), "float16"), (-5, 65504)),
        (BitCodec(9), (2, 9), np.bool_, ((2, 2), "uint8"), (0, 255)),
        (PackedCodec((3, 3), 1), (3, 3), np.uint8, ((2,), "uint8"), (0, 255)),
        (PackedCodec((3, 3), 2), (3, 3), np.uint8, ((3,), "uint8"), (0, 255)),
        (PackedCodec((3, 3), 4), (3, 3), np.uint8, ((5,), "uint8"), (0, 255)),
        (NarrowCodec(-1, 127), (4,), np.int64, ((4,), "int8"), (-128, 127)),
        (NarrowCodec(0, 256), (4,), np.float32, ((4,), "uint16"), (0, 65535)),
        (RaggedCodec(HalfCodec()), (4, 2), np.float32, ((4, 2), "float16"), (-5, 1e9)),
    ],
)
def test_a_codec_says_the_shape_type_and_range_of_its_rows(codec, shape, dtype, stored, bounds):
    rows, kind = codec.stored(shape, np.dtype(dtype))

    assert (rows, np.dtype(kind).name) == stored
    assert codec.bounds(-5, 1e9, np.dtype(dtype), np.dtype(kind)) == bounds


@pytest.mark.parametrize(
    ("codec", "name", "label", "pool"),
    [
        (DenseCodec(), "dense", Label.lossless, ""),
        (HalfCodec(), "half", Label.precision, ""),
        (BitCodec(3), "bits", Label.lossless, ""),
        (PackedCodec((2,)), "packed", Label.lossless, ""),
        (NarrowCodec(0, 9), "quantised", Label.lossless, ""),
        (RaggedCodec(HalfCodec()), "ragged", Label.precision, "ragged"),
        (DeltaCodec(), "delta", Label.lossless, "delta"),
        (FoundCodec(), "found", Label.lossless, "found"),
    ],
)
def test_a_codec_says_its_name_what_it_costs_and_how_it_is_kept(codec, name, label, pool):
    assert (codec.name, codec.label, codec.pool) == (name, label, pool)
    assert codec.rows == (codec.inner if pool else codec)


def test_pools_expect_an_eighth_of_their_rows_and_found_ones_all():
    assert RaggedCodec().expected_share == DeltaCodec().expected_share == 0.125
    assert FoundCodec().expected_share == 0.99
    assert FoundCodec().inner == DenseCodec()


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [
        (0, 255, "uint8"), (-1, 0, "int8"), (-128, 127, "int8"), (-129, 0, "int16"),
        (0, 256, "uint16"), (-1, 128, "int16"), (0, 65536, "uint32"), (-1, 65536, "int32"),
        (0, 2**32, "int64"), (5, 9, "uint8"), (-9, -5, "int8"), (0.0, 254.5, "uint8"),
        (-0.5, 3, "int8"), (0, 255.5, "uint16"),
    ],
)  # fmt: skip
def test_the_smallest_type_is_unsigned_where_it_may_be_and_holds_zero(low, high, name):
    assert smallest_integer(low, high).name == name


def test_codecs_refuse_what_they_would_change_with_numbers_and_a_remedy():
    encode = NarrowCodec(-2, 7, "float32").encode

    assert text_of(EncodingError, lambda: encode(np.array([-3.0, 8.0], np.float32))) == (
        "Values from -3.0 to 8.0 are outside [-2, 7]. Widen the range of this field, or keep it "
        "dense."
    )
    for odd in (0.5, -0.0):
        assert text_of(EncodingError, lambda odd=odd: encode(np.array([odd], np.float32))) == (
            "A field that is stored as whole numbers has fractions or negative zeros. Keep it "
            "dense, or give it a grid."
        )
    assert encode(np.zeros((0, 2), np.float32)).shape == (0, 2)
    assert encode(np.array([-2, 7], np.float32)).tolist() == [-2, 7]
    assert text_of(EncodingError, lambda: HalfCodec().encode(np.array([-7e4], np.float32))) == (
        "A value of 70000 does not fit float16 (largest 65504). Keep this field dense, or scale it."
    )
    assert HalfCodec().encode(np.array([65504.0], np.float32)) == 65504
    for shade, bits, said in ((2, 1, "2 or less does not fit 1 bits (at most 1)"),
                              (16, 4, "16 or less does not fit 4 bits (at most 15)")):  # fmt: skip
        pixels = np.array([[shade, 0]], np.uint8)
        assert text_of(EncodingError, lambda p=pixels, b=bits: PackedCodec((2,), b).encode(p)) == (
            f"A shade of {said}. Keep this field dense."
        )
    assert text_of(ValueError, lambda: PackedCodec((2,), 3)) == (
        "bits is 3; pixels pack into 1, 2 or 4 bits."
    )


FIELDS = {
    "flags": Stored("flags", (4, 9), np.bool_),
    "flag": Stored("flag", (), np.bool_),
    "speed": Stored("speed", (3,), np.float32, -1, 1),
    "exact": Stored("exact", (3,), np.float64, -1, 1),
    "cells": Stored("cells", (5,), np.int64, 0, 9, codecs=(NarrowCodec(0, 9),)),
    "frame": Stored("frame", (8, 8), np.uint8, 0, 3, codecs=(DeltaCodec(PackedCodec((8, 8))),)),
    "walls": Static("walls", (3,), np.uint8, table="map"),
    "doors": Static("doors", (4, 2), np.float32, table="map", ragged=True),
    "nodes": Static("nodes", (4,), np.int32, table="map", ragged=True),
    "view": Derived("view", (3,), np.float32, sources=("speed",)),
    "secret": Private("secret", (3,), np.float32),
}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("flags", "dense bits"), ("flag", "dense"), ("speed", "dense half"), ("exact", "dense"),
        ("cells", "dense quantised"), ("frame", "dense delta"), ("walls", "dense interned"),
        ("doors", "dense half interned ragged"), ("nodes", "dense interned ragged"),
        ("view", "dense half derived"), ("secret", "dense"),
    ],
)  # fmt: skip
def test_a_field_offers_what_its_type_and_kind_allow(name, words):
    assert " ".join(offered(FIELDS[name])) == words


def test_flags_are_packed_over_their_last_axis_and_padding_is_dropped_of_halves():
    assert offered(FIELDS["flags"])["bits"] == BitCodec(9)
    assert offered(FIELDS["doors"])["ragged"] == RaggedCodec(HalfCodec())
    assert offered(FIELDS["nodes"])["ragged"] == RaggedCodec(DenseCodec())
    assert offered(FIELDS["walls"])["interned"] is offered(FIELDS["view"])["derived"] is None


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        (Storage.dense, "dense " * 11),
        (Storage.half, "dense dense half dense dense dense dense half dense half dense"),
        (Storage.sparse, "dense dense half dense dense dense dense ragged ragged half dense"),
        (
            Storage.lossless,
            "bits dense dense dense quantised delta interned interned interned derived dense",
        ),
        (
            Storage.smallest,
            "bits dense half dense quantised delta interned interned interned derived dense",
        ),
    ],
)
def test_a_storage_gives_each_field_its_representation(storage, words):
    assert [default_representation(f, storage) for f in FIELDS.values()] == words.split()


def test_a_choice_that_is_not_offered_or_not_there_is_refused_with_what_is():
    spec = ObservationSpec((FIELDS["speed"], FIELDS["flags"]))

    assert text_of(ConfigError, lambda: Encoding.choose(spec, fields={"spede": "half"})) == (
        "env.fields names ['spede'], which this observation does not have. It has ['flags', "
        "'speed']."
    )
    assert text_of(ConfigError, lambda: Encoding.choose(spec, fields={"speed": "bits"})) == (
        "env.fields.speed=bits is not possible; this field offers dense, half."
    )
    assert Encoding.choose(spec, fields={"speed": ""}).choice == {"speed": "dense", "flags": "bits"}


def test_rows_are_ids_first_then_what_is_stored_in_the_order_of_declaration():
    rows = Encoding.choose(TOY_SPEC, Storage.lossless, fields={"doors": "dense"}).rows

    assert [(r.name, r.shape, r.dtype.name, r.low, r.high, r.window) for r in rows] == [
        ("map_id", (), "int32", 0, MAX_ID - 1, 1),
        ("action_mask", (1,), "uint8", 0, 255, 1),
        ("position", (2,), "uint8", 0, 4, 1),
        ("speed", (2,), "float32", -1, 1, 1),
        ("trail", (5, 5), "uint8", 0, 3, 3),
        ("moves", (1,), "int8", 0, 4, EPISODE),
        ("doors", (4, 2), "float32", 0, 1, 1),
    ]
    assert [r.nbytes for r in rows] == [4, 1, 2, 8, 25, 1, 32]


def test_what_nobody_reads_is_not_stored_and_private_fields_only_where_they_are_asked_for():
    names = {r.name for r in Encoding.choose(TOY_SPEC, Storage.dense).rows}
    internal = {r.name for r in Encoding.choose(TOY_SPEC, Storage.dense, internal=True).rows}

    assert names == {
        "action_mask",
        "position",
        "speed",
        "trail",
        "walls",
        "doors",
        "picture",
        "turns",
    }
    assert internal - names == {"distance"}


def test_a_transition_takes_its_rows_and_a_copied_window_all_of_them():
    once = Encoding.choose(TOY_SPEC)
    copies = Encoding.choose(TOY_SPEC, frame_stack=FrameStack.copies)

    assert once.row_bytes == 4 + 1 + 2 + 8 + 25 + 1
    assert copies.row_bytes == once.row_bytes + 2 * 25


def test_the_policy_sees_windows_in_front_and_their_age():
    space = Encoding.choose(TOY_SPEC).policy_space(20)

    assert space["trail"] == spaces.Box(0, 3, (3, 5, 5), np.uint8)
    assert space["moves"] == spaces.Box(0, 4, (21, 1), np.int8)
    assert space["map_id"] == spaces.Box(0, MAX_ID - 1, (), np.int32)
    assert space["age"] == spaces.Box(0, 2**31 - 1, (1,), np.int32)
    plain = ObservationSpec((FIELDS["speed"],))
    assert set(Encoding.choose(plain).policy_space()) == {"speed"}


def test_a_spec_refuses_two_fields_of_one_name_and_sources_that_are_not_there():
    twice = FIELDS["speed"], FIELDS["speed"]
    lost = Derived("view", (1,), np.float32, sources=("map_id", "spede"))

    assert text_of(ConfigError, lambda: ObservationSpec(twice)) == (
        "Two fields of the observation share one name."
    )
    assert text_of(ConfigError, lambda: ObservationSpec((FIELDS["walls"], lost))) == (
        "Derived field 'view' reads 'spede', which is not there."
    )


def test_a_spec_refuses_names_that_are_made_here():
    age, stack = Stored("age", (1,), np.int32), Stored("x", (2,), np.float32, window=2)
    number = Stored("map_id", (), np.int32)

    assert ObservationSpec((age,)).by_name["age"] is age
    for fields in ((age, stack), (FIELDS["walls"], number)):
        with pytest.raises(ConfigError) as error:
            ObservationSpec(fields)
        assert str(error.value) == (
            f"An observation named '{fields[0].name if fields[0] is age else 'map_id'}' stands "
            "beside one of the same name that is made here: 'age' counts the steps of an episode "
            "where a window or env.frame_stack shows past rows, and <table>_id names a row of a "
            "table. Rename it by a wrapper."
        )


def encoder(storage=Storage.dense, **more) -> Encoder:
    tables = toy_tables()
    for level in range(2):
        tables["map"].intern(level, lambda level=level: map_rows(level))
    return Encoder(Encoding.choose(TOY_SPEC, storage), tables, 3, **more)


def raw(**changed):
    given = {
        "action_mask": np.ones((3, 4), np.bool_),
        "position": np.zeros((3, 2), np.uint8),
        "speed": np.zeros((3, 2), np.float32),
        "trail": np.zeros((3, 5, 5), np.uint8),
        "moves": np.zeros((3, 1), np.int8),
        "turns": np.zeros((3, 4), np.int16),
        "map_id": np.array([0, 1, 1], np.int32),
    }
    return {name: v for name, v in {**given, **changed}.items() if v is not None}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"position": np.zeros((3, 3), np.uint8)},
         "Field 'position' is declared as (2,) uint8, but the environment gave (3,) uint8. "
         "Change the spec or the environment."),
        ({"speed": np.full((3, 2), -2, np.float32)},
         "Field 'speed' is declared within [-1, 1], but the environment gave values from -2.0 to "
         "-2.0."),
        ({"map_id": np.array([0, 2], np.int32)},
         "Ids of table 'map' run from 0 to 2, but it has 2 rows. Intern a row before handing out "
         "its id."),
        ({"map_id": np.array([-1, 0], np.int32)},
         "Ids of table 'map' run from -1 to 0, but it has 2 rows. Intern a row before handing out "
         "its id."),
        ({"trail": None},
         "The environment gave no 'trail'; it gave ['action_mask', 'map_id', 'moves', 'position', "
         "'speed', 'turns']."),
        ({"turns": None},
         "Field 'turns' is computed from past rows, which the encoder does not have: choose "
         "env.fields.turns=derived, or let the environment give it as well."),
        ({"speed_dense": np.zeros((3, 2), np.float16)},
         "'speed_dense' holds rows of (2,) float32, but the environment gave (2,) float16."),
    ],
)  # fmt: skip
def test_an_encoder_says_what_it_was_given_and_what_was_declared(changed, said):
    assert text_of(EncodingError, lambda: encoder(debug=True).encode(raw(**changed))) == said


def test_ranges_are_looked_at_where_somebody_asks_and_their_ends_belong_to_them():
    beyond, ends = np.full((3, 2), -2, np.float32), np.array([[-1, 1]] * 3, np.float32)

    assert encoder().encode(raw(speed=beyond))["speed"] is beyond
    assert encoder(debug=True).encode(raw(speed=ends))["speed"] is ends
    assert encoder(debug=True).encode({n: v[:0] for n, v in raw().items()})["speed"].shape == (0, 2)


def test_an_encoder_holds_what_it_writes_itself():
    """Rows of three bit masks; with dense static fields, those of three and of the table's two."""
    lossless, dense = encoder(Storage.lossless), encoder(Storage.dense)
    dense.encode(raw())

    assert lossless.nbytes == 3 * 1
    assert dense.nbytes == (3 + 2) * (25 + 32)
    assert encoder(Storage.lossless, reuse=False).nbytes == 0


def test_of_representations_of_one_size_the_plainest_is_chosen():
    narrow = NarrowCodec(0, 255, "uint8")
    field = Stored("grey", (4,), np.uint8, 0, 255, "shades", codecs=(narrow,))
    assert default_representation(field, Storage.lossless) == "dense"


def test_the_smaller_of_two_exact_representations_is_chosen():
    wide = Stored("count", (4,), np.int64, 0, 255, "few", codecs=(NarrowCodec(0, 255),))
    assert default_representation(wide, Storage.lossless) == "quantised"
