"""The core's own files, changed at random, are read or refused in one line."""

import json
import zlib
from itertools import chain
from pathlib import Path

import pytest

from frugal_rl.errors import DataError
from frugal_rl.observation.found_spec import FoundField, FoundSpec, read_found_spec
from frugal_rl.report.files import read_json, read_metrics
from frugal_rl.testing.fuzz import Reading, mutations
from frugal_rl.untrusted.files import inflate, read_bytes
from frugal_rl.untrusted.limits import Limits
from frugal_rl.untrusted.nested import parse_yaml

FOUND = {"a": FoundField("differences", 3.0, 1.0), "b": FoundField("compressed", 8.0, 2.0)}
SPEC = FoundSpec(FOUND).text()
LINES = [json.dumps({"step": k, "train/loss": k / 2, "x": None}) for k in range(30)]
FILES = {
    "spec.yaml": (SPEC, lambda p: [read_found_spec(p).share(name) for name in "ab"]),
    "plan.json": (json.dumps({"a": {"b": [1, 2.5, "c"]}, "d": None}), read_json),
    "metrics.jsonl": ("\n".join(LINES), lambda p: list(read_metrics(p.parent))),
}


def fuzzed(name, folder, count):
    text, read = FILES[name]
    reading = Reading(folder / name, read)
    assert reading.problems(iter([("as it was", text.encode())])) == []
    assert reading.accepted == 1  # else nothing behind the first refusal would be tried
    assert reading.problems(mutations(text.encode(), count, 1, text=True)) == []
    return reading


@pytest.mark.parametrize("name", FILES)
def test_changed_files_are_read_or_refused_in_one_line(name, tmp_path):
    fuzzed(name, tmp_path, 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_five_hundred_changed_files_are_read_or_refused_in_one_line(name, tmp_path):
    assert fuzzed(name, tmp_path, 500).accepted > 1


def test_a_reader_that_breaks_its_word_is_found_out(tmp_path):
    def broken(path):
        raw = path.read_bytes()
        if raw == b"crash":
            raise KeyError("x")
        if raw == b"lines":
            raise DataError(f"{path}:\nno")
        if raw == b"unnamed":
            raise DataError("no")
        if raw == b"memory":
            bytes(80 << 20)

    given = [b"crash", b"lines", b"unnamed", b"memory", b"fine"]
    found = Reading(tmp_path / "f", broken).problems(chain((r.decode(), r) for r in given))
    assert [line.split(":")[0] for line in found] == ["crash", "lines", "unnamed", "memory"]
    assert "KeyError" in found[0]
    assert "80 MiB" in found[3]


def test_mutations_repeat_and_change_something():
    raw = bytes(range(200))
    first = list(mutations(raw, 200, 3))
    assert first == list(mutations(raw, 200, 3))
    assert sum(changed != raw for _, changed in first) > 190
    assert len({what.split()[1] for what, _ in first}) == 7


def bomb(levels):
    """YAML whose last line stands for ten to the power of `levels` values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (bomb(9), "more than 200,000 values"),
        ("[" * 500, "nested deeper"),
        ("&a [*a]", "nested deeper"),
        ("a: !!python/object:os.system x", "line 1: not valid YAML"),
        ("a: 2001-99-99", "not valid YAML"),
        ("a: !!int ''", "not valid YAML"),
        ("a: " + "9" * 5000, "not valid YAML"),
        ("a: 1\nb: [", "line 2: not valid YAML"),
        ("a: \x1b[31m", "not valid YAML"),
    ],
)
def test_yaml_is_held_to_depth_size_and_plain_values(text, words):
    with pytest.raises(DataError, match=words) as refused:
        parse_yaml(text)
    assert str(refused.value).isprintable()


def test_yaml_gives_plain_values_and_is_held_to_its_length():
    assert parse_yaml("a: &x [1, 0.5]\nb: *x") == {"a": [1, 0.5], "b": [1, 0.5]}
    assert parse_yaml("") is None
    assert parse_yaml(bomb(4))["a3"][0][0][0][0] == "x"
    with pytest.raises(DataError, match="above"):
        parse_yaml("a" * 11, Limits(yaml_bytes=10))


def test_files_are_held_to_their_length_and_pipes_are_none(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    assert read_bytes(tmp_path / "f", 5) == b"12345"
    for path, words in [
        (tmp_path / "f", "longer than 4 bytes"),
        (Path("/dev/zero"), "no regular file"),
        (tmp_path, "no regular file"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "a\0b", "null"),
    ]:
        with pytest.raises(DataError, match=words):
            read_bytes(path, 4)


def test_what_zlib_packed_is_held_to_its_length():
    packed = zlib.compress(bytes(1000))
    assert inflate(packed, 1000) == bytes(1000)
    for raw, most, words in [
        (packed, 999, "more than 999"),
        (packed[:-1], 1000, "complete"),
        (b"neither", 1000, "damaged"),
    ]:
        with pytest.raises(DataError, match=words):
            inflate(raw, most)
