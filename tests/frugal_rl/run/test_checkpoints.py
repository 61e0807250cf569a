"""Checkpoints hold plain values and tensors, are written whole, and refuse in words."""

import hashlib
import json
import os
import random
from contextlib import nullcontext, suppress

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from frugal_rl.errors import CheckpointError
from frugal_rl.run import checkpoints
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.generators import rng_state, set_rng_state
from frugal_rl.run.keeping import newest_sound, save_newest, verdict_lines, verify_checkpoints
from frugal_rl.run.manifest import HEAD_BYTES, MAGIC, find_checkpoint, read_manifest
from frugal_rl.testing.faults import FullDisk, damages, disk

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
        np.array(["ab", "c"]),
    ],
    ids=lambda a: str(a.dtype),
)
def test_arrays_come_back_with_shape_dtype_and_bits(array, tmp_path):
    found = load_checkpoint(save_checkpoint(tmp_path / "c.pt", {"x": array}))["x"]
    assert_array_equal(found, array)
    if isinstance(array, np.ndarray):
        assert found.dtype == array.dtype
        assert found.flags.writeable


@pytest.mark.parametrize("shape", [(3,), (), (0, 2), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_tensors_come_back_as_tensors(shape, dtype, tmp_path):
    tensor = torch.randn(shape).to(dtype)
    found = load_checkpoint(save_checkpoint(tmp_path / "c.pt", {"x": {"y": tensor}}))["x"]["y"]
    assert found.dtype == dtype
    assert found.shape == tensor.shape
    assert torch.equal(found, tensor)


@pytest.mark.parametrize("value", [object(), np.array([object()]), lambda: 0])
def test_a_value_that_is_not_plain_is_refused_by_its_place(value, tmp_path):
    with pytest.raises(CheckpointError, match=r"content\.a\.b"):
        save_checkpoint(tmp_path / "c.pt", {"a": {"b": value}})
    assert list(tmp_path.iterdir()) == []


CONTENT = {"num_steps": 7, "weights": torch.arange(600.0), "rows": np.arange(40), "name": "a"}


def everything_damaged_is_refused(tmp_path, flips, cuts, seed):
    raw = save_checkpoint(tmp_path / "c.pt", CONTENT).read_bytes()
    path, accepted = tmp_path / "damaged.pt", []
    for what, damaged in damages(raw, flips, cuts, seed):
        path.write_bytes(damaged)
        try:
            load_checkpoint(path)
            accepted.append(what)
        except CheckpointError as error:
            accepted += [what] * ("\n" in str(error))
    assert accepted == []


def test_a_flipped_bit_or_a_missing_end_is_refused_wherever_it_is(tmp_path):
    everything_damaged_is_refused(tmp_path, 150, 40, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_flipped_bits_and_two_hundred_missing_ends_are_refused(tmp_path, seed):
    everything_damaged_is_refused(tmp_path, 1000, 200, seed + 1)


def test_every_bit_of_the_head_counts(tmp_path):
    raw = save_checkpoint(tmp_path / "c.pt", CONTENT).read_bytes()
    path = tmp_path / "damaged.pt"
    for bit in range(8 * HEAD_BYTES):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            load_checkpoint(path)
    path.write_bytes(raw + b"\0")
    with pytest.raises(CheckpointError, match="bytes where its manifest counts"):
        load_checkpoint(path)


@pytest.mark.parametrize("moment", range(8))
def test_a_full_disk_at_any_moment_of_a_save_leaves_the_older_checkpoint(tmp_path, moment):
    folder = tmp_path / "checkpoints"
    save_newest(folder, {"num_steps": 1, "x": torch.ones(5)}, keep=3)
    count = FullDisk()
    with disk(count):
        save_newest(folder, {"num_steps": 2, "x": torch.ones(5)}, keep=3)
    assert count.calls == 8  # made; head, manifest, one entry; file, second name, name, folder
    survives = nullcontext() if moment == 5 else pytest.raises(OSError, match="No space left")
    with disk(FullDisk(moment)), survives:  # a second name that fails becomes the first's
        save_newest(folder, {"num_steps": 3, "x": torch.ones(5)}, keep=3)
    assert newest_sound(tmp_path).content["num_steps"] in (2, 3)
    assert not [v for v in verify_checkpoints(tmp_path) if v.problem]
    assert list(folder.glob(".*.part")) == []


def test_the_disk_is_asked_to_keep_file_and_name_before_the_older_one_goes(tmp_path, monkeypatch):
    synced, real = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda n: (synced.append(os.readlink(f"/proc/self/fd/{n}")),
                                                real(n)))  # fmt: skip
    path = save_checkpoint(tmp_path / "c.pt", {"x": 1})
    assert [s.endswith(".part") for s in synced] == [True, False]
    assert synced[1] == str(path.parent)


def test_what_was_written_is_read_back_before_it_takes_the_name(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path / "c.pt", {"x": 1})
    real = os.fsync

    def lose(number):
        real(number)
        for part in tmp_path.glob(".*.part"):
            part.write_bytes(part.read_bytes()[:-1])  # the disk kept less than it said

    monkeypatch.setattr(os, "fsync", lose)
    with pytest.raises(CheckpointError, match="damaged"):
        save_checkpoint(path, {"x": 2})
    monkeypatch.undo()
    assert load_checkpoint(path) == {"x": 1}


def test_the_newest_few_and_the_best_stay(tmp_path):
    save_checkpoint(tmp_path / "best.pt", {"num_steps": 1})
    (tmp_path / ".last.pt.1.part").write_bytes(b"left by a killed run")
    for steps in range(1, 7):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)
    kept = {p.name: load_checkpoint(p)["num_steps"] for p in tmp_path.iterdir()}
    assert kept == {"best.pt": 1, "last.pt": 6, "step_000000000005.pt": 5,
                    "step_000000000004.pt": 4}  # fmt: skip
    save_newest(tmp_path, {"num_steps": 7}, keep=1)
    assert {p.name for p in tmp_path.iterdir()} == {"best.pt", "last.pt"}


def test_a_resume_takes_the_newest_sound_one_and_names_what_it_passed_over(tmp_path):
    for steps in (1, 2, 3):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)
    for name in ("last.pt", "step_000000000002.pt"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-1])
    for given_path in (tmp_path, tmp_path / "last.pt"):
        found = newest_sound(given_path)
        assert found.content["num_steps"] == 1
        assert [name in why for name, why in zip(("last", "step"), found.unsound, strict=True)]
    with pytest.raises(CheckpointError, match="damaged"):
        newest_sound(tmp_path / "step_000000000002.pt")  # this one was meant
    lines = verdict_lines(verify_checkpoints(tmp_path))
    assert [line.split()[0] for line in lines] == ["UNSOUND", "UNSOUND", "sound"]


