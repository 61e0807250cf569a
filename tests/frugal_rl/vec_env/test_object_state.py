"""A stranger's simulator as plain values: each kind of value, what is shared, what is refused."""

import enum
import random
from collections import OrderedDict, defaultdict, deque
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from frugal_rl.vec_env import object_state
from frugal_rl.vec_env.object_state import (
    Capture,
    Restore,
    attributes_of,
    chain_of,
    class_name,
    put_back,
    state_of,
)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Point:
    def __init__(self, x=0, y=0):
        self.x, self.y = x, y


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left):
        self.left = left


class Both(Slotted):
    def __init__(self, left, more):
        super().__init__(left)
        self.more = more


def there_and_back(value, present=object_state.ABSENT):
    """A value as nodes, put into what a fresh simulator has at its place."""
    capture = Capture()
    capture.add([value])
    fresh = [] if present is object_state.ABSENT else [present]
    return Restore(capture.nodes, Point()).put(0, fresh)[0]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -7,
        1 << 80,
        "naïve",
        b"\x00\xff",
        0.1,
        float("inf"),
        5e-324,
        [],
        [1, [2, [3]]],
        (1, (2.5, "a")),
        (),
        {1, 2},
        frozenset({"a"}),
        {"a": [1], 2: None},
        Colour.BLUE,
        np.float32(1.5),
        np.int64(-3),
    ],
)
def test_plain_values_come_back(value):
    again = there_and_back(value)
    assert again == value
    assert type(again) is type(value)


def test_a_float_comes_back_to_the_bit():
    assert str(there_and_back(-0.0)) == "-0.0"
    assert there_and_back(float("nan")).hex() == "nan"


@pytest.mark.parametrize("dtype", ["bool", "uint8", ">i4", "float64", "complex64", "<U3"])
def test_arrays_come_back_with_type_and_shape(dtype):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    again = there_and_back(value)
    assert again.dtype == value.dtype
    assert again.tolist() == value.tolist()
    assert again.flags.writeable


def test_an_array_is_written_into_the_one_that_is_there():
    present = np.zeros(3)
    assert there_and_back(np.arange(3.0), present) is present
    assert present.tolist() == [0, 1, 2]


@pytest.mark.parametrize("present", [np.zeros(4), np.zeros(3, np.float32), [0, 0, 0]])
def test_an_array_of_another_form_is_made_anew(present):
    again = there_and_back(np.arange(3.0), present)
    assert again is not present
    assert again.tolist() == [0, 1, 2]


def test_an_array_that_cannot_be_written_is_made_anew():
    present = np.zeros(3)
    present.flags.writeable = False
    assert there_and_back(np.ones(3), present).tolist() == [1, 1, 1]
    assert present.tolist() == [0, 0, 0]


def test_lists_dictionaries_and_queues_keep_their_identity():
    for present, value in (([9], [1, 2]), ({"b": 1}, {"a": 2}), (deque([9]), deque([1, 2]))):
        again = there_and_back(value, present)
        assert again is present
        assert again == value


def test_a_dictionary_keeps_its_order_and_its_kind():
    value = OrderedDict([("b", 1), ("a", 2)])
    again = there_and_back(value)
    assert type(again) is OrderedDict
    assert list(again) == ["b", "a"]


def test_a_dictionary_of_another_kind_is_made_anew():
    present = {"a": 1}
    again = there_and_back(OrderedDict(a=2), present)
    assert again is not present
    assert again == OrderedDict(a=2)


def test_a_dictionary_with_a_default_keeps_what_makes_its_values():
    present = defaultdict(list)
    present["a"].append(1)
    again = there_and_back(defaultdict(list, {"b": [2]}), present)
    assert again is present
    assert dict(again) == {"b": [2]}
    assert again["new"] == []


def test_a_longer_list_keeps_the_objects_of_its_beginning():
    kept = Point(1, 1)
    present = [kept]
    again = there_and_back([Point(5, 6), 7], present)
    assert again[0] is kept
    assert (kept.x, kept.y, again[1]) == (5, 6, 7)


def test_the_parts_of_a_tuple_are_those_that_are_there():
    kept = Point()
    assert there_and_back((Point(3, 4),), (kept,))[0] is kept
    assert kept.x == 3


def test_an_object_takes_its_attributes_and_loses_those_that_it_did_not_have():
    present = Point(1, 2)
    present.extra = 3
    again = there_and_back(Point(8, 9), present)
    assert again is present
    assert vars(again) == {"x": 8, "y": 9}


