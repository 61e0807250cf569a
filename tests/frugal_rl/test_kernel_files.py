"""Files of compiled kernels that are damaged, unwritable or without a place: compiled again."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching, config

from frugal_rl import kernel_files
from frugal_rl.after_import import after_import
from frugal_rl.errors import ConfigError
from frugal_rl.testing.faults import FullDisk, disk, flip_bit

SOURCE = """
from numba import njit

@njit(cache=True)
def doubled(x):
    return 2 * x
"""


@pytest.fixture
def kernel(tmp_path):
    """Makes the kernel anew, as another process would; its module lies in a folder of its own."""
    path = tmp_path / "kernels_of_a_test.py"
    path.write_text(SOURCE)

    def made():
        spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.doubled

    return made


def files(tmp_path, ending):
    return list(tmp_path.rglob(f"*.{ending}"))


def loaded(kernel):
    """Whether the kernel gave the right number and was read, not compiled."""
    doubled = kernel()
    assert doubled(21) == 42
    return bool(doubled.stats.cache_hits)


def spoil(path, how):
    raw = path.read_bytes()
    if how == "a folder":
        path.unlink()
        path.mkdir()
        return
    damaged = {
        "empty": b"",
        "cut": raw[: len(raw) // 2],
        "zeros": bytes(len(raw)),
        "a bit": flip_bit(raw, 8 * (len(raw) // 2)),
    }
    path.write_bytes(damaged[how])


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("how", ["empty", "cut", "zeros", "a bit"])
def test_a_damaged_file_is_compiled_again_and_written_anew(kernel, tmp_path, ending, how):
    assert not loaded(kernel)
    assert loaded(kernel)
    (path,) = files(tmp_path, ending)
    spoil(path, how)
    assert not loaded(kernel)
    assert loaded(kernel)


def test_every_bit_of_the_code_counts(kernel, tmp_path):
    kernel()(21)
    (path,) = files(tmp_path, "nbc")
    raw = path.read_bytes()
    cache = kernel_files.SoundFiles(str(path.parent), "unused", None)
    mark = len(raw) - kernel_files.SUM_BYTES - len(kernel_files.MARK)
    for bit in np.random.default_rng(0).integers(8 * mark, size=200):
        path.write_bytes(flip_bit(raw, int(bit)))
        with pytest.raises(OSError, match="is damaged"):
            cache._load_data(path.name)
    path.write_bytes(flip_bit(raw, 8 * mark))  # without its mark it is one of an older version
    assert "doubled" in str(cache._load_data(path.name))


def test_files_that_older_versions_wrote_are_read(kernel, tmp_path):
    kernel()(21)
    (path,) = files(tmp_path, "nbc")
    path.write_bytes(path.read_bytes().rpartition(kernel_files.MARK)[0])
    assert loaded(kernel)


@pytest.mark.parametrize("moment", range(4))
def test_a_full_disk_ends_no_kernel(kernel, tmp_path, moment):
    (tmp_path / "__pycache__").mkdir(exist_ok=True)
    doubled = kernel()
    with disk(FullDisk(moment, 10**9)), pytest.warns(UserWarning, match="No space left"):
        assert doubled(21) == 42
    assert not files(tmp_path, "tmp.*")
    assert not loaded(kernel)
    assert loaded(kernel)


def test_a_file_that_cannot_be_opened_is_compiled_again(kernel, tmp_path):
    kernel()(21)
    for path in files(tmp_path, "nbi"):
        spoil(path, "a folder")
    with pytest.warns(UserWarning, match="not kept"):
        assert not loaded(kernel)


@pytest.fixture
def nowhere(monkeypatch):
    """Neither the installation nor the home takes files."""
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [kernel_files.LastLocator])
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")


def test_where_no_place_takes_files_they_lie_in_a_folder_that_ends_with_the_process(
    kernel, nowhere, monkeypatch
):
    ends = []
    monkeypatch.setattr(kernel_files.atexit, "register", lambda *end: ends.append(end))
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR=/a/folder"):
        assert not loaded(kernel)
    folder = Path(config.CACHE_DIR)
    assert list(folder.rglob("*.nbc"))
    (end,) = ends
    with monkeypatch.context() as another:
        another.setattr(kernel_files.os, "getpid", lambda: 0)
        end[0](*end[1:])
    assert folder.is_dir()  # a fork has ended
    end[0](*end[1:])
    assert not folder.exists()


def test_a_kernel_that_was_typed_has_no_file_and_moves_no_others(nowhere):
    space = {}
    with pytest.raises(RuntimeError, match="no locator available"):
        exec(compile(SOURCE, "<typed>", "exec"), space)
    assert config.CACHE_DIR == ""


def test_without_room_for_temporary_files_the_remedy_is_named(kernel, nowhere, monkeypatch):
    def refused(prefix):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(kernel_files.tempfile, "mkdtemp", refused)
    with pytest.raises(ConfigError, match=r"No usable.*NUMBA_CACHE_DIR=/a/folder"):
        kernel()


def test_something_is_done_behind_an_import_once(tmp_path, monkeypatch):
    (tmp_path / "imported_by_a_test.py").write_text("seen = 1")
    monkeypatch.syspath_prepend(tmp_path)
    before, done = list(sys.meta_path), []
    after_import("imported_by_a_test", lambda: done.append(sys.modules["imported_by_a_test"].seen))
    assert done == []
    importlib.import_module("imported_by_a_test")
    assert done == [1]
    assert sys.meta_path == before
    after_import("imported_by_a_test", lambda: done.append(2))  # it is there already
    assert done == [1, 2]
    del sys.modules["imported_by_a_test"]


def test_numba_reads_and_writes_as_said_here():
    assert caching.IndexDataCacheFile is kernel_files.SoundFiles
