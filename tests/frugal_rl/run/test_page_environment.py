"""docs/add_an_environment.md, followed to the letter in an empty folder."""

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from frugal_rl.memory.plan import draw_up
from frugal_rl.observation.decoder import resolve_twin
from frugal_rl.run.compose import compose_run

ROOT = Path(__file__).resolve().parents[3]
FILE = re.compile(r"^```(?:python|yaml)\n# (?P<path>my_env/[^:\s]+).*?\n.*?^```", re.DOTALL | re.M)
WORDS = ["plugins=[my_env]", "env=corridor"]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The files of the page, each where its first line says."""
    page = (ROOT / "docs" / "add_an_environment.md").read_text()
    for found in FILE.finditer(page):
        path = tmp_path / found["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found[0].partition("\n")[2].removesuffix("```"))
    (tmp_path / "my_env" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    resolve_twin.cache_clear()
    yield tmp_path
    for name in [n for n in sys.modules if n.partition(".")[0] == "my_env"]:
        del sys.modules[name]
    resolve_twin.cache_clear()


def test_the_page_has_all_files_that_it_names(package):
    page = (ROOT / "docs" / "add_an_environment.md").read_text()
    named = set(re.findall(r"^(my_env/\S+)", page, re.M))
    there = {str(p.relative_to(package)) for p in package.rglob("*") if p.is_file()}
    assert named <= there
    assert len(there) == 6


def test_the_environment_keeps_its_contracts(package, capsys):
    runpy.run_path(str(package / "my_env" / "check.py"))
    assert capsys.readouterr().out == "the same episodes, whatever runs them\n"


def test_both_halves_of_its_derived_field_agree(package):
    spec = importlib.import_module("my_env.spec")
    screens = np.random.default_rng(0).integers(0, 2, (5, spec.SIDE, spec.SIDE), dtype=np.uint8)
    ours = spec.lit({"screen": screens}, None)
    np.testing.assert_array_equal(ours, spec.lit_torch({"screen": torch.tensor(screens)}, None))


def test_its_plan_counts_what_it_says_and_an_id_for_each_map(package):
    run = compose_run([*WORDS, "algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=32"])
    parts = {p.name: p.ram_bytes for p in draw_up(run).parts}

    assert (parts["simulators"], parts["levels"]) == (4 * 4096, 8 * 4096)
    assert parts["rollout: levels_id"] < 4 * 9 * 8
    assert "rollout: map" not in parts
    assert "rollout: lit" not in parts


@pytest.mark.slow
def test_it_trains_from_the_command_line_of_the_page(package):
    few = ["algo.total_steps=2048", "evaluation.episodes=2", "tracking=disabled"]
    command = [sys.executable, "-m", "frugal_rl", "train", *WORDS, *few]
    environ = {"PYTHONPATH": f"{package}:{ROOT}", "PATH": "", "HOME": str(package)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(package.glob("runs/corridor/*/*/checkpoints/last.pt"))
