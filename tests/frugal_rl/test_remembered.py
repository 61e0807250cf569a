"""What is kept between runs is a help, and never a need."""

import pytest

from frugal_rl import remembered


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