def test_where_none_is_sound_the_newest_ones_fault_is_told(tmp_path):
    for steps in (1, 2):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"None of 2 checkpoints is sound.*last\.pt"):
        newest_sound(tmp_path)


def test_a_killed_save_between_two_names_still_resumes(tmp_path):
    for steps in (1, 2):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)
    (tmp_path / "last.pt").unlink()  # a file system without second names, killed in between
    assert newest_sound(tmp_path).content["num_steps"] == 1


def forged(path, manifest, body=b"", length=None):
    """A file whose checksums are right and whose manifest is not."""
    raw = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    head = MAGIC + (len(raw) if length is None else length).to_bytes(8, "little")
    path.write_bytes(head + hashlib.sha256(raw).digest() + raw + body)
    return path


def entry(name, body):
    return [name, len(body), hashlib.sha256(body).hexdigest()]


def array(dtype="<f4", shape=(1,), at="x", kind="array"):
    return {"@": kind, "at": at, "dtype": dtype, "shape": list(shape)}


BODY = bytes(4)
VALUES = {
    "nothing": None,
    "a list": [1],
    "no such kind": {"x": {"@": "code"}},
    "no such entry": {"x": array(at="gone")},
    "an object": {"x": array("O")},
    "a type with a count": {"x": array("f4,f4")},
    "no type": {"x": array(7)},
    "another size": {"x": array(shape=(2,))},
    "an endless shape": {"x": array(shape=(1 << 60,))},
    "a negative shape": {"x": array(shape=(-1,))},
    "a shape of words": {"x": array(shape="ab")},
    "no tensor type": {"x": array("complex64", kind="tensor")},
    "one entry twice": {"x": array(), "y": array()},
    "a key that is a list": {"x": {"@": "dict", "items": [[[1], 2]]}},
    "items that are none": {"x": {"@": "tuple", "items": 7}},
    "bytes that are none": {"x": {"@": "bytes", "base64": "?"}},
    "a record too deep": {"x": array([["a", [["b", [["c", [["d", [["e", "<f4"]]]]]]]]]])},
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_a_manifest_that_lies_is_refused_in_one_line(values, tmp_path):
    path = forged(tmp_path / "c.pt", {"format": 2, "values": values, "entries": [entry("x", BODY)]},
                  BODY)  # fmt: skip
    with pytest.raises(CheckpointError, match="damaged") as refused:
        load_checkpoint(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "manifest",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b"{",
        b"\xff",
        [],
        {"format": "2", "values": {}, "entries": []},
        {"format": 2, "values": {}, "entries": {}},
        {"format": 2, "values": {}, "entries": [["x", -1, ""]]},
        {"format": 2, "values": {}, "entries": [["x", 1 << 50, ""]]},
        {"format": 2, "values": {}, "entries": [[{}, 0, ""]]},
        {"format": 2, "values": {}, "entries": [entry("x", b""), entry("x", b"")]},
    ],
)
def test_a_manifest_that_is_none_is_refused_in_one_line(manifest, tmp_path):
    with pytest.raises(CheckpointError, match="damaged") as refused:
        load_checkpoint(forged(tmp_path / "c.pt", manifest))
    assert "\n" not in str(refused.value)


def test_a_length_beyond_the_file_takes_no_memory(tmp_path):
    with pytest.raises(CheckpointError, match="longer than the file"):
        load_checkpoint(forged(tmp_path / "c.pt", {}, length=1 << 62))


