"""What a checkpoint is made of: every kind of value there and back, and what is none."""

import json

import numpy as np
import pytest
import torch

from frugal_rl.errors import CheckpointError, DataError
from frugal_rl.run.values import DTYPES, as_bytes, from_json, to_json


def there_and_back(value):
    """A value as JSON text and bytes, read again."""
    blobs = {}
    text = json.dumps(to_json(value, blobs, "state"))
    raw = {name: bytes(as_bytes(blob)) for name, blob in blobs.items()}
    return from_json(json.loads(text), lambda at: np.frombuffer(bytearray(raw[at]), np.uint8))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        1 << 70,
        0.1,
        float("inf"),
        "naïve \u0000",
        b"",
        b"\x00\xff",
        [],
        [1, [2.5, None]],
        (),
        (1, ("a", [2])),
        {1, 2},
        frozenset({"a"}),
        {},
        {"a": {"b": 1}},
        {1: "one", (2, 3): [4]},
        {"@": "tensor"},
        {"@": "dict", "items": []},
    ],
)
def test_plain_values_come_back_with_their_kind(value):
    again = there_and_back(value)
    assert again == value
    assert type(again) is type(value)


def test_bytes_lie_beside_the_description_and_those_of_older_versions_in_it_are_read():
    blobs = {}
    assert to_json({"state": b"\x00\xff"}, blobs, "x") == {"state": {"@": "bytes", "at": "x.state"}}
    assert blobs["x.state"].tobytes() == b"\x00\xff"
    assert from_json({"@": "bytes", "base64": "AP8="}, blobs.__getitem__) == b"\x00\xff"


@pytest.mark.parametrize(
    ("given", "found"), [(np.float32(0.5), 0.5), (np.int64(-3), -3), (np.bool_(True), True)]
)
def test_numbers_of_numpy_become_plain_ones(given, found):
    assert there_and_back(given) == found
    assert type(there_and_back(given)) is type(found)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "<i8", ">f4", "float16", "complex128", "<U3", "S2"]
)
def test_arrays_come_back_to_the_bit(dtype):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    again = there_and_back({"a": value})["a"]
    assert again.dtype == value.dtype
    assert again.tolist() == value.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 1)])
def test_arrays_of_any_shape_come_back(shape):
    again = there_and_back(np.ones(shape, np.float32))
    assert again.shape == shape
    assert (again == 1).all()


def test_an_array_that_lies_otherwise_comes_back_in_order():
    value = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)[::2]
    assert there_and_back(value).tolist() == value.tolist()


def test_records_come_back_with_their_fields():
    value = np.zeros(3, [("x", "f8"), ("flags", "u1", (2,))])
    value["x"], value["flags"][:, 1] = [1, 2, 3], 7
    again = there_and_back(value)
    assert again.dtype == value.dtype
    assert again.tobytes() == value.tobytes()


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_tensors_come_back_to_the_bit(name):
    value = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(DTYPES[name])
    again = there_and_back(value)
    assert again.dtype == value.dtype
    assert torch.equal(again, value)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_tensors_of_any_shape_come_back(shape):
    assert torch.equal(there_and_back(torch.ones(shape)), torch.ones(shape))


def test_a_tensor_that_is_learned_comes_back_as_values():
    value = torch.arange(6.0, requires_grad=True).reshape(2, 3).T
    again = there_and_back(value)
    assert not again.requires_grad
    assert torch.equal(again, value.detach())


def test_places_of_arrays_are_named_by_their_way():
    blobs = {}
    to_json({"net": [np.zeros(1), {"w": torch.zeros(1)}], 3: (np.ones(1),)}, blobs, "state")
    assert set(blobs) == {"state.0.0", "state.0.1.w", "state.1.0"}
    blobs = {}
    to_json({"net": {"w": np.zeros(1)}}, blobs, "state")
    assert set(blobs) == {"state.net.w"}


def test_bytes_of_values_in_one_piece_are_a_view():
    value = np.zeros(4, np.float32)
    as_bytes(value)[:] = 255
    assert np.isnan(value).all()
    tensor = torch.zeros(4)
    as_bytes(tensor)[:] = 255
    assert torch.isnan(tensor).all()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": object()}, "'state.a' is a object"),
        ([1, print], "'state.1' is a builtin_function_or_method"),
        ({"a": np.array([None])}, "'state.a' is an array of objects"),
        (torch.zeros(1, dtype=torch.complex64), "'state' is a tensor of complex64"),
    ],
)
def test_what_is_no_value_is_refused_with_its_place(value, words):
    with pytest.raises(CheckpointError, match=words):
        to_json(value, {}, "state")


@pytest.mark.parametrize(
    "described",
    [
        {"@": "magic", "items": []},
        {"@": "tuple"},
        {"@": "dict", "items": [[1]]},
        {"@": "dict", "items": [[[], 1]]},
        {"@": "set", "items": [[1]]},
        {"@": "bytes", "base64": "not base64!"},
        {"@": "bytes", "base64": "QUJD!"},  # lenient readers drop the last sign
        {"@": "array", "at": "a", "dtype": "<f4", "shape": [3]},
        {"@": "array", "at": "a", "dtype": "O", "shape": [1]},
        {"@": "array", "at": "a", "dtype": "<f4", "shape": [-1]},
        {"@": "array", "at": "gone", "dtype": "<f4", "shape": [2]},
        {"@": "tensor", "at": "a", "dtype": "complex64", "shape": [2]},
        {"@": "tensor", "at": "a", "dtype": "float32", "shape": [3]},
        {"@": "tensor", "at": "a", "dtype": "float32", "shape": "2"},
    ],
)
def test_a_description_that_nobody_wrote_is_refused(described):
    entries = {"a": np.zeros(8, np.uint8)}
    with pytest.raises(DataError):
        from_json(described, entries.__getitem__)
