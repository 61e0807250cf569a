"""The console command: `frugal-rl train env=nclone` runs scripts/train.py with those words."""

from __future__ import annotations

import runpy
import sys

from frugal_rl.run.building import nearest
from frugal_rl.run.compose import folder


def main() -> None:
    """Run the script that the first word names with the words after it."""
    scripts = folder("scripts")
    commands = sorted(p.stem for p in scripts.glob("*.py"))
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"usage: frugal-rl COMMAND [key=value ...]\ncommands: {' '.join(commands)}")
        return
    command = sys.argv[1]
    if command not in commands:
        sys.exit(f"frugal-rl {command} is no command; {nearest(command, commands)}")
    sys.argv = [f"{command}.py", *sys.argv[2:]]
    runpy.run_path(str(scripts / f"{command}.py"), run_name="__main__")


if __name__ == "__main__":
    main()
