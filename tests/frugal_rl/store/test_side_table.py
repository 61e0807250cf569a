"""What a few rows have besides: found by step and environment, dropped from the oldest on."""

import numpy as np
import pytest

from frugal_rl.errors import DataError
from frugal_rl.store.side_table import SideTable, move_to_front


def filled(pairs, num_envs=3):
    """A table of (step, environment) pairs with the values 10 * step + environment."""
    table = SideTable(num_envs, (2,), np.int64)
    for step, n in pairs:
        table.append(step, n, (10 * step + n, -step))
    return table


def values(table, pairs):
    steps, n = np.array(pairs).reshape(-1, 2).T
    return table.find(steps, n)[:, 0].tolist()


def test_a_value_is_found_by_its_step_and_its_environment():
    table = filled([(0, 1), (0, 2), (4, 0), (7, 1)])
    assert values(table, [(7, 1), (0, 2), (4, 0), (0, 1)]) == [71, 2, 40, 1]
    assert len(table) == 4


def test_an_empty_table_holds_nothing_and_takes_nothing():
    table = SideTable(3, (2,), np.int64)
    assert (len(table), table.nbytes) == (0, 0)
    table.drop_before(5)
    assert len(table) == 0


@pytest.mark.parametrize(
    ("step", "left"), [(0, 4), (1, 2), (4, 2), (5, 1), (7, 1), (8, 0), (99, 0)]
)
def test_all_steps_before_one_are_forgotten(step, left):
    table = filled([(0, 1), (0, 2), (4, 0), (7, 1)])
    table.drop_before(step)
    assert len(table) == left
    kept = [pair for pair in [(0, 1), (0, 2), (4, 0), (7, 1)] if pair[0] >= step]
    assert values(table, kept) == [10 * s + n for s, n in kept]


def test_a_window_over_many_steps_keeps_its_room():
    table, largest = SideTable(2, (), np.int64), 0
    for step in range(2000):
        table.drop_before(step - 9)
        table.append(step, step % 2, step)
        largest = max(largest, len(table.keys))
        held = np.arange(max(0, step - 9), step + 1)
        assert table.find(held, held % 2).tolist() == held.tolist()
    assert largest <= 40


def test_room_grows_by_a_quarter_while_everything_is_held():
    table, rooms = SideTable(1, (), np.uint8), []
    for step in range(60):
        table.append(step, 0, step)
        rooms.append(len(table.keys))
    assert sorted(set(rooms)) == [1, 2, 3, 4, 6, 8, 11, 14, 18, 23, 29, 37, 47, 59, 74]


@pytest.mark.parametrize(("forgotten", "room"), [(3, 11), (4, 11), (5, 8), (8, 8)])
def test_room_grows_where_half_of_it_or_more_is_held(forgotten, room):
    table = filled([(step, 0) for step in range(8)])
    assert len(table.keys) == 8
    table.drop_before(forgotten)
    table.append(8, 1, (81, 0))
    assert len(table.keys) == room
    kept = [(step, 0) for step in range(forgotten, 8)] + [(8, 1)]
    assert values(table, kept) == [10 * step + n for step, n in kept]


def test_room_for_as_many_as_are_held_at_most_grows_by_little_more():
    table = SideTable(1, (), np.uint8, most=64)
    for step in range(300):
        table.drop_before(step - 63)
        table.append(step, 0, step % 256)
        held = np.arange(max(0, step - 63), step + 1)
        assert table.find(held, np.zeros_like(held)).tolist() == (held % 256).tolist()
    assert len(table.keys) == 67


@pytest.mark.parametrize("begin", [0, 1, 2, 3, 7, 10])
@pytest.mark.parametrize("end", [10, 12])
def test_rows_move_to_the_front(begin, end):
    rows = np.arange(24).reshape(12, 2)
    wanted = rows[begin:end].copy()
    move_to_front(rows, begin, end)
    assert (rows[: end - begin] == wanted).all()


def test_a_value_is_held_or_not():
    table = filled([(0, 1), (0, 2), (4, 0)])
    table.drop_before(0)
    asked = np.array([(0, 0), (0, 1), (0, 2), (-1, 2), (4, 0), (4, 1), (9, 9)]).T
    assert table.holds(*asked).tolist() == [False, True, True, False, True, False, False]
    assert not SideTable(1, (), np.uint8).holds(np.array([-1]), np.array([0])).any()


def test_a_forgotten_value_leaves_the_others():
    table = filled([(0, 1), (0, 2), (4, 0), (7, 1)])
    table.drop_before(0)
    table.forget(4, 0)
    assert values(table, [(0, 1), (0, 2), (7, 1)]) == [1, 2, 71]
    assert (len(table), table.holds(np.array([4]), np.array([0])).tolist()) == (3, [False])


def test_bytes_are_those_of_keys_and_values():
    table = filled([(0, 0)])
    assert table.nbytes == len(table.keys) * (8 + 2 * 8)


def test_a_saved_table_goes_on():
    table = filled([(0, 1), (3, 0), (5, 2)])
    table.drop_before(2)
    other = SideTable(3, (2,), np.int64)
    other.load(table.state())
    other.append(6, 0, (60, 0))
    assert values(other, [(3, 0), (5, 2), (6, 0)]) == [30, 52, 60]
    assert len(other) == 3


def test_a_saved_state_is_a_copy():
    table = filled([(0, 1)])
    state = table.state()
    state["values"][:] = -1
    state["keys"][:] = -1
    assert values(table, [(0, 1)]) == [1]


@pytest.mark.parametrize(
    "values",
    [np.zeros((1, 2), np.int32), np.zeros((1, 3), np.int64), np.zeros((2, 2), np.int64)],
)
def test_a_state_of_another_form_is_refused(values):
    with pytest.raises(DataError, match="a table of a replay holds"):
        SideTable(3, (2,), np.int64).load({"keys": np.zeros(1, np.int64), "values": values})
