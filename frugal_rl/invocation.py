"""How this program was called, so that the commands which it prints can be pasted where they are.

A command that was started as `.venv/bin/python ../scripts/plan.py` answers with one that begins
alike; the console command answers with itself.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Called:
    """How the console command was called: `frugal-rl`, or `python -m frugal_rl`."""

    words: tuple[str, ...]
    """As they are printed."""
    again: tuple[str, ...]
    """As they stand behind the interpreter in a process of its own."""


_CALLED: list[Called] = []
"""The console command, once it has been called."""


def called_as(called: Called | None) -> None:
    """The console command says how it was called, or a job of a sweep how its sweep was."""
    _CALLED[:] = [] if called is None else [called]


def called() -> Called | None:
    """How the console command was called; None where a script was."""
    return _CALLED[0] if _CALLED else None


def starting(script: str, scripts: Path) -> list[str]:
    """The words that start a script in a process of its own, which prints commands as this does.

    Args:
        script: its name.
        scripts: the folder of all scripts, for those who started none of them.
    """
    if _CALLED:
        return [sys.executable, *_CALLED[0].again, script]
    typed = Path(sys.argv[0])
    ours = typed.with_name(f"{script}.py")
    if typed.parent.name != "scripts" or not ours.is_file():
        ours = scripts / f"{script}.py"
    return [sys.executable, str(ours)]


def command_words(script: str) -> list[str]:
    """The words that start a script, as those were that started this process."""
    if _CALLED:
        return [*_CALLED[0].words, script]
    typed = Path(sys.argv[0])
    if typed.suffix == ".py" and typed.parent.name == "scripts":
        return [python_word(), str(typed.with_name(f"{script}.py"))]
    return ["python", f"scripts/{script}.py"]


def python_word() -> str:
    """This interpreter as a shell finds it: by name, else by its path from here."""
    return _word("python", Path(sys.executable))


def program_word(name: str) -> str:
    """A console command of this installation, as a shell finds it."""
    return _word(name, Path(sys.executable).with_name(name))


def installing(extra: str = "") -> str:
    """The command that installs this program's packages, or those of an extra, where they belong.

    In a checkout that is with its pinned versions; elsewhere the installed package knows them.
    """
    pip, of = program_word("pip"), f"[{extra}]" if extra else ""
    if Path("constraints.txt").is_file() and Path("frugal_rl").is_dir():
        return command_line([pip, "install", "-c", "constraints.txt", "-e", f".{of}"])
    return command_line([pip, "install", f"frugal-rl{of}"])


def _word(name: str, program: Path) -> str:
    found = shutil.which(name)
    if found is not None and Path(found).absolute().parent == program.parent:
        return name
    if not program.exists():
        return name
    near = os.path.relpath(program)
    return str(program) if near.startswith(os.pardir) else near


def value(given: str | Path) -> str:
    """A value of an override, quoted where Hydra's grammar would read it otherwise."""
    text = str(given)
    if re.fullmatch(r"[\w./:%+-]+", text, re.ASCII):
        return text
    # A backslash means itself, unless a quote follows it: there it is doubled.
    return "'" + re.sub(r"(\\*)'", r"\1\1\'", re.sub(r"(\\+)\Z", r"\1\1", text)) + "'"


def override(key: str, given: str | Path) -> str:
    """`key=value` as a shell takes it: quoted for Hydra, and again for the shell."""
    return shell_word(f"{key}={value(given)}")


def command_line(words: Iterable[str]) -> str:
    """Words as one line that a shell reads as the same words."""
    return " ".join(map(shell_word, words))


def command(script: str, *words: str) -> str:
    """A script with words, as the present command was called, in one line for a shell."""
    return command_line([*command_words(script), *words])


def program(name: str, *words: str) -> str:
    """A console command of this installation with words, in one line for a shell."""
    return command_line([program_word(name), *words])


def shell_word(word: str) -> str:
    """One word, quoted where a shell would change it: `"resume='my run'"`."""
    if "'" in word and not re.search(r'["$`\\!]', word):
        return f'"{word}"'
    return shlex.quote(word)


def typed_words(
    overrides: Iterable[str], config_dir: str = "", extra: Iterable[str] = ()
) -> list[str]:
    """What was typed for a run, without the options of a plan, and more overrides."""
    more = list(extra)
    gone = {word.split("=")[0] for word in more} | {"compare", "format", "why"}
    kept = [word for word in overrides if word.split("=")[0] not in gone]
    return [*(("--config-dir", config_dir) if config_dir else ()), *kept, *more]
