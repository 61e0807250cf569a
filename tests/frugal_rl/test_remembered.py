"""What is kept between runs is a help, and never a need."""

import os

import pytest

from frugal_rl import remembered
from frugal_rl.testing.faults import flip_bit


def homeless(monkeypatch, tmp_path):
    """A user of a container that knows him by a number alone."""

    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", home)


def in_a_file(monkeypatch, tmp_path):
    """A home that nobody can write to: root is refused nothing else."""
    (tmp_path / ".cache").write_text("a file")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("place", [homeless, in_a_file])
def test_without_a_home_nothing_is_kept_and_nothing_fails(place, monkeypatch, tmp_path):
    place(monkeypatch, tmp_path)
    remembered.write("measured", {"seconds": 1.0})
    assert remembered.read("measured") is None
    with remembered.turn("measuring", "waiting"):
        pass


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """The file of something that was kept."""
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    remembered.write("measured", {"seconds": 1.5, "more": [1, 2], "of": {"a": None}})
    return tmp_path / "measured.json"


def test_what_was_kept_comes_back_whole(kept):
    assert remembered.read("measured") == {"seconds": 1.5, "more": [1, 2], "of": {"a": None}}


def test_nothing_damaged_is_read(kept):
    raw = kept.read_bytes()
    for bit in range(8 * len(raw)):
        kept.write_bytes(flip_bit(raw, bit))
        assert remembered.read("measured") in (None, {"seconds": 1.5, "more": [1, 2],
                                                      "of": {"a": None}})  # fmt: skip
    for length in range(len(raw)):
        kept.write_bytes(raw[:length])
        assert remembered.read("measured") is None


@pytest.mark.parametrize("text", ["[]", "7", "{}", "[" * 9999, '{"seconds": 2.5}', "null", "\0"])
def test_what_another_version_or_hand_wrote_is_not_read(kept, text):
    kept.write_text(text)
    assert remembered.read("measured") is None


def test_what_belongs_to_another_name_is_not_read(kept):
    kept.rename(kept.with_name("other.json"))
    assert remembered.read("other") is None


def test_a_pipe_in_its_place_is_not_waited_for(kept):
    kept.unlink()
    os.mkfifo(kept)
    assert remembered.read("measured") is None