def test_terminal_codes_in_a_file_are_never_printed(tmp_path):
    values = {"x": array(dtype="\x1b]0;gotcha\x07")}
    path = forged(tmp_path / "c.pt", {"format": 2, "values": values, "entries": [entry("x", BODY)]},
                  BODY)  # fmt: skip
    with pytest.raises(CheckpointError) as refused:
        load_checkpoint(path)
    assert str(refused.value).isprintable()


def test_a_pickle_is_refused_unread_and_no_advice_of_torchs_is_passed_on(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("executed",))

    torch.save({"format": 1, "json": "{}", "tensors": {}, "evil": Evil()}, tmp_path / "c.pt")
    with pytest.raises(CheckpointError, match="format 1, this version reads 2") as refused:
        load_checkpoint(tmp_path / "c.pt")
    assert "weights_only" not in str(refused.value)


@pytest.mark.parametrize("raw", [b"", b"\0" * 100, b"FRUGAL", b"\x80\x02cos\nsystem\n"])
def test_other_files_are_refused_in_words(raw, tmp_path):
    (tmp_path / "c.pt").write_bytes(raw)
    with pytest.raises(CheckpointError, match="no checkpoint of this program"):
        load_checkpoint(tmp_path / "c.pt")


@given(raw=st.binary(max_size=300))
def test_any_bytes_are_refused_in_words(raw, tmp_path_factory):
    path = tmp_path_factory.mktemp("c") / "c.pt"
    path.write_bytes(MAGIC + raw)
    with pytest.raises(CheckpointError):
        load_checkpoint(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["@", "array", "tensor", "x", "<f4"]),
    lambda v: (
        st.lists(v, max_size=4)
        | st.dictionaries(
            st.sampled_from(["@", "at", "dtype", "shape", "items", "base64", "k"]), v, max_size=4
        )
    ),
    max_leaves=10,
)  # fmt: skip


@given(values=json_values)
def test_any_values_are_read_or_refused_in_words(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("c") / "c.pt"
    forged(path, {"format": 2, "values": values, "entries": [entry("x", BODY)]}, BODY)
    with suppress(CheckpointError):
        assert isinstance(load_checkpoint(path), dict)


def test_a_run_folder_stands_for_its_last_checkpoint(tmp_path):
    path = save_checkpoint(tmp_path / "checkpoints" / "last.pt", {"x": 1})
    for given_path in (path, path.parent, tmp_path):
        assert find_checkpoint(given_path) == path
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        find_checkpoint(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        verify_checkpoints(tmp_path / "elsewhere")


def test_random_numbers_continue_where_they_were(tmp_path):
    path = save_checkpoint(tmp_path / "c.pt", rng_state())
    drawn = torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    set_rng_state(load_checkpoint(path))
    assert torch.equal(torch.rand(3), drawn[0])
    assert_array_equal(np.random.rand(3), drawn[1])  # noqa: NPY002
    assert random.random() == drawn[2]


@pytest.mark.parametrize("name", ["torch", "numpy", "python"])
@pytest.mark.parametrize("value", [None, [], [1, 2, 3], "x"])
def test_generators_that_are_none_are_refused_in_words(name, value):
    state = rng_state()
    with pytest.raises(CheckpointError, match="random number generators"):
        set_rng_state({**state, name: value})
    set_rng_state(state)


def test_the_manifest_alone_says_what_a_file_holds(tmp_path):
    manifest = read_manifest(save_checkpoint(tmp_path / "c.pt", CONTENT))
    assert manifest.values["num_steps"] == 7
    assert {n: e.num_bytes for n, e in manifest.entries.items()} == {
        "content.weights": 2400, "content.rows": 320,
    }  # fmt: skip


def test_a_checkpoint_that_a_run_replaces_while_it_is_read_is_no_damaged_one(tmp_path, monkeypatch):
    """Whoever evaluates or verifies a run that goes on: the name leads to another file by then."""
    for steps in (1, 2):
        save_newest(tmp_path, {"num_steps": steps, "w": np.full(9, steps)}, keep=3)
    real, saves = checkpoints.read_manifest, iter([3, 4])

    def replaced(path, *limits):
        manifest = real(path, *limits)
        if path.name == "last.pt" and (steps := next(saves, None)):
            save_newest(tmp_path, {"num_steps": steps, "w": np.full(steps, steps)}, keep=3)
        return manifest

    monkeypatch.setattr(checkpoints, "read_manifest", replaced)
    content = load_checkpoint(tmp_path / "last.pt")
    assert content["num_steps"] == 4
    assert (content["w"] == np.full(4, 4)).all()


def test_a_checkpoint_that_a_run_removes_while_others_are_verified_is_none(tmp_path):
    for steps in (1, 2, 3):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)

    def removing(content, file):
        (tmp_path / "step_000000000001.pt").unlink(missing_ok=True)
        return content

    verdicts = verify_checkpoints(tmp_path, removing)
    assert [v.num_steps for v in verdicts] == [3, 2]