def test_slots_are_attributes_too():
    saved, present = Slotted(5), Slotted(1)
    present.right = 2
    again = there_and_back(saved, present)
    assert (again is present, again.left, hasattr(again, "right")) == (True, 5, False)
    assert attributes_of(Both(1, 2)) == {"more": 2, "left": 1}


def test_a_native_object_shows_no_attributes():
    assert attributes_of(iter([])) is None
    assert attributes_of(object()) is None


def test_a_cycle_comes_back_as_a_cycle():
    value = []
    value.append(value)
    again = there_and_back(value, [])
    assert again[0] is again


def test_objects_that_point_at_each_other_still_do():
    one, two = Point(), Point()
    one.x, two.x = two, one
    one_now, two_now = Point(), Point()
    one_now.x, two_now.x = two_now, one_now
    one.y, two.y = 5, 6
    again = there_and_back(one, one_now)
    assert again.x.x is again
    assert (again.y, again.x.y) == (5, 6)


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (np.random.default_rng, lambda g: g.random()),
        (np.random.RandomState, lambda g: g.rand()),
        (random.Random, lambda g: g.random()),
    ],
)
def test_a_generator_goes_on_where_it_was(make, draw):
    saved, present = make(3), make(99)
    draw(saved)
    capture = Capture()
    capture.add([saved])
    again = Restore(capture.nodes, Point()).put(0, [present])[0]
    assert again is present
    assert [draw(again) for _ in range(3)] == [draw(saved) for _ in range(3)]


def test_a_generator_without_a_place_is_refused():
    with pytest.raises(NotImplementedError, match="random numbers has no place"):
        there_and_back(np.random.default_rng(0))


@pytest.mark.parametrize("value", [len, np, Point, gym.spaces.Discrete(3), Point().__init__])
def test_what_is_no_value_stays_as_it_is(value):
    assert there_and_back(value, "what is there") == "what is there"
    with pytest.raises(NotImplementedError, match="is no plain value"):
        there_and_back(value)


@pytest.mark.parametrize("dtype", [object, [("a", "i4")]])
def test_arrays_of_objects_and_of_fields_are_no_values(dtype):
    present = np.zeros(2, dtype)
    assert there_and_back(np.zeros(2, dtype), present) is present


def test_too_many_values_are_refused(monkeypatch):
    monkeypatch.setattr(object_state, "MOST_NODES", 10)
    Capture().add(list(range(9)))
    with pytest.raises(NotImplementedError, match="more than 10 values"):
        Capture().add(list(range(10)))


def test_equal_objects_that_are_two_stay_two():
    first, second = there_and_back([[1], [1]])
    assert first == second
    assert first is not second


def test_an_environment_and_all_that_it_wraps_are_found():
    inner = SimpleNamespace()
    middle, outer = SimpleNamespace(env=inner), SimpleNamespace()
    outer.env = middle
    assert chain_of(outer) == [outer, middle, inner]
    assert chain_of(3) == [3]


def test_a_class_is_called_by_module_and_name():
    assert class_name(OrderedDict) == "collections:OrderedDict"
    assert class_name(Colour) == f"{Colour.__module__}:Colour"
    assert class_name(int) == "builtins:int"


class Counter(gym.Env):
    """Counts, and remembers its places in objects of its own."""

    def __init__(self):
        self.places, self.random = [Point()], np.random.default_rng(0)

    def advance(self):
        self.places.append(Point(int(self.random.integers(1000)), len(self.places)))
        return [p.x for p in self.places]


def test_an_environment_goes_on_from_the_state_of_another():
    first = SimpleNamespace(env=Counter(), shown=[1])
    for _ in range(3):
        first.env.advance()
    second = SimpleNamespace(env=Counter(), shown=None)
    second.restart = lambda seed: second.env.advance()

    put_back(second, state_of(first), seed=0)

    assert second.shown == [1]
    assert second.env.advance() == first.env.advance()
    assert all(isinstance(p, Point) for p in second.env.places)
    assert second.env.places[0] is not first.env.places[0]


def test_a_state_holds_nothing_but_plain_values():
    def plain(value):
        if isinstance(value, list):
            return all(plain(v) for v in value)
        return value is None or type(value) in (bool, int, str, bytes)

    first = SimpleNamespace(env=Counter(), shown={"a": np.ones(3)})
    assert plain(state_of(first))
