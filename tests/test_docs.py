"""Every command, import, dotted name and override in the documentation exists."""

import ast
import contextlib
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf

from frugal_rl.errors import ConfigError
from frugal_rl.run.arguments import SAID_OTHERWISE
from frugal_rl.run.compose import check_choices, compose_plain, compose_run

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?:bash|sh|console)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROGRAMS = ("make", "python", "frugal-rl")


MEASURED = sorted((ROOT / "benchmarks").glob("*.md"))


def commands(pages: list[Path]) -> list[tuple[str, str]]:
    """(page, command) of every line in a shell block, continued lines joined."""
    found = []
    for page in pages:
        if page.exists():
            for block in FENCE.findall(page.read_text()):
                for line in block.replace("\\\n", " ").splitlines():
                    command = line.removeprefix("$ ").split("  #")[0].strip()
                    if command.split(" ")[0] in PROGRAMS:
                        found.append((page.name, command))
    return found


COMMANDS = commands(PAGES)
BENCHMARKS = [row for row in commands(PAGES + MEASURED) if " benchmarks/" in row[1]]


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


@pytest.mark.parametrize(("page", "command"), BENCHMARKS, ids=[f"{p}: {c}" for p, c in BENCHMARKS])
def test_every_option_of_a_benchmark_in_a_page_is_one_that_it_has(page, command):
    words = shlex.split(command)
    [script] = [w for w in words if w.startswith("benchmarks/")]
    source = (ROOT / script).read_text()
    unknown = [w for w in words if w.startswith("--") and f'"{w.split("=")[0]}"' not in source]
    assert not unknown, f"{script} has no {unknown}"


def _composes(name: str, words: list[str]) -> None:
    overrides = [w for w in words if not w.startswith("-")]
    check_choices(overrides)
    single = [re.sub(r"=([^\[,(]+),.*", r"=\1", w) for w in overrides]
    compose_plain(name, single)  # a key that is not there is refused


def test_the_readme_has_commands():
    assert any(page == "README.md" for page, _ in COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


PACKAGES = "frugal_rl|nclone|npp_rl|mine_rl_npv|fighting"
DOTTED = re.compile(rf"(?<![\w./])((?:{PACKAGES})(?:\.\w+)+)(?![\w/]|\.\w)")
FILES = (".md", ".py", ".yaml", ".txt")
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
GROUPS = {p.name for p in (ROOT / "conf").iterdir() if p.is_dir()}
SEVERAL = ("env", "agent", "algo", "memory", "vec", "hardware", "tracking", "evaluation")


def resolve(name: str) -> None:
    """Import the longest module of a dotted name, look up the rest."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            found = importlib.import_module(".".join(parts[:cut]))
            for attribute in parts[cut:]:
                found = getattr(found, attribute)
            return
    raise AssertionError(f"{name} cannot be imported")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_dotted_name_in_a_page_can_be_imported(page):
    for name in set(DOTTED.findall(page.read_text())):
        if not name.endswith(FILES):
            resolve(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_import_in_a_page_works(page):
    for block in PYTHON.findall(page.read_text()):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and re.match(PACKAGES, node.module or ""):
                for alias in node.names:
                    resolve(f"{node.module}.{alias.name}")


def option_keys() -> dict[str, set[str]]:
    """Dotted keys of all YAML files of each group, and of the top-level files."""
    keys: dict[str, set[str]] = {}
    for path in (ROOT / "conf").rglob("*.yaml"):
        content = OmegaConf.to_container(OmegaConf.load(path))
        group = path.relative_to(ROOT / "conf").parts[0]
        whole = "@package _global_" in path.read_text() or group not in GROUPS
        keys.setdefault(group, set()).update(flat(content, "" if whole else f"{group}."))
    return keys


def flat(values: object, prefix: str) -> Iterator[str]:
    if isinstance(values, dict):
        for key, value in values.items():
            yield f"{prefix}{key}"
            yield from flat(value, f"{prefix}{key}.")


KEYS = set().union(*option_keys().values())


def inline_overrides() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        if page.name == "mistakes.md":
            continue  # wrong on purpose; tests/frugal_rl/run/test_mistakes.py makes each of them
        for code in INLINE.findall(page.read_text()):
            words = code.split(" ") if "{" not in code else [code]
            named = [w for w in words if re.match(rf"({'|'.join(SEVERAL)})(\.[\w.]+)?=", w)]
            found += [(page.name, word) for word in named]
    return sorted(set(found))


OVERRIDES = inline_overrides()


@pytest.mark.parametrize(("page", "word"), OVERRIDES, ids=[f"{p}: {w}" for p, w in OVERRIDES])
def test_every_override_in_the_text_names_what_exists(page, word):
    key, _, value = word.partition("=")
    if "." not in key:
        choices = {p.stem for p in (ROOT / "conf" / key).glob("*.yaml")}
        assert value.strip('".)') in ({"", *choices}), f"{page}: {word}"
    else:
        assert SAID_OTHERWISE.get(key, key) in KEYS, (
            f"{page}: no configuration file has the key {key}"
        )
    if key.startswith("env.fields.") and value:
        representations(key.removeprefix("env.fields."), word)


@cache
def representations(name: str, word: str) -> None:
    """Some environment with this field takes the word; three pages may say the same."""
    refusals = []
    for path in sorted((ROOT / "conf" / "env").glob("*.yaml")):
        if name in (OmegaConf.load(path).get("fields") or {}):
            for obs in ("", "pixels", "graph", "full", "gray"):
                try:
                    words = [f"env={path.stem}", word, *([f"env.obs={obs}"] if obs else [])]
                    compose_run(words).encoding()
                    return
                except (ConfigError, HydraException) as error:
                    refusals.append(str(error))
    raise AssertionError(f"{word} is refused everywhere: {refusals[:1]}")


def test_the_first_hour_runs_and_prints_what_it_says(capsys):
    page = (ROOT / "docs" / "first_hour.md").read_text()
    names: dict[str, object] = {}

    for block in PYTHON.findall(page):
        exec(compile(block, "first_hour.md", "exec"), names)  # as a reader would paste it

    printed = capsys.readouterr().out
    assert re.search(r"`([\d,]+ -> [\d,]+ bytes)`", page)[1] in printed
    assert "memory.budget_gib" in printed


def test_every_page_stands_in_the_site_s_index():
    listed = (ROOT / "docs" / "index.md").read_text().split()

    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or page.stem in listed, f"docs/index.md does not list {page}"
