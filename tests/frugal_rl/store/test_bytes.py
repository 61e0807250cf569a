"""Columns, regions, tables and chains count what they hold and refuse in words: by hand."""

import mmap
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.errors import ConfigError, DataError, MemoryBudgetError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.observation.codecs.pooled import DeltaCodec, FoundCodec, RaggedCodec
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Padding, Stored
from frugal_rl.store import columns as storing
from frugal_rl.store import region as regions
from frugal_rl.store.chain import FrameChain, most_block_units, tops_of
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.columns import ArrayColumn, allocate, newest, words
from frugal_rl.store.layout import (
    action_layout,
    columns_of,
    columns_of_space,
    flatten_bytes,
    planned_bytes,
    scalar_bytes,
)
from frugal_rl.store.region import CHUNK_BYTES, Region
from frugal_rl.store.side_table import SideTable
from frugal_rl.testing.refusals import text_of

RAM = RolloutLocation.ram
U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)


def spec(codec=None, **more) -> ColumnSpec:
    return ColumnSpec("x", (3, 2), U8, codec=codec, **more)


@pytest.mark.parametrize(
    ("column", "nbytes", "formula"),
    [
        (spec(), 20 * 6, "5 steps x 4 envs x 3 x 2 x uint8"),
        (spec(lead=2, window=3), 28 * 6, "(2 + 5) steps x 4 envs x 3 x 2 x uint8"),
        (ColumnSpec("x", (), F32), 80, "5 steps x 4 envs x 1 x float32"),
        (spec(RaggedCodec(expected_share=0.5)), 20 * 4 + 20 * 12,
         "5 steps x 4 envs x 12 B of index + a ragged pool of 80 B (50% of 8 B rows expected)"),
        (spec(DeltaCodec(expected_share=0.13)), 24 + 20 * 12 + 4 * 8,
         "5 steps x 4 envs x 12 B of index + a delta pool of 24 B (13% of 8 B rows expected) + "
         "4 x 8 B"),
        (spec(FoundCodec(expected_share=0.33)), 40,
         "5 steps x 4 envs x 6 B x 0.33 that change"),
    ],
)  # fmt: skip
def test_a_column_says_its_bytes_and_how_they_come_about(column, nbytes, formula):
    assert column.nbytes(5, 4) == nbytes
    assert column.formula(5, 4) == formula


@pytest.mark.parametrize(
    ("codec", "wanted", "place", "by"),
    [
        (None, "ram", "ram", "columns:ArrayColumn"),
        (None, "memmap", "memmap", "columns:ArrayColumn"),
        (None, "device", "device", "device:DeviceColumn"),
        (RaggedCodec(), "device", "ram", "ragged:RaggedColumn"),
        (DeltaCodec(), "memmap", "ram", "delta:DeltaColumn"),
        (FoundCodec(), "ram", "ram", "found.column:FoundColumn"),
    ],
)
def test_a_column_says_where_it_lies_and_who_allocates_it(codec, wanted, place, by):
    column = spec(codec)

    assert column.place(RolloutLocation(wanted)) is RolloutLocation(place)
    assert column.allocated_by(RolloutLocation(wanted)) == f"frugal_rl.store.{by}"


def test_a_row_is_padded_to_whole_words_and_shown_with_its_window():
    assert [ColumnSpec("x", (n,), U8).padded_bytes for n in (1, 8, 9)] == [8, 8, 16]
    assert spec().shown() == (3, 2)
    assert spec(window=4, lead=3).shown() == (4, 3, 2)
    assert spec(window=EPISODE, lead=9).shown() == (10, 3, 2)


@pytest.mark.parametrize(
    ("space", "layout"),
    [
        (spaces.Discrete(256), (1, "uint8")),
        (spaces.Discrete(257), (1, "uint16")),
        (spaces.Discrete(3, start=-1), (1, "int8")),
        (spaces.Discrete(2, start=255), (1, "uint16")),
        (spaces.MultiDiscrete([2, 256, 3]), (3, "uint8")),
        (spaces.MultiDiscrete([2, 257]), (2, "uint16")),
        (spaces.MultiBinary((2, 3)), (6, "int8")),
        (spaces.Box(-1, 1, (2, 2), np.float64), (4, "float64")),
    ],
)
def test_actions_take_the_smallest_type_that_is_exact(space, layout):
    count, dtype = action_layout(space)

    assert (count, dtype.name) == layout
    assert scalar_bytes(5, 4, space) == 20 * (count * dtype.itemsize + 21)


