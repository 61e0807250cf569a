"""Checkpoints hold plain values and tensors, are written whole, and refuse in words."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from frugal_rl.errors import CheckpointError
from frugal_rl.run.checkpoints import (
    FORMAT,
    find_checkpoint,
    load_checkpoint,
    rng_state,
    save_checkpoint,
    set_rng_state,
)

plain = (
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False)
)
keys = st.text() | st.integers() | st.tuples(st.text(), st.integers())
nested = st.recursive(
    plain,
    lambda v: (
        st.lists(v) | st.tuples(v, v) | st.dictionaries(keys, v) | st.frozensets(st.integers())
    ),
    max_leaves=12,
)


@given(value=nested)
def test_nested_plain_values_come_back_as_they_were(value, tmp_path_factory):
    path = save_checkpoint(tmp_path_factory.mktemp("c") / "c.pt", {"value": value})
    assert load_checkpoint(path) == {"value": value}


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.uint16).reshape(2, 3)[:, ::2],
        np.float64(1.5),
        np.zeros((0, 4), np.float16),
        np.array([(1, 2.0)], dtype=[("a", np.int8), ("b", np.float32, (2,))]),
        np.array(True),
    ],
    ids=lambda a: str(a.dtype),
)
def test_arrays_come_back_with_shape_dtype_and_bits(array, tmp_path):
    found = load_checkpoint(save_checkpoint(tmp_path / "c.pt", {"x": array}))["x"]
    assert_array_equal(found, array)
    if isinstance(array, np.ndarray):
        assert found.dtype == array.dtype
        assert found.flags.writeable


def test_tensors_come_back_as_tensors(tmp_path):
    tensor = torch.randn(3).to(torch.bfloat16)
    found = load_checkpoint(save_checkpoint(tmp_path / "c.pt", {"x": {"y": tensor}}))
    assert torch.equal(found["x"]["y"], tensor)


@pytest.mark.parametrize("value", [object(), np.array([object()]), lambda: 0])
def test_a_value_that_is_not_plain_is_refused_by_its_place(value, tmp_path):
    with pytest.raises(CheckpointError, match=r"content\.a\.b"):
        save_checkpoint(tmp_path / "c.pt", {"a": {"b": value}})
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_older_file(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path / "c.pt", {"x": 1})

    def fail(*args, **kwargs):
        args[1].write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(path, {"x": 2})
    assert load_checkpoint(path) == {"x": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["c.pt"]


def test_a_cut_off_file_is_refused_in_words(tmp_path):
    path = save_checkpoint(tmp_path / "c.pt", {"x": np.arange(1000)})
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(CheckpointError, match="damaged or cut off"):
        load_checkpoint(path)


def test_a_pickle_with_code_is_not_executed(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("executed",))

    torch.save({"format": FORMAT, "json": "{}", "tensors": {}, "evil": Evil()}, tmp_path / "c.pt")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint(tmp_path / "c.pt")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"format": FORMAT + 1, "json": "{}", "tensors": {}}, "checkpoint format"),
        ({"weights": torch.zeros(1)}, "no checkpoint of this program"),
        ({"format": FORMAT, "json": "{", "tensors": {}}, "damaged"),
        (
            {"format": FORMAT, "json": '{"x": {"@": "tensor", "at": "gone"}}', "tensors": {}},
            "damaged",
        ),
    ],
)
def test_other_files_are_refused_in_words(content, words, tmp_path):
    torch.save(content, tmp_path / "c.pt")
    with pytest.raises(CheckpointError, match=words):
        load_checkpoint(tmp_path / "c.pt")


def test_a_run_folder_stands_for_its_last_checkpoint(tmp_path):
    path = save_checkpoint(tmp_path / "checkpoints" / "last.pt", {"x": 1})
    for given_path in (path, path.parent, tmp_path):
        assert find_checkpoint(given_path) == path
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        find_checkpoint(tmp_path / "elsewhere")


def test_random_numbers_continue_where_they_were(tmp_path):
    path = save_checkpoint(tmp_path / "c.pt", rng_state())
    drawn = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    set_rng_state(load_checkpoint(path))
    assert torch.equal(torch.rand(3), drawn[0])
    assert_array_equal(np.random.rand(3), drawn[1])  # noqa: NPY002
