"""The console command: `frugal-rl train env=nclone` runs scripts/train.py with those words."""

from __future__ import annotations

import runpy
import shutil
import sys
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path

from frugal_rl.invocation import Called, called_as, program_word, python_word
from frugal_rl.report.speech import speak_early
from frugal_rl.run.nearness import SURE
from frugal_rl.run.search_path import folder

COMPLETION = Path(__file__).with_name("completion.sh")


def main() -> None:
    """Run the script that the first word names with the words after it."""
    scripts = folder("scripts")
    commands = sorted(p.stem for p in scripts.glob("*.py") if not p.stem.startswith("_"))
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(usage(scripts, commands))
        return
    command = sys.argv[1]
    if command == "completion":
        print(COMPLETION.read_text(), end="")
        return
    if command == "commands":
        print(*commands, sep="\n")
        return
    if command in ("-V", "--version"):
        print(f"frugal-rl {version()}")
        return
    if command not in commands:
        sys.exit(f"frugal-rl {command} is no command; {hint(command, commands)}")
    speak_early()
    called_as(beginning())
    sys.argv = [f"{command}.py", *sys.argv[2:]]
    runpy.run_path(str(scripts / f"{command}.py"), run_name="__main__")


def version() -> str:
    """That of the installed package; a checkout beside it may be newer."""
    try:
        return metadata.version("frugal-rl")
    except metadata.PackageNotFoundError:
        return "(not installed: run from a checkout)"


def hint(command: str, commands: list[str]) -> str:
    """What an unknown command may mean; a script's file, an option, or where all are listed."""
    word = command.removesuffix(".py")
    if word.lstrip("-") == "version":
        return "frugal-rl --version prints it"
    near = get_close_matches(word.lower(), commands, n=1, cutoff=SURE)
    return f"did you mean '{near[0]}'?" if near else f"there are {', '.join(commands)}"


def beginning() -> Called:
    """The words that this command was called by."""
    module = ("-m", "frugal_rl")
    if Path(sys.argv[0]).name == "frugal-rl":
        return Called((program_word("frugal-rl"),), (str(Path(sys.argv[0]).absolute()),))
    if shutil.which("frugal-rl"):
        return Called((program_word("frugal-rl"),), module)
    return Called((python_word(), *module), module)


def usage(scripts: Path, commands: list[str]) -> str:
    """What each command is for: the first line of its script."""
    width = max(map(len, commands))
    lines = ["usage: frugal-rl COMMAND [key=value ...] [--json | --quiet]", "", "commands:"]
    for command in commands:
        first = (scripts / f"{command}.py").read_text().split("\n", 1)[0]
        lines.append(f"  {command:<{width}}  {first.strip(chr(34)).partition(':')[0]}")
    lines += ["", "frugal-rl COMMAND --help lists its options."]
    return "\n".join([*lines, 'Tab completion in bash: eval "$(frugal-rl completion)"'])


if __name__ == "__main__":
    main()
