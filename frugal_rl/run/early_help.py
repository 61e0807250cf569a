"""Answers `--help` before a script imports what only its task needs.

Words that are more than overrides, and those that compose nothing, are left to the script.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import suppress

from frugal_rl.errors import FrugalError
from frugal_rl.invocation import command_words
from frugal_rl.late import Late
from frugal_rl.report.speech import speaking
from frugal_rl.run import arguments, kept_help
from frugal_rl.run.search_path import folder

_HELP = Late("frugal_rl.run.help")
"""Imports Hydra."""
ASKED = {"--help", "-h"}


def answer(script: str, about: str) -> None:
    """Print the help that the command line asks for, and end; return where that is not enough.

    Args:
        script: the name of the script, which is that of its configuration.
        about: what it says of itself.
    """
    typed = sys.argv[1:]
    words = [word for word in typed if word not in ASKED]
    plain = all("=" in word and not word.startswith(("-", "zoo.", "algo=zoo")) for word in words)
    if len(words) == len(typed) or not plain or not (folder("conf") / f"{script}.yaml").is_file():
        return
    with suppress(FrugalError):  # the script says it again, as it says all refusals
        arguments.check_place()
        arguments.check_letters(typed)
        with speaking() as out:
            out.write(_text(script, about, arguments.in_our_words(words)))
        sys.exit()


def _text(script: str, about: str, words: list[str]) -> str:
    """The help as it was kept, else written anew."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    usage = shlex.join(command_words(script))
    made_of = kept_help.recipe([script, about, usage, str(columns), *words])
    kept = kept_help.read(script, made_of) if made_of else None
    if kept is not None:
        return kept
    text = str(_HELP.help_text(about, script, words))
    if made_of:
        kept_help.write(script, made_of, text)
    return text
