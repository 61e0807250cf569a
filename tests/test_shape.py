"""The house in numbers: imports inside functions, circles, chains, modules that nobody reads."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("frugal_rl", "nclone", "npp_rl", "mine_rl_npv", "fighting")
MOST_DEFERRED, MOST_FORMAT_SKIPS = 10, 20
LONGEST_CHAIN = 10

DEFERRED = {
    ("frugal_rl.store.rollout", "frugal_rl.store.device"): "torch, which workers never load",
    ("mine_rl_npv.config", "mine_rl_npv.tools.show"): "matplotlib, for one who asks for pictures",
    ("mine_rl_npv.tools.methods", "mine_rl_npv.priority.gradient"): "torch, for one of its methods",
    ("mine_rl_npv.tools.planner", "mine_rl_npv.tools.leaderboard"): "matplotlib",
    ("mine_rl_npv.tools.planner", "mine_rl_npv.tools.page"): "matplotlib",
    ("frugal_rl.observation.repeated_rows", "frugal_rl.observation.row_numbers"): "the compiler",
    ("mine_rl_npv.tools.planner", "mine_rl_npv.tools.solid"): "PyVista, an extra",
    ("mine_rl_npv.tools.planner", "mine_rl_npv.tools.views"): "matplotlib",
    ("mine_rl_npv.tools.solve", "mine_rl_npv.tools.views"): "matplotlib",
}
"""Imports of our own modules inside functions, each with its reason."""


ONLY_MEASURED = {
    "npp_rl.evaluation": "scores by category, of benchmarks/npp_rl_learning.py",
    "npp_rl.heuristic": "the path follower, a baseline of the same benchmark",
    "fighting.machine.roam": "Roam's world as an array, of benchmarks/fighting_roam.py",
    "nclone.levels.topology": "what rooms look like as a graph, of benchmarks/nclone_diversity.py",
    "mine_rl_npv.data.published": "known values that benchmarks and tests compare with",
}
"""Modules that only benchmarks and tests read."""


FOR_USERS = {
    "nclone.sim.cuda": "worlds on a CUDA device, docs/simulator.md",
    "frugal_rl.learn.imitate": "behaviour cloning from a data set, docs/replay.md",
    "frugal_rl.store.offline": "a door for scripts of one's own, docs/replay.md",
    "frugal_rl.store.torchrl_storage": "TorchRL's replay buffers, examples/torchrl_rollout.py",
}
"""Modules that nothing of ours calls, each with who does."""


@cache
def trees() -> dict[str, ast.Module]:
    """Module name -> syntax tree, for all of our packages."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(p for p in parts if p != "__init__")
            found[name] = ast.parse(path.read_text())
    return found


def targets(node: ast.AST) -> Iterator[str]:
    """Our own modules that an import statement names."""
    names = trees()
    if isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield from (n for n in ([whole] if whole in names else [node.module]) if n in names)
    elif isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name in names)


@cache
def imports(name: str) -> tuple[ast.AST, ...]:
    """A module's import statements, those inside functions included."""
    return tuple(n for n in ast.walk(trees()[name]) if isinstance(n, ast.Import | ast.ImportFrom))


def typing_only(tree: ast.Module) -> set[int]:
    """Nodes that only a type checker reads."""
    blocks = (n for n in ast.walk(tree) if isinstance(n, ast.If))
    return {id(c) for b in blocks if "TYPE_CHECKING" in ast.dump(b.test) for c in ast.walk(b)}


@cache
def graph() -> dict[str, set[str]]:
    """Who imports whom, imports inside functions included."""
    edges = {}
    for name, tree in trees().items():
        skipped = typing_only(tree)
        nodes = (n for n in imports(name) if id(n) not in skipped)
        edges[name] = {t for n in nodes for t in targets(n)} - {name}
    return edges


def deferred() -> set[tuple[str, str]]:
    """(module, imported module) of every import of ours inside a function."""
    found = set()
    for name, tree in trees().items():
        todo: list[tuple[ast.AST, bool]] = [(tree, False)]
        while todo:
            node, inside = todo.pop()
            found |= {(name, t) for t in targets(node)} if inside else set()
            inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            todo += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def circles() -> list[set[str]]:
    """Groups of modules that import each other, by who reaches whom."""
    reached = {name: reachable(name) for name in graph()}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph()
        if name in reached[name]
    }
    return sorted((set(g) for g in groups), key=len, reverse=True)


def reachable(start: str) -> set[str]:
    found: set[str] = set()
    todo = list(graph()[start])
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += graph()[name]
    return found


@cache
def chain(name: str) -> tuple[str, ...]:
    """The longest way down from a module; the graph must have no circle."""
    below = max((chain(n) for n in graph()[name]), key=len, default=())
    return (name, *below)


def test_imports_inside_functions_are_few_and_have_reasons():
    assert deferred() == set(DEFERRED)
    assert len(DEFERRED) <= MOST_DEFERRED


def test_no_modules_import_each_other_in_a_circle():
    assert circles() == []


def test_no_chain_of_imports_is_long():
    longest = max(map(chain, graph()), key=len)

    assert len(longest) <= LONGEST_CHAIN, " -> ".join(longest)


def test_every_module_has_a_reader_outside_the_tests():
    read = {t for name in trees() for n in imports(name) for t in targets(n) if t != name}
    texts = [p.read_text() for p in (ROOT / "conf").rglob("*.yaml")]
    texts += [
        p.read_text() for folder in ("scripts", *PACKAGES) for p in (ROOT / folder).rglob("*.py")
    ]
    texts += [(ROOT / name).read_text() for name in ("pyproject.toml", "Makefile")]
    words = {w for text in texts for w in re.findall(r"[\w.]+", text)}
    named = {word[:end] for word in words for end in ends(word)}
    for name in trees():
        last = name.rpartition(".")[2]
        program = last == "__main__" or "." not in name
        known = (
            program
            or name in read
            or name in named
            or tool(name)
            or name in ONLY_MEASURED
            or name in FOR_USERS
        )
        assert known, f"nobody reads {name}"


def ends(word: str) -> Iterator[int]:
    """Where a dotted word ends, and where each part of it does."""
    yield from (at.start() for at in re.finditer(r"\.", word))
    yield len(word)


def tool(name: str) -> bool:
    """Tools and the guides' baselines are found by name."""
    return name.split(".")[1:2] in (["tools"], ["before"], ["rendered"]) or ".testing." in name


def test_tables_that_the_formatter_leaves_alone_are_few():
    code = [p for package in PACKAGES for p in (ROOT / package).rglob("*.py")]

    assert sum(p.read_text().count("# fmt: skip") for p in code) <= MOST_FORMAT_SKIPS
