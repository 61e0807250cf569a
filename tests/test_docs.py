"""Every command in the documentation exists and composes."""

import re
import shlex
from pathlib import Path

import pytest

from frugal_rl.run.compose import check_words, compose_plain

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?:bash|sh|console)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAMS = ("make", "python", "frugal-rl")


def commands() -> list[tuple[str, str]]:
    """(page, command) of every line in a shell block, continued lines joined."""
    found = []
    for page in PAGES:
        if page.exists():
            for block in FENCE.findall(page.read_text()):
                for line in block.replace("\\\n", " ").splitlines():
                    command = line.removeprefix("$ ").split("  #")[0].strip()
                    if command.split(" ")[0] in PROGRAMS:
                        found.append((page.name, command))
    return found


COMMANDS = commands()


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{p}: {c}" for p, c in COMMANDS])
def test_every_documented_command_names_what_exists(page, command):
    words = [w for w in shlex.split(command) if not re.fullmatch(r"[A-Z_]+=\S*", w)]
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert all(w in targets for w in words[1:] if "=" not in w), f"no such target: {command}"
    if words[0] == "frugal-rl":
        words = ["python", f"scripts/{words[1]}.py", *words[2:]]
    if words[0].endswith("python") and words[1].endswith(".py"):
        assert (ROOT / words[1]).is_file(), f"{words[1]} is not there"
        if words[1].startswith("scripts/"):
            _composes(Path(words[1]).stem, words[2:])


def _composes(name: str, words: list[str]) -> None:
    overrides = [w for w in words if not w.startswith("-")]
    check_words(name, overrides)
    single = [re.sub(r"=([^\[,(]+),.*", r"=\1", w) for w in overrides]
    compose_plain(name, single)


def test_the_readme_has_commands():
    assert any(page == "README.md" for page, _ in COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
