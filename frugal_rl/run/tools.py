"""What can be done with an environment besides training on it: its tools, found by name.

A configuration is a value and knows no tool. Its class names the package that holds them::

    class PongConfig:
        tools: ClassVar[str] = "pong.tools"

and that package has one module per tool, with a function of the same name: `pong/tools/play.py`
holds `play`. Only the module that is asked for is imported, so a training run loads no window and
no film. A tool that is missing is one that the environment does not offer. An agent may name tools
of its own in the same way. Every tool takes the run first:

    play(run, options)                    a line per file that was written; `scripts/play.py`
    watch(run, options)                   the same with a checkpoint; where it is missing, `play`
    record(run, options)                  the exit status; `scripts/record.py`
    generate(run, folder, count, seed)    the paths that were written; `scripts/generate.py`
    tournament(run, checkpoints)          the table; `scripts/evaluate.py tournament=true`
    draw(run, vec_env, player, folder)    pictures of what a player does; `visualization=true`
    film(run, policy, path)               the film; `evaluation.film=true`
    player(run, policy, vec_env, best)    who plays with an agent's policy; None: the policy alone
    checks(run)                           what `scripts/plan.py` should warn of

The name stands in the class, never in a value: a configuration that arrives with a checkpoint
cannot point at another module.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from frugal_rl.errors import ConfigError
from frugal_rl.ranges import SEED, at_least

if TYPE_CHECKING:
    from frugal_rl.memory.finding import Finding
    from frugal_rl.run.config import RunConfig

Tool = Callable[..., Any]


@dataclass(frozen=True)
class GenerateOptions:
    """The options of `scripts/generate.py` beside those of a run."""

    count: Annotated[int, at_least(1)] = 1
    """How many problems."""
    folder: str = "generated"
    """Where they are written."""
    seed: Annotated[int, SEED] = 0
    """Of the first; the others follow."""


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of `scripts/evaluate.py` beside those of a run."""

    checkpoint: str | tuple[str, ...] = ""
    """A run folder or file; of a tournament several, or `none`."""
    tournament: bool = False
    """Let the environment's own players and the checkpoints play each other."""


NO_FILM = "Leave out evaluation.film=true; env=nclone, env=fighting and env=gymnasium are filmed."
OPPONENTS = "A tournament needs opponents: env=fighting has some."
TOOLS = ("checks", "draw", "film", "generate", "play", "player", "record", "tournament", "watch")
"""Every tool that the core asks for."""
_WITHOUT_RUN = ("checks", "draw", "generate")


def tool(part: object, name: str) -> Tool | None:
    """The function `name` among the tools of an environment or agent; None where it has none."""
    package = getattr(type(part), "tools", "")
    if not package:
        return _method(part, name)
    if find_spec(f"{package}.{name}") is None:
        return None
    function: Tool = getattr(import_module(f"{package}.{name}"), name)
    return function


def offers(part: object, name: str) -> bool:
    """Whether an environment or agent has the tool, without importing it."""
    package = getattr(type(part), "tools", "")
    if not package:
        return _method(part, name) is not None
    return find_spec(f"{package}.{name}") is not None


def needed(part: Any, name: str, remedy: str) -> Tool:
    """As `tool`, but one must be there; `remedy` says which environment has it.

    Raises:
        ConfigError: there is none.
    """
    must_offer(part, name, remedy)
    found: Tool = tool(part, name)  # type: ignore[assignment]
    return found


def must_offer(part: Any, name: str, remedy: str) -> None:
    """Refuse what has no such tool, without importing any.

    Raises:
        ConfigError: naming those that it has, and the remedy.
    """
    if not offers(part, name):
        has = ", ".join(offered(part)) or "none"
        raise ConfigError(f"env={part.name} has no tool '{name}' (it has: {has}). {remedy}")


def own_findings(run: RunConfig) -> list[Finding]:
    """What an environment's own checks say of a run; none where it has no such tool."""
    checks = tool(run.env, "checks")
    return [] if checks is None else list(checks(run))


def offered(part: object) -> list[str]:
    """The names of the tools that an environment or agent has."""
    package = getattr(type(part), "tools", "")
    if not package:
        return [name for name in TOOLS if _method(part, name) is not None]
    found = {module.name for module in pkgutil.iter_modules(import_module(package).__path__)}
    return [name for name in TOOLS if name in found]


def _method(part: object, name: str) -> Tool | None:
    """A tool that is still a method of the configuration; some of these take no run."""
    method = getattr(part, name, None)
    if method is None or name not in _WITHOUT_RUN:
        return method
    return partial(_called_without_run, method)


def _called_without_run(method: Tool, run: object, *arguments: Any) -> Any:
    return method(*arguments)
