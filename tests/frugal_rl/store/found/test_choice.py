"""What a column of found rows takes, which form it chooses and when it looks: by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.errors import ConfigError, EncodingError
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found import tiled, trial, worded
from frugal_rl.store.found.array import FoundArray
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.compressed import Compressed
from frugal_rl.store.found.handled import HandledColumn, StackedColumn
from frugal_rl.store.found.narrow import NarrowColumn
from frugal_rl.store.found.plain import Plain
from frugal_rl.store.found.records import Records
from frugal_rl.store.found.stacks import Stack
from frugal_rl.store.found.study import FieldResult, Study
from frugal_rl.store.found.trial import AS_IT_IS, Form, best_form, forms, used_bytes
from frugal_rl.store.found.worded import Worded


def spec_of(*shape: int, dtype=np.uint8) -> ColumnSpec:
    return ColumnSpec("x", shape, np.dtype(dtype))


def filled(column, rows):
    for t, row in enumerate(rows):
        column.write(t, row, None)
    return column


def test_a_handled_column_takes_its_rows_two_bytes_each_and_its_environments():
    rows = np.arange(10, dtype=np.uint8).reshape(5, 2, 1).repeat(8, axis=2)
    column = filled(HandledColumn(spec_of(8), 5, 2, Plain), rows)

    assert column.used_bytes == 10 * 8 + 5 * 2 * 2
    assert column.nbytes == column.rows.nbytes + 5 * 2 * 2 + 2 * 2 * 8
    assert used_bytes(column, 2, 5) == 10 * 8 + 20 * 2 / 5
    column.trim(4)
    assert column.handles.values.shape == (4, 2)
    assert column.rows.nbytes == 10 * 8


def test_a_stacked_column_takes_its_newest_parts_and_whole_rows_where_it_broke():
    stack = Stack(1, 4, 8)
    parts = np.arange(9, dtype=np.uint8).repeat(8)
    rows = np.array([parts[8 * t : 8 * t + 32] for t in range(6)])[:, None]
    column = filled(StackedColumn(spec_of(32), 6, 1, Plain, stack), rows)

    assert column.broken.used == 1  # the first row, whose past is neither zeros nor itself
    assert column.rows.used == 3 + 6
    fixed = 6 * 2 + 6 + 6
    assert column.used_bytes == 9 * 8 + fixed + 3 * 8 + 8
    arrays = 6 + 6 + 8 + 8 + 8
    grown = column.rows.nbytes + column.older.nbytes + column.broken.nbytes
    assert column.nbytes == arrays + grown + 12
    column.write(0, rows[0], None)
    grown = column.rows.nbytes + column.older.nbytes + column.broken.nbytes
    assert column.nbytes == arrays + 32 + grown + 12  # and the newest row, while rows come
    column.trim(5)
    assert (column.age.shape, column.past.shape) == ((5, 1), (5, 1))
    assert column.age.base is column.past.base is None
    assert column.handles.values.shape == (5, 1)


@pytest.mark.parametrize("kind", [Records, Worded, Compressed])
@pytest.mark.parametrize("ends", ["full", "trimmed"])
def test_what_only_adding_needs_is_given_back_with_the_last_row_and_is_there_again(kind, ends):
    rng, steps = np.random.default_rng(0), 6
    column = HandledColumn(spec_of(64), steps, 2, kind)
    for _ in range(2 if ends == "full" else 1):
        rows = rng.integers(0, 3, (steps, 2, 64), np.uint8)
        for t, row in enumerate(rows[:-1]):
            column.write(t, row, None)
        before = column.nbytes - column.rows.used_bytes
        assert column.rows.last.shape == (2, 8)
        if ends == "full":
            column.write(steps - 1, rows[-1], None)
        else:
            column.trim(steps - 1)
        assert column.rows.last.nbytes == 0
        assert column.nbytes - column.rows.used_bytes < before
        t, n = np.divmod(np.arange(2 * (steps - 1)), 2)
        assert (column.gather(t, n, None, None) == rows[t, n]).all()


def test_other_columns_take_their_share_of_what_they_allocate():
    dense = trial.dense(spec_of(8), 4, 2)
    narrow = NarrowColumn(spec_of(8), 4, 2, 0, 1)

    assert used_bytes(dense, 1, 4) == 4 * 2 * 8 / 4
    assert used_bytes(narrow, 1, 4) == 4 * 2 / 4


def moving(rows: int) -> np.ndarray:
    """Rows [T, 1, 4] of four numbers that move by one."""
    numbers = np.arange(rows + 3, dtype=np.uint8)
    return np.array([numbers[t : t + 4] for t in range(rows)])[:, None]


def test_the_forms_that_are_tried_depend_on_size_and_stack():
    def names(shape, rows):
        history = np.ascontiguousarray(rows).reshape(len(rows), 1, -1)
        return list(forms(spec_of(*shape), history))

    rng = np.random.default_rng(0)
    always = ["differences", "differences in known words", "distinct rows"]
    assert names((511,), rng.integers(0, 9, (4, 511), np.uint8)) == always
    assert names((512,), rng.integers(0, 9, (4, 512), np.uint8)) == [*always, "compressed"]
    assert names((4,), moving(9)) == [
        f"stack of 4 along 1 x 1 B, {kind}" for kind in (*always, "as they are")
    ]


def form(name: str, row_bytes: float, weight: float = 1.0, fixed: int = 0) -> Form:
    made = SimpleNamespace(nbytes=fixed)
    return Form(name, lambda spec, steps, envs: made, row_bytes, weight)


@pytest.mark.parametrize(
    ("offered", "current", "chosen"),
    [
        ([form("a", 5), form("b", 4)], "", "b"),
        ([form("a", 5), form("b", 4.01)], "a", "a"),  # 0.8 x 5 is 4
        ([form("a", 5), form("b", 3.99)], "a", "b"),
        ([form("a", 5), form("b", 4, weight=1.3)], "", "a"),
        ([form("a", 7.2)], "", "as it is"),  # 0.9 x 8
        ([form("a", 7.19)], "", "a"),
        ([form("a", 5, fixed=220)], "", "as it is"),  # 720 of 800 bytes are too many
        ([form("a", 5, fixed=219)], "", "a"),
        ([], "a", "as it is"),
    ],
)
def test_the_cheapest_form_that_is_worth_it_is_chosen(offered, current, chosen, monkeypatch):
    monkeypatch.setattr(trial, "forms", lambda spec, history: {})
    monkeypatch.setattr(trial, "narrow_form", lambda spec, rows: offered)
    rows = np.zeros((4, 2, 8), np.uint8)

    assert best_form(spec_of(8), rows, 50, current).name == chosen


def test_a_form_is_measured_over_the_second_half_of_its_trial():
    rows = np.arange(8, dtype=np.uint8).repeat(16).reshape(8, 2, 8)
    rows[:4] = 0  # the first half takes almost nothing

    def make(spec, steps, envs):
        return HandledColumn(spec, steps, envs, Plain)

    assert trial.row_bytes_in(make, spec_of(8), rows) == 8 + 2
    name = trial.narrow_form(spec_of(8), rows)[0].name
    assert name == "whole numbers from -4 in 4 bits"
    assert trial.narrow_form(spec_of(8, dtype=np.float32), np.full((8, 2, 8), np.inf, "f")) == []


def test_a_form_counts_what_is_there_at_once_and_its_rows():
    assert form("a", 5, fixed=100).total(spec_of(8), 3, 2) == 100 + 5 * 3 * 2
    assert (AS_IT_IS.name, AS_IT_IS.row_bytes) == ("as it is", math.inf)


@pytest.fixture
def looks(monkeypatch):
    """When a column looked at its rows, and at how many; it always finds `found`."""
    seen = SimpleNamespace(rows=[], form=AS_IT_IS)

    def best(spec, rows, steps, current):
        seen.rows.append(len(rows))
        return seen.form

    monkeypatch.setattr("frugal_rl.store.found.column.best_form", best)
    return seen


def noise(steps: int, envs: int = 1, width: int = 8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (steps, envs, width), np.uint8)


def test_rows_are_looked_at_after_16_then_four_times_as_many_and_at_the_end(looks):
    column = FoundColumn(spec_of(8), 300, 1)
    filled(column, noise(300))
    assert looks.rows == [16, 64, 256, 300]
    filled(column, noise(300))  # a second rollout is not looked at
    filled(column, noise(300))
    assert column.rollouts == 3
    filled(column, noise(300))
    assert looks.rows == [16, 64, 256, 300, 300]  # at the end of the fourth


def test_one_look_takes_the_newest_512_rows(looks):
    filled(FoundColumn(spec_of(8), 300, 4), noise(300, 4))

    assert looks.rows == [16, 64, 128, 128]


def test_a_short_rollout_is_looked_at_where_it_ends(looks):
    column = FoundColumn(spec_of(8), 10, 1)
    filled(column, noise(10))

    assert looks.rows == [10, 10]
    assert column.nbytes == 80


def test_the_first_rows_wait_as_they_are_and_the_rest_is_allocated_when_it_comes(looks):
    column = FoundColumn(spec_of(8), 64, 2)

    assert column.nbytes == 16 * 2 * 8
    assert column.predicted_bytes(0) == 16 * 2 * 8
    filled(column, noise(64, 2)[:8])
    assert column.predicted_bytes(8) == 64 * 2 * 8  # as many bytes a step as the first eight
    filled(column, noise(64, 2)[:16])
    assert column.nbytes == 64 * 2 * 8


def test_a_later_segment_is_judged_by_its_own_rows(looks):
    column = filled(FoundColumn(spec_of(8), 64, 2), noise(64, 2)[:40])
    column._append(40)
    newest = column.segments[-1]

    assert newest.begin == 40
    assert column._used(52) == used_bytes(newest.column, 52 - 40, 64 - 40)


def test_a_found_array_counts_and_refuses_as_an_array_does():
    store = FoundArray(4, 3, spaces.Box(0, 1, (2, 5), np.float32))

    assert (store.shape, store.dtype, len(store.flat)) == ((4, 3, 2, 5), np.float32, 12)
    assert store.nbytes == store.column.nbytes
    for step in range(3):
        store[step] = np.full((3, 2, 5), step)
    assert store[np.array([2, 0]), np.array([1, 2])][:, 0, 0].tolist() == [2, 0]
    assert store.flat[5:7].shape == (2, 2, 5)
    assert store[:2].shape == (2, 3, 2, 5)
    assert store.at(np.zeros((0, 2), np.int64)).shape == (0, 2, 2, 5)
    with pytest.raises(IndexError) as error:
        store[3, 0]
    assert str(error.value) == "Step 3 is not written yet; 3 steps are."
    store[3] = np.zeros((3, 2, 5))
    with pytest.raises(IndexError) as error:
        store[4] = np.zeros((3, 2, 5))
    assert str(error.value) == (
        "Step 4 follows step 3 in a store of 4 steps; write steps in their order, or 0 to begin "
        "anew."
    )
    store[0] = np.ones((3, 2, 5))
    assert store[0, 0, ...].ravel()[0] == 1


@pytest.mark.parametrize("rows", [0.5, 256, -1, np.nan, torch.tensor(2.5)])
def test_numbers_that_a_space_cannot_hold_are_refused_not_rounded(rows):
    store = FoundArray(2, 1, spaces.Box(0, 255, (), np.uint8))
    store[0] = torch.tensor([255.0])
    assert store[0].tolist() == [255]

    with pytest.raises(EncodingError, match="space says uint8, and rows came as"):
        store[1] = [rows]


def test_numbers_without_a_shape_are_rows_of_one():
    store = FoundArray(2, 3, spaces.Box(0, 9, (), np.int64))
    store[0] = np.array([4, 5, 6])

    assert store.shape == (2, 3)
    assert store[0].tolist() == [4, 5, 6]
    with pytest.raises(ConfigError) as error:
        FoundArray(2, 3, spaces.Dict({}))
    assert str(error.value) == (
        "A FoundArray keeps arrays of one shape, not a Dict space. Make one for each entry of a "
        "Dict."
    )


def test_a_study_prints_a_line_per_field_and_one_for_all():
    walls = FieldResult("walls", (5,), "uint8", "distinct rows", 1000, 12.34, 3.21, "all equal")
    noise = FieldResult("noise", (2,), "float64", "as it is", 16, 16, 0.5, "none equal")
    found = Study(400, (walls, noise))

    assert str(found).splitlines() == [
        "field                    bytes     found  us/add  form; evidence",
        "walls                    1,000      12.3     3.2  distinct rows; all equal",
        "noise                       16      16.0     0.5  as it is; none equal",
        "all                      1,016      28.3  1/35.9",
    ]
    assert found.spec.fields["walls"].found_bytes == 12.3
    assert found.spec.share("noise") == 0.99
    assert found.spec.share("walls") == pytest.approx(0.0123)


def test_loading_kernels_calls_every_form_of_both_shapes_of_stacks(monkeypatch):
    built, real = [], trial.forms

    def counted(spec, history):
        found = real(spec, history)
        built.append((spec.shape, history.shape, len(found)))
        return found

    monkeypatch.setattr(trial, "forms", counted)
    trial.load_kernels()

    assert [shapes[:2] for shapes in built] == [((4, 8), (12, 1, 32)), ((8, 4), (12, 1, 32))]
    assert all(count > 3 for *_, count in built)


def test_loading_kernels_lets_tables_of_words_and_of_tiles_grow(monkeypatch):
    grown = []
    for module, name in ((worded, "put_names"), (tiled, "put_tiles")):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, real=real, name=name: grown.append(name) or real(*given)
        )

    trial.load_growth()

    assert set(grown) == {"put_names", "put_tiles"}


def test_a_loop_in_cleanrls_manner_gets_its_tensors():
    space, row = spaces.Box(0, 255, (2, 3), np.uint8), torch.arange(24.0).reshape(4, 2, 3)
    obs = FoundArray(5, 4, space, device="cpu")
    for step in range(5):
        obs[step] = row + step
    b_obs, stock = obs.reshape((-1, *space.shape)), torch.cat([row + s for s in range(5)])

    drawn = b_obs[np.array([19, 0, 7])]

    assert (drawn.dtype, len(b_obs)) == (torch.uint8, 20)
    assert torch.equal(drawn.float(), stock[[19, 0, 7]])
    assert torch.equal(obs[3, 1:].float(), row[1:] + 3)
    assert torch.equal(obs.reshape(20, 2, 3)[:].float(), stock)
    with pytest.raises(ConfigError, match=r"as rows of shape \(-1, 2, 3\), not \(-1, 6\)"):
        obs.reshape(-1, 6)