def test_columns_of_an_encoding_keep_windows_once_or_copied():
    frame = Stored("frame", (2,), np.uint8, 0, 9, window=3, padding=Padding.repeat)
    log = Stored("log", (1,), np.int8, 0, 9, window=EPISODE)
    made = Encoding.choose(ObservationSpec((frame, log, Stored("x", (4,), np.float32))))
    found = [(c.name, c.shape, c.window, c.lead, c.padding) for c in columns_of(made, 7)]

    assert found == [
        ("frame", (2,), 3, 2, Padding.repeat),
        ("log", (1,), EPISODE, 7, Padding.zero),
        ("x", (4,), 1, 0, Padding.zero),
        ("age", (1,), 1, 0, Padding.zero),
    ]
    assert columns_of(made, 7)[-1].dtype == np.int32
    assert flatten_bytes(made, 5, 4, 7) == 20 * 16  # of what has no past
    rows = (2 + 5) * 4 * 2 + (7 + 5) * 4 + 20 * 16 + 20 * 4
    assert planned_bytes(made, 5, 4, spaces.Discrete(2), 7) == rows + 20 * 22


def test_columns_of_a_plain_space_are_its_entries_and_others_are_refused():
    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(0, 1, ()),
                         "c": spaces.MultiBinary(4)})  # fmt: skip

    assert [(c.name, c.shape, c.dtype.name) for c in columns_of_space(space)] == [
        ("a", (1,), "int64"), ("b", (1,), "float32"), ("c", (4,), "int8"),
    ]  # fmt: skip
    assert [c.name for c in columns_of_space(spaces.Discrete(3))] == ["obs"]
    assert text_of(ConfigError, lambda: columns_of_space(spaces.Dict({"t": spaces.Text(3)}))) == (
        "The rollout cannot store 't', a Text; it stores Box, Discrete, MultiDiscrete, MultiBinary "
        "and flat Dict spaces of them. Put a wrapper of gymnasium.wrappers around the environment: "
        "FlattenObservation, or FilterObservation without it."
    )
    assert text_of(ConfigError, lambda: action_layout(spaces.Text(3))) == (
        "The rollout cannot store actions of a Text; it stores Discrete, MultiDiscrete, "
        "MultiBinary and Box. Put a wrapper around the environment that makes it one of these."
    )


