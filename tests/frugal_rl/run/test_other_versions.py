"""Checkpoints of another version are sound: none stands in for them, and no save removes them."""

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from frugal_rl.errors import CheckpointError
from frugal_rl.run.keeping import (
    all_well,
    newest_sound,
    save_newest,
    verdict_lines,
    verify_checkpoints,
)
from frugal_rl.run.manifest import HEAD_BYTES


def another_version(path, format_number, manifest_format):
    """Make a checkpoint one of another version, with checksums that are right."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[8:16], "little")
    said = json.loads(raw[HEAD_BYTES : HEAD_BYTES + length])
    manifest = json.dumps(said | {"format": manifest_format}).encode()
    head = b"FRUGAL%d\n" % format_number + len(manifest).to_bytes(8, "little")
    sound = hashlib.sha256(manifest).digest()
    path.write_bytes(head + sound + manifest + raw[HEAD_BYTES + length :])


@pytest.mark.parametrize("numbers", [(3, 3), (2, 3)])
def test_no_older_checkpoint_stands_in_for_one_of_another_version(numbers, tmp_path):
    for steps in (1, 2):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)
    another_version(tmp_path / "last.pt", *numbers)
    with pytest.raises(CheckpointError, match=r"last\.pt has checkpoint format 3, .* reads 2"):
        newest_sound(tmp_path)


def test_a_save_leaves_the_checkpoint_of_another_version(tmp_path):
    save_newest(tmp_path, {"num_steps": 1}, keep=3)
    another_version(tmp_path / "last.pt", 3, 3)
    theirs = (tmp_path / "last.pt").read_bytes()
    for steps in (2, 3):
        save_newest(tmp_path, {"num_steps": steps}, keep=2)
    assert (tmp_path / "other_version.pt").read_bytes() == theirs
    assert newest_sound(tmp_path).content["num_steps"] == 3


def test_a_flipped_bit_in_the_version_is_damage_and_an_older_one_stands_in(tmp_path):
    for steps in (1, 2):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)
    raw = bytearray((tmp_path / "last.pt").read_bytes())
    raw[6] ^= 1  # FRUGAL3
    (tmp_path / "last.pt").write_bytes(raw)
    found = newest_sound(tmp_path)
    assert found.content["num_steps"] == 1
    assert "its first bytes are damaged" in found.unsound[0]


def test_verifying_says_another_version_and_not_unsound(tmp_path):
    save_newest(tmp_path, {"num_steps": 1}, keep=3)
    another_version(tmp_path / "last.pt", 3, 3)
    verdicts = verify_checkpoints(tmp_path)
    assert verdict_lines(verdicts)[0].startswith("another version  ")
    assert not all_well(verdicts)  # there is none that this version could go on from
    save_newest(tmp_path, {"num_steps": 2}, keep=3)
    verdicts = verify_checkpoints(tmp_path)
    assert [line.split()[0] for line in verdict_lines(verdicts)] == ["sound", "another"]
    assert "other_version.pt" in verdict_lines(verdicts)[1]
    assert all_well(verdicts)
    (tmp_path / "other_version.pt").write_bytes(b"FRUGAL2\n")
    assert not all_well(verify_checkpoints(tmp_path))


def test_a_checkpoint_that_may_not_be_opened_is_no_damaged_one(tmp_path, monkeypatch):
    """Another user's, in a folder that both write to: none stands in, and no save removes it."""
    for steps in (1, 2):
        save_newest(tmp_path, {"num_steps": steps}, keep=3)
    theirs, real = (tmp_path / "last.pt").read_bytes(), Path.open

    def closed(self, *words, **more):
        if self.name == "last.pt" and self.read_bytes() == theirs:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return real(self, *words, **more)

    monkeypatch.setattr(Path, "read_bytes", lambda self: real(self, "rb").read())
    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(CheckpointError, match=r"last\.pt cannot be opened: Permission denied"):
        newest_sound(tmp_path)
    lines = verdict_lines(verify_checkpoints(tmp_path))
    assert [line.split()[0] for line in lines] == ["not", "sound"]
    save_newest(tmp_path, {"num_steps": 3}, keep=3)
    assert (tmp_path / "out_of_reach.pt").read_bytes() == theirs
    assert newest_sound(tmp_path).content["num_steps"] == 3
