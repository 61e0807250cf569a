"""Whatever arrives comes back bit for bit, and is small where something repeats."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.observation.found_form import FoundForm, read_form
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.compressed import Compressed
from frugal_rl.store.found.handled import HandledColumn
from frugal_rl.store.found.interned import Interned
from frugal_rl.store.found.narrow import NarrowColumn
from frugal_rl.store.found.plain import Plain
from frugal_rl.store.found.records import Records
from frugal_rl.store.found.stacks import take_apart
from frugal_rl.store.found.worded import Worded

STEPS, ENVS = 48, 3
DTYPES = (np.uint8, np.bool_, np.int8, np.int16, np.int64, np.float16, np.float32, np.float64)


class Worlds:
    """Rows [N, *shape] of one kind per step, in one array that is written over at each step."""

    def __init__(self, rng, kind, shape, dtype):
        self.rng, self.kind, self.shape, self.dtype = rng, kind, shape, np.dtype(dtype)
        self.rows = self.noise(ENVS)
        self.known = self.noise(4)

    def noise(self, count):
        size = count * int(np.prod(self.shape)) * self.dtype.itemsize
        raw = self.rng.integers(0, 2 if self.dtype == bool else 256, size, np.uint8)
        return raw.view(self.dtype).reshape(count, *self.shape)

    def step(self):
        for n in range(ENVS):
            self.move(n, self.kind if self.kind != "mixed" else self.rng.choice(KINDS[:-1]))
        return self.rows

    def move(self, n, kind):
        rng, row = self.rng, self.rows[n]
        if kind == "noise":
            row[...] = self.noise(1)[0]
        elif kind == "known":
            row[...] = self.known[rng.integers(len(self.known))]
        elif kind == "slow" and row.size:
            row.reshape(-1)[rng.integers(row.size)] = self.noise(1)[0].reshape(-1)[0]
        elif kind == "sparse":
            row[...] = 0
            row.reshape(-1)[: rng.integers(row.size + 1)] = 1
        elif kind == "whole":
            row[...] = rng.integers(0, 5, row.shape)
            if rng.random() < 0.02:  # a row that breaks it
                row.reshape(-1)[0] = self.noise(1)[0].reshape(-1)[0]
        elif kind == "scroll":
            row[...] = np.roll(row, 1, axis=-1)
            row[: len(row) // 2] = row[0]
        elif kind.startswith("stack"):
            self.stack(row, 0 if kind == "stack first" else -1)

    def stack(self, row, axis):
        moved = np.moveaxis(row, axis, 0)
        chance = self.rng.random()
        moved[:-1] = moved[1:].copy()
        moved[-1] = np.moveaxis(self.noise(1)[0], axis, 0)[0]
        if chance < 0.05:  # a reset in mid-stack
            moved[:-1] = 0
        elif chance < 0.1:
            moved[:-1] = moved[-1]
        elif chance < 0.15:
            moved[...] = np.moveaxis(self.noise(1)[0], axis, 0)


KINDS = (
    "constant",
    "noise",
    "known",
    "slow",
    "sparse",
    "scroll",
    "whole",
    "stack first",
    "stack last",
    "mixed",
)
SHAPES = [(1,), (3,), (16,), (4, 6), (4, 5, 5), (5, 5, 4), (2, 3, 8), (257,), (40, 40)]


def compare(column, worlds, steps, rollouts):
    for _ in range(rollouts):
        dense = np.zeros((steps, ENVS, *worlds.shape), worlds.dtype)
        for t in range(steps):
            rows = worlds.step()
            dense[t] = rows
            column.write(t, rows, None)
        n, t = np.divmod(worlds.rng.permutation(steps * ENVS), steps)
        drawn = column.gather(t, n, None, None)
        assert drawn.tobytes() == dense[t, n].tobytes()
    return dense


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32), st.sampled_from(KINDS), st.sampled_from(SHAPES), st.sampled_from(DTYPES)
)
def test_a_found_column_gives_back_every_row(seed, kind, shape, dtype):
    worlds = Worlds(np.random.default_rng(seed), kind, shape, dtype)
    steps = int(worlds.rng.integers(1, STEPS))
    column = FoundColumn(ColumnSpec("x", shape, np.dtype(dtype)), steps, ENVS)

    compare(column, worlds, steps, rollouts=3)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand_rows_of_each_kind_come_back(kind, dtype):
    for shape in ((7,), (4, 6, 6)):
        worlds = Worlds(np.random.default_rng(1), kind, shape, dtype)
        column = FoundColumn(ColumnSpec("x", shape, np.dtype(dtype)), 2000, ENVS)
        compare(column, worlds, 2000, rollouts=9)


@pytest.mark.parametrize(
    ("kind", "shape", "share"),
    [
        ("constant", (4, 6, 6), 0.05),
        ("known", (16, 6), 0.12),
        ("slow", (64, 64), 0.025),
        ("scroll", (48, 48), 0.15),
        ("stack first", (4, 24, 24), 0.3),
        ("stack last", (24, 24, 4), 0.3),
        ("noise", (64,), 1.0),
    ],
)
def test_what_repeats_is_kept_once(kind, shape, share):
    worlds = Worlds(np.random.default_rng(0), kind, shape, np.uint8)
    column = FoundColumn(ColumnSpec("x", shape, np.dtype(np.uint8)), 512, ENVS)

    dense = compare(column, worlds, 512, rollouts=2)

    assert column.nbytes <= share * 1.02 * dense.nbytes


def test_rows_that_turn_into_noise_are_a_segment_of_their_own():
    worlds = Worlds(np.random.default_rng(0), "constant", (64,), np.uint8)
    column = FoundColumn(ColumnSpec("x", (64,), np.dtype(np.uint8)), 512, ENVS)
    dense = np.zeros((512, ENVS, 64), np.uint8)
    for t in range(512):
        worlds.kind = "constant" if t < 100 else "noise"
        dense[t] = worlds.step()
        column.write(t, dense[t], None)
    n, t = np.divmod(np.arange(512 * ENVS), 512)

    assert len(column.segments) > 1
    assert (column.gather(t, n, None, None) == dense[t, n]).all()
    assert column.nbytes <= 1.02 * dense.nbytes


@pytest.mark.parametrize("shape", [(16,), (40, 40)])
@pytest.mark.parametrize("kinds", [("slow", "noise"), ("known", "noise"), ("noise", "scroll")])
def test_rollouts_of_changing_kinds_are_never_larger_than_the_rows(kinds, shape):
    worlds = Worlds(np.random.default_rng(0), kinds[0], shape, np.uint8)
    column = FoundColumn(ColumnSpec("x", shape, np.dtype(np.uint8)), 256, ENVS)
    for rollout in range(6):
        worlds.kind = kinds[rollout % 2]
        dense = compare(column, worlds, 256, rollouts=1)

        assert column.nbytes <= 1.02 * dense.nbytes + 4096  # a table of slots, whatever the rows


def test_images_whose_channels_lie_last_in_memory_are_the_same_stack():
    rng = np.random.default_rng(0)
    memory = np.zeros((ENVS, 8, 8, 4), np.uint8)
    column = FoundColumn(ColumnSpec("x", (4, 8, 8), np.dtype(np.uint8)), 64, ENVS)
    kept = []
    for t in range(64):
        memory[..., :-1] = memory[..., 1:].copy()
        memory[..., -1] = rng.integers(0, 256, (ENVS, 8, 8))
        shown = memory.transpose(0, 3, 1, 2) if t % 7 else memory.transpose(0, 3, 1, 2).copy()
        kept.append(shown.copy())
        column.write(t, shown, None)
    n, t = np.divmod(np.arange(64 * ENVS), 64)

    assert (column.gather(t, n, None, None) == np.array(kept)[t, n]).all()
    assert "stack of 4" in column.form.name


def test_pictures_whose_channels_lie_last_are_kept_as_they_lie_whatever_comes_between():
    rng = np.random.default_rng(0)
    memory = rng.integers(0, 256, (ENVS, 16, 16, 3), np.uint8)
    column = FoundColumn(ColumnSpec("x", (3, 16, 16), np.dtype(np.uint8)), 64, ENVS)
    for rollout in range(3):
        kept = []
        for t in range(64):
            memory[:, rng.integers(16), rng.integers(16)] += 1
            shown = memory.transpose(0, 3, 1, 2)
            shown = shown.copy() if rollout == 1 or t % 9 == 4 else shown
            kept.append(shown.copy())
            column.write(t, shown, None)
        n, t = np.divmod(rng.permutation(64 * ENVS), 64)
        assert (column.gather(t, n, None, None) == np.array(kept)[t, n]).all()
    assert column.nbytes < 0.2 * column.spec.nbytes(64, ENVS)


def test_rows_that_scroll_are_compressed_against_those_before_in_groups():
    rng = np.random.default_rng(0)
    world = rng.integers(0, 256, (400, 64), np.uint8)
    rows, env, kept = Compressed(2, 512), np.arange(2), []
    handles = np.zeros(2, np.int64)
    for t in range(40):
        shown = np.array([world[t : t + 64], world[200 + t // 2 :][:64]])
        rows.append(shown.reshape(2, -1).view(np.uint64), env, handles)
        kept.append((handles.copy(), shown.reshape(2, -1)))
    order = rng.permutation(40)
    out = np.zeros((40, 2, 512), np.uint64)
    rows.read(np.array([kept[i][0] for i in order]), out)

    assert out.tobytes() == np.array([kept[i][1] for i in order]).tobytes()
    assert rows.used == 40 + 20  # equal to the one before: the same row
    assert rows.used_bytes < 0.25 * 60 * 4096


@pytest.mark.parametrize(
    ("dtype", "low", "count", "bits"),
    [
        (np.bool_, 0, 2, 1),
        (np.float32, 0, 2, 1),
        (np.int64, -3, 4, 2),
        (np.float64, 10, 16, 4),
        (np.uint8, 250, 6, 4),
        (np.int32, -70, 200, 8),
        (np.uint64, 1 << 61, 60000, 16),
        (">f4", 0, 2, 1),
        (">i8", -3, 4, 2),
    ],
)
def test_whole_numbers_of_a_small_range_take_the_bits_of_that_range(dtype, low, count, bits):
    rng = np.random.default_rng(0)
    column = FoundColumn(ColumnSpec("x", (33,), np.dtype(dtype)), 512, ENVS)
    for _ in range(2):
        dense = (rng.integers(0, count, (512, ENVS, 33)) + low).astype(dtype)
        for t in range(512):
            column.write(t, dense[t], None)
        n, t = np.divmod(rng.permutation(512 * ENVS), 512)
        assert column.gather(t, n, None, None).tobytes() == dense[t, n].tobytes()

    known = (1 << bits) * np.dtype(dtype).itemsize if bits <= 8 else 0
    assert column.nbytes == 512 * ENVS * -(-33 * bits // 8) + known


@pytest.mark.parametrize("odd", [-0.0, np.nan, np.inf, 0.5, 1e30, -7])
def test_a_row_that_is_no_whole_number_of_the_range_comes_back_as_it_was(odd):
    column = NarrowColumn(ColumnSpec("x", (3,), np.dtype(np.float32)), 5, 2, low=0, bits=2)
    dense = np.ones((5, 2, 3), np.float32)
    dense[3, 1, 2] = odd
    for t in range(5):
        column.write(t, dense[t], None)
    n, t = np.divmod(np.arange(10), 5)

    assert column.gather(t, n, None, None).tobytes() == dense[t, n].tobytes()
    assert column.broken.used == 1


def test_signs_of_zero_and_payloads_of_nan_are_kept():
    bits = np.array([[0x80000000, 0x7FC00001, 0xFFC0BEEF, 0]], np.uint32)
    rows = np.repeat(bits, ENVS, axis=0).view(np.float32)
    for kind in (Records, Worded, Interned, Plain, Compressed):
        from_rows = kind(ENVS, 2)
        handles = np.zeros(ENVS, np.int64)
        from_rows.append(rows.view(np.uint64), np.arange(ENVS), handles)
        out = np.zeros((ENVS, 1, 2), np.uint64)
        from_rows.read(handles[:, None], out)
        assert out.tobytes() == rows.tobytes()


def test_what_a_study_expects_does_not_decide_what_is_worth_keeping():
    rng, dtype = np.random.default_rng(0), np.dtype(np.float32)
    plain = ColumnSpec("obs", (3, 40), dtype)
    studied = ColumnSpec("obs", (3, 40), dtype, codec=FoundCodec(expected_share=0.1))
    columns = [FoundColumn(spec, 256, ENVS) for spec in (plain, studied)]
    rows = np.zeros((ENVS, 3, 40), np.float32)
    for t in range(256):
        rows = np.concatenate([rows[:, 1:], rng.normal(size=(ENVS, 1, 40))], 1, dtype=np.float32)
        for column in columns:
            column.write(t, rows, None)
    assert columns[0].nbytes == columns[1].nbytes < 0.5 * plain.dense_bytes(256, ENVS)


@pytest.mark.parametrize("kind", [Records, Worded, Interned, Compressed])
def test_pictures_of_channels_last_are_turned_whatever_keeps_them(kind):
    rng = np.random.default_rng(0)
    memory, kept = rng.integers(0, 256, (ENVS, 20, 30, 3), np.uint8), []
    column = HandledColumn(ColumnSpec("x", (3, 20, 30), np.dtype(np.uint8)), 60, ENVS, kind)
    for t in range(60):
        memory[:, rng.integers(20)] = rng.integers(0, 256, 3, np.uint8)
        kept.append(memory.transpose(0, 3, 1, 2).copy())
        column.write(t, memory.transpose(0, 3, 1, 2), None)
    n, t = np.divmod(rng.integers(0, 60 * ENVS, 200), 60)  # some twice, none in order

    assert column.gather(t, n, None, None).tobytes() == np.array(kept)[t, n].tobytes()


@pytest.mark.parametrize(
    ("form", "kind", "dtype"),
    [
        ("as it is", "constant", np.uint8),
        ("differences", "slow", np.uint8),
        ("differences in known words", "constant", np.uint8),
        ("distinct rows", "known", np.uint8),
        ("compressed", "slow", np.uint8),
        ("whole numbers from 0 in 4 bits", "whole", np.int16),
        ("stack of 4 along 1 x 96 B, distinct rows", "constant", np.uint8),
        ("stack of 4 along 1 x 96 B newest first, differences", "constant", np.uint8),
    ],
)
def test_a_frozen_form_holds_from_the_first_row_on_and_is_tried_against_no_other(
    form, kind, dtype, monkeypatch
):
    monkeypatch.setattr("frugal_rl.store.found.column.best_form", None)  # nobody asks for it
    shape = (4, 96)
    spec = ColumnSpec("x", shape, np.dtype(dtype), codec=FoundCodec(form=read_form(form)))
    column = FoundColumn(spec, STEPS, ENVS)
    worlds = Worlds(np.random.default_rng(0), kind, shape, dtype)
    if form.startswith("stack"):
        worlds.rows[...] = 7  # is a stack of equal parts, from both ends

    assert [(s.begin, s.steps, s.form.name) for s in column.segments] == [(0, STEPS, form)]
    compare(column, worlds, STEPS, rollouts=4)
    assert [(s.begin, s.steps, s.form.name) for s in column.segments] == [(0, STEPS, form)]


def test_a_frozen_form_that_fails_is_left_for_the_rest_of_a_rollout_and_tried_in_the_next():
    form = FoundForm("differences")
    spec = ColumnSpec("x", (64,), np.dtype(np.uint8), codec=FoundCodec(form=form))
    column = FoundColumn(spec, 256, ENVS)
    worlds = Worlds(np.random.default_rng(0), "noise", (64,), np.uint8)

    dense = compare(column, worlds, 256, rollouts=1)
    assert [s.form.name for s in column.segments] == ["differences", "as it is"]
    assert column.nbytes < 1.3 * dense.nbytes
    worlds.kind = "constant"
    compare(column, worlds, 256, rollouts=1)
    assert [s.form.name for s in column.segments] == ["differences"]
    assert column.nbytes < 0.1 * dense.nbytes


def test_rows_that_cannot_be_written_to_compile_nothing_anew():
    spec = ColumnSpec("obs", (4, 64), np.dtype(np.uint8))
    rows = np.random.default_rng(0).integers(0, 256, (68, 64), np.uint8)
    seen = []
    for writeable in (True, False):
        column = FoundColumn(spec, 64, 1)
        for t in range(64):
            shown = np.ascontiguousarray(rows[t : t + 4])[None]
            shown.flags.writeable = writeable
            column.write(t, shown, None)
        every = np.arange(64)
        assert (
            column.gather(every, 0 * every, None, None) == rows[every[:, None] + np.arange(4)]
        ).all()
        assert column.form.name.startswith("stack of 4")
        seen.append(len(take_apart.signatures))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("steps", [5, 16, 17, 48])
def test_short_rollouts_whose_rows_become_others_take_no_more_than_those_rows(steps):
    spec, rng = ColumnSpec("obs", (3, 40), np.dtype(np.float64)), np.random.default_rng(steps)
    column, dense = FoundColumn(spec, steps, 2), steps * 2 * 960
    every, forms = np.divmod(np.arange(2 * steps), 2), set()
    for rollout in range(9):
        rows = rng.normal(size=(steps, 2, 3, 40))
        if rollout % 3 < 2:  # whole numbers, then noise in the form that was best for them
            rows = np.float64(rows > 0)
        for t in range(steps):
            column.write(t, rows[t], None)
            forms.add(column.segments[0].form.name)
        assert column.gather(*every, None, None).tobytes() == rows.tobytes()
        assert column.nbytes <= 1.02 * dense, (rollout, column.form.name)
    assert any(name.startswith("whole numbers") for name in forms)


@pytest.mark.parametrize(("before", "looks"), [(0, 2), (2, 2), (3, 1), (9, 1)])
def test_after_some_rollouts_that_outgrew_their_form_no_other_is_sought(before, looks):
    spec, rng = ColumnSpec("obs", (3, 40), np.dtype(np.float64)), np.random.default_rng(0)
    column, tried = FoundColumn(spec, 5, 2), []
    best, column._best = column._best, lambda seen: tried.append(seen) or best(seen)
    column._outgrown = before
    for rows in (np.float64(rng.normal(size=(5, 2, 3, 40)) > 0), rng.normal(size=(5, 2, 3, 40))):
        tried.clear()
        for t in range(5):
            column.write(t, rows[t], None)
    assert (len(tried), column.form.name) == (looks - 1, "as it is")
