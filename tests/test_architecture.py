"""The repository keeps its shape: import arrows, forbidden names, sizes of files and functions."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GUESTS = ("nclone", "mine_rl_npv", "fighting")
CODE = ("frugal_rl", *GUESTS, "npp_rl", "scripts")
FORBIDDEN_NAMES = {"utils", "helpers", "manager", "common", "misc", "profile_v2"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

# What a room may import, by prefix; rooms not named here may import the standard rooms below them.
ARROWS = {
    "frugal_rl.errors": (),
    "frugal_rl.invocation": (),
    "frugal_rl.untrusted": ("frugal_rl.untrusted", "frugal_rl.errors"),
    "frugal_rl.observation": (
        "frugal_rl.observation",
        "frugal_rl.errors",
        "frugal_rl.invocation",
        "frugal_rl.plugins",
        "frugal_rl.untrusted",
    ),
    "frugal_rl.vec_env": (
        "frugal_rl.vec_env",
        "frugal_rl.observation",
        "frugal_rl.errors",
        "frugal_rl.invocation",
        "frugal_rl.ranges",
        "frugal_rl.memory.choices",
        "frugal_rl.memory.part",
        "frugal_rl.memory.profile",
    ),
    "frugal_rl.store": (
        "frugal_rl.store",
        "frugal_rl.vec_env",
        "frugal_rl.memory",
        "frugal_rl.observation",
        "frugal_rl.untrusted",
        "frugal_rl.errors",
        "frugal_rl.invocation",
        "frugal_rl.untrusted",
    ),
}
DOOR = ("frugal_rl.run.compose", "frugal_rl.run.composing")
DECODING = (
    "frugal_rl.observation.decoder",
    "frugal_rl.observation.distinct",
    "frugal_rl.observation.mirror",
    "frugal_rl.observation.untraced",
)  # with the codecs' torch halves the side of the observation that learners read, workers never
TORCH_FREE = ("env", "spec", "sim", "rules", "levels", "vec_env")


def modules(*packages: str) -> Iterator[tuple[str, Path]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(p for p in parts if p != "__init__"), path


@cache
def imports(path: Path) -> frozenset[str]:
    """Names of the modules that a file imports; type-checking imports do not count."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module}
    return frozenset(found)


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_core_rooms_import_only_what_lies_below_them(room):
    for name, path in modules("frugal_rl"):
        if not within(name, room):
            continue
        ours = {i for i in imports(path) if within(i, "frugal_rl")}
        wrong = {i for i in ours if not any(within(i, allowed) for allowed in ARROWS[room])}
        assert not wrong, f"{name} imports {sorted(wrong)}"


def test_storage_and_memory_do_not_know_the_trainer():
    for name, path in modules("frugal_rl"):
        if any(within(name, f"frugal_rl.{room}") for room in ("memory", "store", "vec_env")):
            above = ("frugal_rl.learn", "frugal_rl.report", "frugal_rl.sb3")
            wrong = {i for i in imports(path) if any(within(i, a) for a in above)}
            assert not wrong, f"{name} imports {sorted(wrong)}"


def test_the_core_knows_no_guest():
    for name, path in modules("frugal_rl"):
        wrong = {i for i in imports(path) if i.split(".")[0] in (*GUESTS, "npp_rl", "scripts")}
        assert not wrong, f"{name} imports {sorted(wrong)}"


@pytest.mark.parametrize("guest", [*GUESTS, "npp_rl"])
def test_guests_do_not_know_each_other(guest):
    allowed = {guest} | ({"nclone"} if guest == "npp_rl" else set())
    for name, path in modules(guest):
        wrong = {
            i
            for i in imports(path)
            if i.split(".")[0] in (*GUESTS, "npp_rl", "scripts") and i.split(".")[0] not in allowed
        }
        assert not wrong, f"{name} imports {sorted(wrong)}"


@pytest.mark.parametrize("guest", GUESTS)
def test_simulator_rooms_import_no_torch(guest):
    for name, path in modules(guest):
        room = name.split(".")[1] if "." in name else ""
        if room in TORCH_FREE:
            wrong = {i for i in imports(path) if i.split(".")[0] in ("torch", "stable_baselines3")}
            assert not wrong, f"{name} imports {sorted(wrong)}"


def test_observation_and_workers_import_no_torch():
    for name, path in modules("frugal_rl"):
        if name in DECODING or name.endswith("_torch"):
            continue
        if within(name, "frugal_rl.observation") or within(name, "frugal_rl.vec_env"):
            wrong = {i for i in imports(path) if i.split(".")[0] in ("torch", "stable_baselines3")}
            assert not wrong, f"{name} imports {sorted(wrong)}"


def test_only_the_report_talks_to_wandb():
    for name, path in modules(*CODE):
        if not within(name, "frugal_rl.report"):
            assert not {i for i in imports(path) if i.split(".")[0] == "wandb"}, name


def test_hydra_is_read_at_one_door():
    for name, path in modules(*CODE):
        if name not in DOOR and not name.startswith("scripts"):
            wrong = {i for i in imports(path) if i.split(".")[0] in ("hydra", "omegaconf")}
            assert not wrong, f"{name} imports {sorted(wrong)}"


def test_no_module_reads_the_environment():
    allowed = ("frugal_rl.run.compose", "frugal_rl.cli", "frugal_rl.report", "frugal_rl.memory")
    allowed += ("frugal_rl.run.probe",)  # hands it on to a child process
    allowed += ("frugal_rl.threads",)  # OpenMP is told nowhere else
    allowed += ("frugal_rl.kernel_files",)  # children find the folder of kernels there
    for name, path in modules("frugal_rl", *GUESTS, "npp_rl"):
        if not any(within(name, a) for a in allowed):
            text = path.read_text()
            assert "os.environ" not in text, name
            assert "getenv" not in text, name


def test_module_names_mean_something():
    for name, _ in modules(*CODE):
        last = name.split(".")[-1]
        assert last not in FORBIDDEN_NAMES, name
        assert not last.endswith("_v2"), name


def test_files_are_small():
    long = {
        name: lines
        for name, path in modules(*CODE, "tests", "benchmarks")
        if (lines := len(path.read_text().splitlines())) > MAX_FILE_LINES
    }
    assert not long


def test_functions_are_small():
    long = {}
    for name, path in modules(*CODE):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (body[-1].end_lineno - body[0].lineno + 1) if body else 0
                if lines > MAX_FUNCTION_LINES:
                    long[f"{name}.{node.name}"] = lines
    assert not long


def test_tests_are_no_packages():
    assert not list((ROOT / "tests").rglob("__init__.py"))