@pytest.mark.parametrize(("size", "word"), [(8, "u8"), (12, "u4"), (6, "u2"), (5, "u1")])
def test_arrays_are_moved_by_their_largest_word(size, word):
    array = np.zeros((2, 3, size), np.uint8)

    assert words(array, 2).dtype == np.dtype(word)
    assert words(array, 2).shape == (2, 3, size // np.dtype(word).itemsize)
    assert np.shares_memory(words(array, 2), array)


def test_the_newest_row_is_the_last_of_a_window_and_the_ageth_of_an_episode():
    shown = np.arange(12).reshape(2, 6)

    assert newest(spec(window=1), shown, None) is shown
    assert newest(spec(window=6), shown, None).tolist() == [5, 11]
    assert newest(spec(window=EPISODE), shown, np.array([2, 0])).tolist() == [2, 6]


def test_flattening_moves_a_column_to_its_environments_once_and_back():
    column = ArrayColumn(ColumnSpec("x", (2,), U8), 3, 2, RAM, "")
    rows = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    for t in range(3):
        column.write(t, rows[t], None)
    column.flatten()
    values = column.values
    column.flatten()

    assert column.values is values
    assert (values == rows.swapaxes(0, 1).reshape(6, 2)).all()
    t, n = np.array([0, 2, 1]), np.array([1, 0, 1])
    assert (column.gather(t, n, None, None) == rows[t, n]).all()
    column.write(0, rows[1], None)
    assert (column.values.shape, column.flattened) == ((3, 2, 2), False)
    assert column.values[0].tolist() == rows[1].tolist()
    past = ArrayColumn(ColumnSpec("x", (2,), U8, 2, 1), 3, 2, RAM, "")
    past.flatten()
    assert past.values.shape == (4, 2, 2)


def test_a_mapped_file_is_where_it_is_wanted_and_refused_where_it_does_not_fit(
    tmp_path, monkeypatch
):
    mapped = allocate((3, 2), F32, RolloutLocation.memmap, str(tmp_path))
    assert isinstance(mapped, np.memmap)
    assert (mapped.shape, mapped.dtype, mapped.any()) == ((3, 2), F32, np.False_)
    assert list(tmp_path.iterdir()) == []
    assert not isinstance(allocate((3,), F32, RAM, ""), np.memmap)
    monkeypatch.setattr(storing.shutil, "disk_usage", lambda where: SimpleNamespace(free=2**30))
    allocate((2,), F32, RolloutLocation.memmap, str(tmp_path))
    shape = (3 << 28,)
    assert text_of(
        MemoryBudgetError, lambda: allocate(shape, F32, RolloutLocation.memmap, "/x")
    ) == (
        "The rollout needs 3.0 GiB in /x, which has 1.0 free. Choose another run_dir, a smaller "
        "algo.n_steps or memory.rollout_location=ram."
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device to pin memory for")
def test_pinned_memory_needs_a_device():
    assert text_of(ConfigError, lambda: allocate((3,), F32, RolloutLocation.pinned, "")) == (
        "memory.rollout_location=pinned needs a CUDA device; none is here. Choose "
        "memory.rollout_location=ram."
    )


def test_a_region_counts_the_chunks_that_were_written_and_gives_them_back():
    region = Region(3 * CHUNK_BYTES - 1)
    assert (len(region.touched), region.nbytes) == (3, 0)
    region.touch(0, 1)
    region.touch(CHUNK_BYTES, 2 * CHUNK_BYTES)
    assert region.touched.tolist() == [True, True, False]
    region.touch(2 * CHUNK_BYTES - 1, 2 * CHUNK_BYTES + 1)
    assert region.nbytes == 3 * CHUNK_BYTES
    region.view(np.uint8)[:] = 9
    region.release(CHUNK_BYTES - 1, 3 * CHUNK_BYTES - 1)  # the chunk of the end stays
    assert region.touched.tolist() == [False, False, True]
    chunks = region.view(np.uint8).reshape(3, -1)
    assert (chunks[:2].max(), chunks[2].min()) == (0, 9)
    region.release(5, 5)
    assert region.nbytes == CHUNK_BYTES
    assert len(Region(0).touched) == 1


def test_a_region_is_restored_whole_and_refuses_chunks_that_it_has_not():
    one, two = Region(3 * CHUNK_BYTES), Region(3 * CHUNK_BYTES)
    one.view(np.uint8)[CHUNK_BYTES] = 7
    one.touch(CHUNK_BYTES, CHUNK_BYTES + 1)
    two.view(np.uint8)[0] = 5
    two.touch(0, 1)
    two.load(one.state())

    assert (two.view(np.uint8) == one.view(np.uint8)).all()
    assert two.touched.tolist() == [False, True, False]
    for chunks in ([3], [-1]):
        state = {"chunks": np.array(chunks), "bytes": np.zeros((1, CHUNK_BYTES), np.uint8)}
        assert text_of(DataError, lambda state=state: two.load(state)) == (
            "a replay's chunk lies outside its region."
        )


def test_a_region_that_is_not_reserved_says_what_to_do(monkeypatch, tmp_path):
    def refuse(*given, **more):
        raise OSError("no room")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert text_of(MemoryBudgetError, lambda: Region(3 << 29)) == (
        "The system reserves no 1.5 GiB of addresses for the store (no room), though it would fill "
        "only what it needs. Choose a smaller size, or a mapped file."
    )
    free = SimpleNamespace(free=2 << 30)
    monkeypatch.setattr(regions.shutil, "disk_usage", lambda where: free)
    real = regions.tempfile.TemporaryFile

    class Full:
        def __init__(self, **where):
            self.file = real(**where)

        def __enter__(self):
            return SimpleNamespace(truncate=refuse, fileno=self.file.fileno)

        def __exit__(self, *error):
            self.file.close()

    monkeypatch.setattr(regions.tempfile, "TemporaryFile", Full)
    where = str(tmp_path)
    said = text_of(MemoryBudgetError, lambda: Region(3 << 29, RolloutLocation.memmap, where))
    assert said == (
        f"{where} takes no file of up to 1.5 GiB (no room; 2.0 GiB are free). Choose another "
        "folder, a smaller size, or memory."
    )


def test_a_side_table_finds_drops_and_restores_in_order_of_steps():
    table = SideTable(3, (2,), np.int16)
    for step, n in ((0, 1), (0, 2), (4, 0), (5, 2)):
        table.append(step, n, np.array([step, n]))
    found = table.find(np.array([4, 0]), np.array([0, 2]))

    assert (len(table), found.tolist()) == (4, [[4, 0], [0, 2]])
    table.drop_before(4)
    assert len(table) == 2
    other = SideTable(3, (2,), np.int16)
    other.load(table.state())
    assert other.find(np.array([5]), np.array([2])).tolist() == [[5, 2]]
    assert table.nbytes == table.keys.nbytes + table.values.nbytes


def test_a_chain_counts_records_anchors_and_tables():
    chain = FrameChain(100, 10, 2, key_every=4)
    parts = chain.parts()

    assert chain.blocks == 4  # three hold ten steps, and one more
    assert chain.block_units == most_block_units(13, 2, 4) == 9 * 2 * 13 * 4
    assert len(chain.units) * 2 >= 6 * chain.block_units * 2
    tables = 4 * 8 + 4 * 2 * 4 + 16 * 2 * 4 + 4 * 2 * 4 + 2 * 13 * 8 + 8 * 4
    assert parts == {"records": 0, "anchors": 0, "tables": tables + chain.beside.nbytes}
    assert [tops_of(words) for words in (1, 1024, 1025)] == [1, 1, 2]
    assert text_of(ValueError, lambda: FrameChain(2**20, 10, 64, key_every=64)) == (
        "A block of 64 rows of 64 environments may need 8657043456 bytes, more than 2147483646. "
        "Choose a smaller key_every."
    )
