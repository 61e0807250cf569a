"""Files from strangers are read or refused in one line, and never take more than they may."""

import io
import os
import resource
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from frugal_rl.errors import CheckpointError, DataError, FrugalError, MemoryBudgetError
from frugal_rl.report.files import read_json
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.saved import open_saved
from frugal_rl.run.trainer import train
from frugal_rl.testing.faults import damages
from frugal_rl.untrusted.arrays import read_npz
from frugal_rl.untrusted.files import read_bytes, read_text
from frugal_rl.untrusted.forms import plain_dtype
from frugal_rl.untrusted.limits import Limits
from frugal_rl.untrusted.nested import deeper_than, parse_json
from frugal_rl.untrusted.printing import markdown_cell, printable

ARRAYS = {
    "whole": np.arange(3000, dtype=np.int16).reshape(3, 1000),
    "columns": np.asfortranarray(np.random.default_rng(0).random((7, 5))),
    "words": np.array(["a", "bc"]),
    "none": np.zeros((0, 3), np.float32),
    "one": np.array(True),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_an_archive_come_back_as_they_were(save, tmp_path):
    save(tmp_path / "a.npz", **ARRAYS)
    found = read_npz(tmp_path / "a.npz")
    assert found.keys() == ARRAYS.keys()
    for name, values in ARRAYS.items():
        assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


def damaged_archives_change_nothing(tmp_path, flips, cuts):
    np.savez_compressed(tmp_path / "a.npz", **ARRAYS)
    raw, path, changed = (tmp_path / "a.npz").read_bytes(), tmp_path / "b.npz", []
    for what, bad in damages(raw, flips, cuts, 1):
        path.write_bytes(bad)
        try:
            found = read_npz(path)
        except DataError as error:
            changed += [what] * (not str(error).isprintable())
            continue
        same = all(np.array_equal(found[n], ARRAYS[n]) for n in found if n in ARRAYS)
        changed += [what] * (not same)
    assert changed == []


def test_damaged_archives_are_refused_or_give_what_was_written(tmp_path):
    damaged_archives_change_nothing(tmp_path, 100, 30)


@pytest.mark.slow
def test_five_hundred_damaged_archives_are_refused_or_give_what_was_written(tmp_path):
    damaged_archives_change_nothing(tmp_path, 500, 200)


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, raw in members.items():
            file.writestr(f"{name}.npy", raw)
    return path


def header(shape, dtype="<f4"):
    raw = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(raw, described)
    return raw.getvalue()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (header((1 << 40,)), "bytes that its shape says"),
        (header((2,)) + bytes(4), "bytes that its shape says"),
        (header((2,)) + bytes(9), "bytes that its shape says"),
        (header((1,), "|O") + bytes(8), "objects"),
        *((header((1 << 45,), kind), "no bytes") for kind in ("|S0", "<U0", "|V0")),
        (header((1 << 45,), [("a", "|V0")]), "no bytes"),
        (b"\x93NUMPY\x09\x00", "unknown form"),
        (b"nothing", "cannot be read"),
        (b"\x93NUMPY\x01\x00\x10\x00__import__('os')", "cannot be read"),
        (bytes(3 << 20), "times its size"),
    ],
)
def test_members_that_lie_are_refused_in_words(raw, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read_npz(archive(tmp_path / "a.npz", x=raw))


def test_an_archive_is_held_to_bytes_and_entries(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros(10), b=np.zeros(10))
    with pytest.raises(DataError, match="2 entries, above 1"):
        read_npz(tmp_path / "a.npz", Limits(entries=1))
    with pytest.raises(DataError, match="unpacked, above"):
        read_npz(tmp_path / "a.npz", Limits(array_bytes=100))


def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("x.npy", header((0,)))
        file.writestr("x", header((0,)))
    with pytest.raises(DataError, match="two of its entries have one name"):
        read_npz(tmp_path / "a.npz")


def test_what_unpacks_to_more_than_is_free_is_refused_before(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", a=np.zeros(1 << 18))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1 << 20))
    with pytest.raises(DataError, match="unpacks to 2 MiB; 1 are free"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["|S0", "<U0", "|V0", []])
def test_a_type_of_no_bytes_is_none(kind):
    with pytest.raises(DataError, match="no type of array"):
        plain_dtype(kind)


@given(raw=st.binary(max_size=200))
def test_any_bytes_are_refused_as_an_archive(raw, tmp_path_factory):
    path = tmp_path_factory.mktemp("n") / "a.npz"
    path.write_bytes(raw)
    with pytest.raises(DataError):
        read_npz(path)


def test_json_is_held_to_length_and_depth(tmp_path):
    assert parse_json("[" * 50 + "]" * 50)
    for text in (
        "[" * 102 + "]" * 102,
        "[" * 200_000 + "]" * 200_000,
        '{"a":' * 101 + "1" + "}" * 101,
    ):
        with pytest.raises(DataError, match="nested deeper"):
            parse_json(text)
    with pytest.raises(DataError, match="above"):
        parse_json("1" * 11, Limits(text_bytes=10))
    with pytest.raises(DataError, match="10,000 digits"):
        parse_json("1" * 10_000)
    (tmp_path / "a.json").write_bytes(b"\xff")
    with pytest.raises(DataError, match="UTF-8"):
        read_text(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(DataError, match="no JSON object"):
        read_json(tmp_path / "a.json")


@given(values=st.recursive(st.none(), lambda v: st.lists(v, max_size=3), max_leaves=20))
def test_depth_is_that_of_the_deepest_list(values):
    def depth(value):
        return 1 + max(map(depth, value)) if value else 0  # an empty list holds nothing deeper

    for limit in range(6):
        assert deeper_than(values, limit) == (depth(values) > limit)


@pytest.mark.parametrize("described", ["O", "f4,f4", "<f4" * 99, None, [], [["a"]], "M8[x" * 50])
def test_types_with_objects_counts_or_nonsense_are_refused(described):
    with pytest.raises(DataError):
        plain_dtype(described)
    assert plain_dtype("<M8[ns]") == np.dtype("<M8[ns]")


@given(text=st.text())
def test_what_is_printed_has_no_control_characters(text):
    assert printable(text).isprintable()
    cell = markdown_cell(text)
    assert cell.isprintable()
    assert "|" not in cell.replace("\\|", "")


WORDS = (
    "env=toy", "tracking=disabled", "algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16",
    "algo.total_steps=32", "evaluation.episodes=0", "hardware.threads=1", "hardware.device=cpu",
)  # fmt: skip


class Nowhere:
    def metrics(self, step, values):
        pass

    summary = file = lambda self, values: None


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """The content of a stranger's checkpoint, to be changed."""
    folder = tmp_path_factory.mktemp("run")
    train(replace(compose_run(WORDS), run_dir=str(folder)), Nowhere())
    return folder


def opened(folder, tmp_path, **changes):
    content = load_checkpoint(folder)
    for key, value in changes.items():
        group, _, name = key.partition("__")
        target = content["config"][group] if name else content
        target[name or group] = value
    path = save_checkpoint(tmp_path / "last.pt", content)
    asked = replace(compose_run(["env=toy", "checkpoint=x"], "evaluate"), run_dir=str(tmp_path))
    with open_saved(str(path), asked, single=True) as saved:
        return saved.policy


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"agent__actor": [50_000, 50_000]}, CheckpointError, "far larger"),
        ({"env__episode_steps": 10**12}, MemoryBudgetError, "Opening this run needs"),
        ({"agent__actor": [17]}, CheckpointError, "do not fit"),
        ({"learner": {}}, CheckpointError, "no weights"),
        ({"learner": 7}, CheckpointError, "no weights"),
        ({"learner": {"policy": {"x": 1}}}, CheckpointError, "do not fit"),
        ({"config": None}, CheckpointError, "no configuration"),
        ({"config": {}}, FrugalError, None),
        ({"config": {"env": {"_target_": "os.system"}}}, FrugalError, None),
        ({"config": {"env": [1]}}, FrugalError, None),
    ],
)
def test_a_strangers_run_is_refused_before_it_takes_memory(
    strangers, tmp_path, changes, kind, words
):
    before = peak_bytes()
    with pytest.raises(kind, match=words) as refused:
        opened(strangers, tmp_path, **changes)
    assert peak_bytes() - before < 400 << 20
    assert "\x1b" not in str(refused.value)


def test_a_strangers_sound_run_is_opened(strangers, tmp_path):
    policy = opened(strangers, tmp_path)
    saved = load_checkpoint(strangers)["learner"]["policy"]
    assert all(torch.equal(v, saved[k]) for k, v in policy.state_dict().items())


def test_pipes_devices_and_folders_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody would ever write into it
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "device", "folder"):
        for read in (read_bytes, read_npz):
            with pytest.raises(DataError, match=rf"{name} cannot be read: it is no regular file"):
                read(tmp_path / name)


def test_a_file_of_holes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "holes"
    path.touch()
    os.truncate(path, 1 << 39)
    with pytest.raises(DataError, match=r"holes is not read: it unpacks to 524,288 MiB; .* free"):
        read_bytes(path)
    os.truncate(path, free := 1 << 30)
    with pytest.raises(DataError, match=r"it unpacks to 1,048,576 MiB"):
        read_bytes(path, held_per_byte=(1 << 40) / free)
