"""A variant that differs in its memory is what its words compose, without composing them."""

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.run import compose
from frugal_rl.run.compose import compose_run
from frugal_rl.run.composing import typed_values
from frugal_rl.run.varied import with_other_memory

PROFILES = ("attention", "baseline", "lossless", "sparse")


def words_of(typed, profile):
    return [*(w for w in typed if not w.startswith("memory=")), f"memory={profile}"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "typed",
    [
        (),
        ("memory=sparse",),
        ("memory=baseline", "memory.buffers=reused", "memory.budget_gib=0.5"),
    ],
    ids=" ".join,
)
def test_another_profile_is_put_in_the_place_of_the_composed_one(typed, profile, monkeypatch):
    run = compose_run(["env=toy", *typed])
    composed = compose_run(words_of(run.overrides, profile))
    monkeypatch.setattr(compose, "compose_plain", None)

    varied = run.variant([f"memory={profile}"])

    assert varied == composed
    assert varied.resolved == composed.resolved


def test_a_profile_without_sizes_is_refused_without_composing_it(monkeypatch):
    run = compose_run(["env=toy"])
    monkeypatch.setattr(compose, "compose_plain", None)

    with pytest.raises(ConfigError, match=r"has no sizes for env=toy\."):
        run.variant(["memory=small"])


@pytest.mark.parametrize(
    ("typed", "profile"),
    [
        (("env=toy", "memory=parallel"), "sparse"),
        (("env=toy",), "parallel"),
        (("env=mine",), "baseline"),
        (("env=mine", "memory=small"), "sparse"),
    ],
    ids=str,
)
def test_profiles_that_set_more_than_the_memory_are_composed(typed, profile):
    run = compose_run(list(typed))
    words = words_of(typed, profile)

    assert with_other_memory(run.resolved, run.overrides, words, typed_values) is None
    assert run.variant([f"memory={profile}"]).resolved == compose_run(words).resolved


def test_what_another_file_changed_of_a_profile_is_kept(tmp_path, monkeypatch):
    """An experiment that sets a switch sets it under every profile."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "halves.yaml").write_text(
        "# @package _global_\nmemory:\n  buffers: new\n"
    )
    monkeypatch.setattr("frugal_rl.run.search_path.declared", lambda: ["own"])
    monkeypatch.setattr("frugal_rl.run.search_path.plugin_conf", lambda name: tmp_path)
    run = compose_run(["env=toy", "experiment=halves"])
    words = words_of(run.overrides, "sparse")

    assert with_other_memory(run.resolved, run.overrides, words, typed_values) is None
    assert run.variant(["memory=sparse"]).resolved["memory"]["buffers"] == "new"


@pytest.mark.parametrize(
    "file",
    [
        "memory:\n  storage: half\nseed: 3\n",
        "defaults:\n  - lossless\nmemory:\n  storage: half\n",
        "defaults:\n  - lossless\n  - _self_\nmemory:\n  budget_gib: ${seed}\n",
        "defaults:\n  - /env: nclone\n  - _self_\nmemory:\n  storage: half\n",
    ],
    ids=["another key", "its own values first", "depends on the run", "chooses a group"],
)
def test_profiles_of_somebody_else_are_read_by_hydra(file, tmp_path, monkeypatch):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "theirs.yaml").write_text(f"# @package _global_\n{file}")
    monkeypatch.setattr("frugal_rl.run.search_path.declared", lambda: ["own"])
    monkeypatch.setattr("frugal_rl.run.search_path.plugin_conf", lambda name: tmp_path)
    run = compose_run(["env=toy"])

    assert (
        with_other_memory(
            run.resolved, run.overrides, words_of(run.overrides, "theirs"), typed_values
        )
        is None
    )
