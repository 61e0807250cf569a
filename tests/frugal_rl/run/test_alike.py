"""Processes of one run that were started with other code or settings are refused, all of them."""

from dataclasses import replace

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.remembered import code_digest
from frugal_rl.run.alike import check_alike
from frugal_rl.run.compose import compose_run
from frugal_rl.testing.ranks import together


def run_of(*words):
    return compose_run(["env=toy", "launch.nodes=2", *words])


def said(*runs):
    """What each process is told."""

    def one(ranks):
        with pytest.raises(ConfigError) as told:
            check_alike(runs[ranks.rank], ranks)
        return str(told.value)

    return together(len(runs), one)


def test_the_same_command_is_alike_whatever_a_machine_has_for_itself():
    here = run_of("launch.address=a", "hardware.threads=1")
    there = run_of("launch.address=b", "hardware.ram_gib=3")

    assert together(2, lambda ranks: check_alike((here, there)[ranks.rank], ranks)) == [None, None]


@pytest.mark.parametrize("word", ["algo.gamma=0.5", "seed=7", "checkpoint_every_steps=64"])
def test_another_setting_is_named_by_all(word):
    name, _, value = word.partition("=")

    for words in said(run_of(), run_of(), run_of(word)):
        assert words.startswith(f"Process 2 has not what the first one has: {name} ({value}, not ")


def test_a_setting_that_one_does_not_know_is_another_one():
    run = run_of()
    assert (
        "new_key (1, not None)"
        in said(run, replace(run, resolved={**run.resolved, "new_key": 1}))[0]
    )


def test_other_code_is_refused(tmp_path, monkeypatch):
    package = tmp_path / "someones"
    package.mkdir()
    for name in ("__init__.py", "rules.py"):
        (package / name).write_text("A = 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    def digest():
        code_digest.cache_clear()  # a process reads its code once
        return code_digest("someones")

    before = digest()
    (package / "__pycache__").mkdir(exist_ok=True)
    assert digest() == before
    (package / "rules.py").write_text("A = 2\n")
    changed = digest()
    assert changed != before
    (package / "rules.py").rename(package / "rule.py")
    assert digest() not in (before, changed)

    run, digests = run_of(), iter(["a", "b", "c", "d"])
    monkeypatch.setattr("frugal_rl.run.alike.code_digest", lambda package: next(digests))
    assert all("code of frugal_rl (" in words for words in said(run, run))


def test_a_version_that_says_something_else_here_is_another_version():
    """Earlier ones begin with the folder's name."""

    def one(ranks):
        if ranks.rank == 1:
            ranks.gathered("runs/one")
            return ""
        with pytest.raises(ConfigError) as told:
            check_alike(run_of(), ranks)
        return str(told.value)

    assert "another version of the project" in together(2, one)[0]
