"""An environment's tools are found in the package that its class names."""

import inspect
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.run.tools import needed, offered, own_findings, tool
from frugal_rl.testing.toy import Toy


@pytest.fixture
def tooled(tmp_path, monkeypatch):
    """A toy whose tools are the package `toy_tools`: one that draws, one that says what it got."""
    package = tmp_path / "toy_tools"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "draw.py").write_text("def draw(run, *rest):\n    return [run, *rest]\n")
    (package / "checks.py").write_text("def checks(run):\n    return [run.env.name]\n")
    (package / "film.py").write_text("raise ImportError('loaded without being asked for')\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    @dataclass(frozen=True)
    class Tooled(Toy):
        tools: ClassVar[str] = "toy_tools"

    yield Tooled()
    for name in [n for n in sys.modules if n.startswith("toy_tools")]:
        del sys.modules[name]


def test_a_tool_is_the_function_named_like_its_module(tooled):
    draw = tool(tooled, "draw")
    assert draw is not None
    assert draw("run", "folder") == ["run", "folder"]
    assert offered(tooled) == ["checks", "draw", "film"]


def test_a_missing_tool_is_told_in_words_with_those_that_are_there(tooled):
    assert tool(tooled, "play") is None
    with pytest.raises(ConfigError, match=r"env=toy has no tool 'play' \(it has: checks, draw, fi"):
        needed(tooled, "play", "env=nclone can be played.")


def test_an_environment_without_a_package_of_tools_has_none():
    assert offered(Toy()) == []
    assert tool(Toy(), "draw") is None
    with pytest.raises(ConfigError, match="it has: none"):
        needed(Toy(), "record", "")


def test_own_checks_are_asked_with_the_run(tooled):
    class Run:
        env = tooled

    assert own_findings(Run()) == ["toy"]


def test_an_instance_cannot_name_another_package():
    @dataclass(frozen=True)
    class Redirected(Toy):
        tools: str = ""

    assert tool(Redirected(tools="os"), "path") is None


@dataclass(frozen=True)
class OldToy(Toy):
    """Offers its tools as methods."""

    def draw(self, vec_env, player, folder):
        return [vec_env, player, folder]

    def play(self, run, options):
        return [run, options]


def test_tools_that_are_still_methods_are_called_as_before():
    assert tool(OldToy(), "draw")("run", 1, 2, 3) == [1, 2, 3]
    assert tool(OldToy(), "play")("run", 4) == ["run", 4]
    assert offered(OldToy()) == ["draw", "play"]


def test_finding_tools_loads_no_torch():
    code = "import sys, frugal_rl.run.tools; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


TAKEN = {"checks": 1, "draw": 4, "film": 3, "generate": 4, "player": 4}
"""How many arguments a tool is called with; the others get the run and their options."""


@pytest.mark.parametrize("package", ["fighting", "mine_rl_npv", "nclone", "npp_rl"])
def test_a_module_named_like_a_tool_holds_one(package):
    class Env:
        tools: ClassVar[str] = f"{package}.tools"

    for name in offered(Env()):
        found = tool(Env(), name)
        assert found is not None
        inspect.signature(found).bind(*range(TAKEN.get(name, 2)))
