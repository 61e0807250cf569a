"""A switch is honoured or refused, never ignored.

An environment, an algorithm and a backend declare the switches of the memory profile that they
read, by a class attribute `honours`; the table of savings says who has to. A value that nobody
reads is refused where it was typed. Where a profile brought it, the run takes the value that it has
anyway, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError
from frugal_rl.memory.choices import RolloutLocation, Shuffle
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.memory.savings import Reader, Saving, readers_of

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

ENCODED = frozenset({"storage", "internal_observations", "frame_stack", "buffers"})
"""What an environment honours by its spec and its backend, without a word of its own."""
DRAWN = frozenset({"level_data", "graphs", "rendering", "animation"})
"""What only an environment honours that has the "before" of these savings as well."""
DEFAULTS = {Reader.env: ENCODED, Reader.algo: frozenset[str](), Reader.vec: frozenset[str]()}
"""What is taken for granted of a plug-in that declares nothing."""
AS_IT_IS = MemoryProfile()
"""The values that a run has where a switch is not read."""
Where = Callable[[str, Reader], Iterable[str]]
"""A switch and a role -> the words that choose something which honours it."""


@dataclass(frozen=True)
class Unread:
    """A switch whose value nobody of a run reads; `by` are those that would have to."""

    switch: str
    value: str
    by: tuple[Reader, ...]

    @property
    def word(self) -> str:
        """As it is typed."""
        return f"memory.{self.switch}={self.value}"


def honoured(config: Any, role: Reader) -> frozenset[str]:
    """The switches that an environment, an algorithm or a backend declares to read."""
    declared: frozenset[str] = getattr(config, "honours", DEFAULTS[role])
    return declared


def is_saved_by(saving: Saving, run: RunConfig) -> bool:
    """Whether all of a saving's switches are on in a run, and read by it."""
    words = [word.removeprefix("memory.").partition("=") for word in saving.words]
    return bool(saving.switches) and all(
        not _deaf(run, name) and _is_on(getattr(run.memory, name), wanted)
        for name, _, wanted in words
    )


def _is_on(value: Any, wanted: str) -> bool:
    """Whether a switch has what a saving's word gives it; a size is any but 0."""
    return typed_form(value) == wanted if wanted else bool(value)


def _deaf(run: RunConfig, switch: str) -> tuple[Reader, ...]:
    """Those who would have to read a switch, and do not."""
    asked = [r for r in readers_of(switch) if r is not Reader.process]
    return tuple(r for r in asked if switch not in honoured(getattr(run, r.value), r))


def unread(run: RunConfig) -> list[Unread]:
    """Switches with a value that this run would not read."""
    found = []
    for field in fields(MemoryProfile):
        value = getattr(run.memory, field.name)
        if value == getattr(AS_IT_IS, field.name):
            continue
        if deaf := _deaf(run, field.name):
            found.append(Unread(field.name, typed_form(value), deaf))
    return [*found, *_copied_on_the_device(run.memory)]


def _copied_on_the_device(memory: MemoryProfile) -> list[Unread]:
    """A rollout on the device is gathered by index, always."""
    both = memory.rollout_location is RolloutLocation.device and memory.shuffle is Shuffle.copy
    return [Unread("shuffle", "copy", ())] if both else []


def settle(run: RunConfig, typed: Iterable[str], where: Where) -> tuple[MemoryProfile, str]:
    """The profile that the run really has, and what to say of the values that it has not.

    Args:
        run: as it was composed.
        typed: the overrides that the user typed.
        where: finds what honours a switch, for the refusal.

    Raises:
        ConfigError: a value that nobody reads was typed.
    """
    lost = unread(run)
    words = {word.lstrip("+").partition("=")[0] for word in typed}
    for switch in lost:
        if f"memory.{switch.switch}" in words:
            raise ConfigError(_refusal(run, switch, where))
    if not lost:
        return run.memory, ""
    kept = {s.switch: getattr(AS_IT_IS, s.switch) for s in lost}
    values = ", ".join(f"memory.{n}={typed_form(v)}" for n, v in kept.items())
    return (
        replace(run.memory, **kept),
        f"memory={run.memory.profile} sets {', '.join(s.switch for s in lost)}, which nothing in "
        f"this run reads; it has {values}.",
    )


def _refusal(run: RunConfig, switch: Unread, where: Where) -> str:
    """One line: the word, who does not read it, who would, and what to do."""
    always = f"memory.{switch.switch}={typed_form(getattr(AS_IT_IS, switch.switch))}"
    if not switch.by:
        return f"{switch.word} has no effect with memory.rollout_location=device; leave it out."
    deaf = [f"{role.value}={chosen(run, role)}" for role in switch.by]
    readers = [word for role in switch.by for word in where(switch.switch, role)]
    said = ", ".join(readers) or "nothing that is installed"
    return (
        f"{switch.word} is not honoured by {' and '.join(deaf)}, which always "
        f"{'has' if len(deaf) == 1 else 'have'} {always}; {said} would honour it. Leave it out."
    )


def chosen(run: RunConfig, role: Reader) -> str:
    """The word that chose a role's configuration, else its name."""
    choices = run.resolved.get("choices") or {}
    config = getattr(run, role.value)
    return str(choices.get(role.value) or getattr(config, "name", type(config).__name__.lower()))


def typed_form(value: Any) -> str:
    """A switch's value as the command line takes it."""
    word = value.value if isinstance(value, Enum) else value
    return str(word).lower() if isinstance(word, bool) else str(word)
