"""The decoder gives what the environment observed, in every storage, reading only what is asked."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from frugal_rl.errors import ConfigError
from frugal_rl.memory import FrameStack, MemoryProfile, Storage
from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.codecs.half import HalfCodec
from frugal_rl.observation.decoder import Decoder, decode_row, resolve_twin
from frugal_rl.observation.distinct import by_first_sight, content_ids, distinct
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.mirror import TableMirror, take
from frugal_rl.observation.spec import Derived, ObservationSpec, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.testing.toy import TOY_SPEC, Toy

torch.set_num_threads(1)


def played(storage, stack=FrameStack.once, steps=30):
    """Policy forms of a few steps of random play, with their encoding and tables."""
    encoding = Encoding.choose(TOY_SPEC, storage, stack)
    env = Toy().make_vec(5, encoding, MemoryProfile(), None, "train")
    history = History(encoding, 5, 20)
    rng = np.random.default_rng(0)
    rows = history.reset(env.reset(1))
    for _ in range(steps):
        yield encoding, env.tables, {k: v.copy() for k, v in rows.items()}
        step = env.step(rng.integers(4, size=5))
        rows, _ = history.push(step.rows, step.done)


@pytest.mark.parametrize("storage", list(Storage))
def test_decoded_tensors_equal_the_numpy_reference_bit_for_bit(storage):
    for encoding, tables, rows in played(storage):
        fields = Decoder(encoding, tables)({k: torch.from_numpy(v) for k, v in rows.items()})
        expected = decode(encoding, rows, tables)
        assert set(fields) == set(expected)
        for name, values in expected.items():
            assert_array_equal(fields[name].numpy(), values)
            assert fields[name].numpy().dtype == np.dtype(TOY_SPEC.by_name[name].dtype)


def test_lossless_and_dense_rows_decode_to_the_same_fields():
    dense, lossless = played(Storage.dense), played(Storage.lossless)
    for (a, tables_a, rows_a), (b, tables_b, rows_b) in zip(dense, lossless, strict=True):
        one = Decoder(a, tables_a)({k: torch.from_numpy(v) for k, v in rows_a.items()})
        two = Decoder(b, tables_b)({k: torch.from_numpy(v) for k, v in rows_b.items()})
        for name in one:
            assert torch.equal(one[name], two[name]), name


def test_only_what_is_read_is_computed_and_only_once():
    encoding, tables, rows = next(played(Storage.lossless))
    fields = Decoder(encoding, tables)({k: torch.from_numpy(v) for k, v in rows.items()})
    assert fields._decoded == {}
    assert fields["speed"] is fields["speed"]
    assert set(fields._decoded) == {"speed"}


def test_a_scalar_row_may_arrive_as_a_column():
    spec = ObservationSpec((Stored("clock", (), np.int32, 0, 9),))
    decoder = Decoder(Encoding.choose(spec, Storage.dense), Tables())
    assert decoder({"clock": torch.tensor([[3], [4]], dtype=torch.int32)})["clock"].shape == (2,)


@pytest.mark.parametrize("length", [1, 7, 8, 19])
def test_bits_unpack_as_numpy_unpacks_them(length):
    flags = np.random.default_rng(length).random((3, 4, length)) < 0.5
    codec = BitCodec(length)
    assert_array_equal(decode_row(codec, torch.from_numpy(codec.encode(flags))).numpy(), flags)


def test_half_rows_become_float32():
    codec = HalfCodec()
    values = np.float32([[0.1, -3.25]])
    decoded = decode_row(codec, torch.from_numpy(codec.encode(values)))
    assert_array_equal(decoded.numpy(), codec.decode(codec.encode(values)))


def table():
    fields = (TableField("tiles", (3,), np.uint16), TableField("nodes", (9, 2), np.float32, True))
    return StaticTable("level", fields)


def row_of(level):
    rng = np.random.default_rng(level)
    nodes = rng.random((level % 5, 2)).astype(np.float32)
    return {"tiles": rng.integers(2**16, size=3).astype(np.uint16), "nodes": nodes}


def test_a_mirror_follows_a_table_that_grows():
    static = table()
    mirror = TableMirror(static)
    for level in range(40):
        static.intern(level, lambda level=level: row_of(level))
        ids = torch.tensor([level, 0, level // 2])
        expected = np.stack([row_of(int(i))["tiles"] for i in ids])
        assert_array_equal(mirror.rows("tiles", ids).numpy(), expected)


def test_ragged_rows_come_without_padding_and_can_be_padded():
    static = table()
    for level in range(9):
        static.intern(level, lambda level=level: row_of(level))
    rows = TableMirror(static).ragged("nodes", torch.tensor([4, 0, 3, 4]))
    assert rows.lengths.tolist() == [4, 0, 3, 4]
    assert rows.row_of_item.tolist() == [0] * 4 + [2] * 3 + [3] * 4
    assert rows.place_in_row.tolist() == [0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3]
    padded = rows.padded(9).numpy()
    assert_array_equal(padded[2, :3], row_of(3)["nodes"])
    assert not padded[2, 3:].any()


def test_on_the_cpu_a_mirror_shares_the_tables_memory():
    static = table()
    static.intern(0, lambda: row_of(0))
    mirror = TableMirror(static)
    assert mirror["tiles"].data_ptr() == static.arenas["tiles"].values.ctypes.data
    assert mirror.nbytes == 0


def test_distinct_ids_and_places_rebuild_the_ids():
    ids = torch.tensor([7, 3, 3, 9, 7])
    unique, inverse = distinct(ids)
    assert unique.tolist() == [3, 7, 9]
    assert torch.equal(unique[inverse], ids)


def test_groups_are_numbered_by_first_sight_whatever_their_ids():
    firsts, group = by_first_sight(torch.tensor([7, 3, 3, 9, 7]))
    assert firsts.tolist() == [0, 1, 3]
    assert group.tolist() == [0, 1, 1, 2, 0]


def test_rows_are_alike_when_every_bit_is():
    rows = torch.tensor([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]])
    assert content_ids(rows).tolist() == [0, 1, 0, 3, 4, 1]  # same sums of bytes, other rows


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int16, np.float16, np.bool_])
def test_rows_of_every_dtype_can_be_taken(dtype):
    values = np.arange(12).astype(dtype).reshape(6, 2)
    taken = take(torch.from_numpy(values), torch.tensor([5, 1]))
    assert_array_equal(taken.numpy(), values[[5, 1]])


@pytest.mark.parametrize(
    "path", ["os:system", "frugal_rl.observation.mirror", "frugal_rl.nowhere:f"]
)
def test_a_twin_outside_our_packages_or_missing_is_refused_in_words(path):
    with pytest.raises(ConfigError, match="twin"):
        resolve_twin(path)


def test_a_derived_field_of_an_untrusted_package_is_not_imported():
    spec = ObservationSpec(
        (
            Stored("x", (1,), np.float32),
            Derived("y", (1,), np.float32, sources=("x",), twin="os:system"),
        )
    )
    decoder = Decoder(Encoding.choose(spec, Storage.lossless), Tables())
    with pytest.raises(ConfigError, match="plugins"):
        decoder({"x": torch.zeros(1, 1)})["y"]
