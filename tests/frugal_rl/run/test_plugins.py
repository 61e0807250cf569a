"""A package of somebody else: environment, codec, network and algorithm, with nothing edited here.

`lantern_plugin/` is copied into a temporary folder, as it would lie on a user's machine.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
import torch
from rich.console import Console

import frugal_rl
from frugal_rl.errors import ConfigError
from frugal_rl.memory.plan import draw_up
from frugal_rl.observation.decoder import resolve_twin
from frugal_rl.plugins import declared, trusted
from frugal_rl.run.arguments import typed_folders
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.composing import FurtherFolders
from frugal_rl.run.search_path import folder, plugin_conf, searching
from frugal_rl.run.trainer import train
from frugal_rl.testing.codec import check_codec
from frugal_rl.testing.env import check_env

SOURCE = Path(__file__).parent / "lantern_plugin"
SIZES = "evaluation.episodes=4 evaluation.num_envs=2 tracking=disabled hardware.device=cpu"
OWN = f"env=lantern agent=lantern algo=lantern {SIZES}"
NAMED = f"plugins=[lantern] {OWN}"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package in a folder of its own, which Python looks into; forgotten afterwards."""
    home = tmp_path / "home"
    shutil.copytree(SOURCE, home, ignore=shutil.ignore_patterns("__pycache__"))
    (home / "lantern" / "__init__.py").touch()  # `tests/` may hold none
    monkeypatch.syspath_prepend(str(home))
    monkeypatch.chdir(tmp_path)
    declared.cache_clear()
    resolve_twin.cache_clear()
    yield home
    for name in [n for n in sys.modules if n.partition(".")[0] == "lantern"]:
        del sys.modules[name]
    declared.cache_clear()
    resolve_twin.cache_clear()


@pytest.fixture
def installed(package):
    """The same, as `pip install` leaves it behind: with its entry point."""
    info = package / "lantern-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lantern\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[frugal_rl.plugins]\nlantern = lantern\n")
    assert PathDistribution(info).entry_points
    declared.cache_clear()
    return package


class Silent:
    def metrics(self, step, values):
        pass

    def summary(self, values):
        pass

    def file(self, path):
        pass


def trained(words, at, *more):
    """Train without a probe, which would start processes; the run folder."""
    run = replace(compose_run([*words.split(), *more]), run_dir=str(at))
    train(run, Silent(), console=Console(file=io.StringIO()))
    return at


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def whole_life(words, folder):
    """Planned, trained, resumed; the folder of the run that was not interrupted."""
    planned = draw_up(compose_run(words.split()))
    assert any(part.name == "simulators" for part in planned.parts)
    assert any(part.name.startswith("rollout: flames") for part in planned.parts)
    half = trained(words, folder / "half", "algo.total_steps=256")
    rest = trained(words, folder / "rest", f"resume={half}")
    whole = trained(words, folder / "whole")
    one, other = (load_checkpoint(run)["learner"] for run in (rest, whole))
    assert one["blended"] == 8
    assert all(torch.equal(a, other["policy"][n]) for n, a in one["policy"].items())
    return whole


def test_a_package_named_in_plugins_is_planned_trained_resumed_and_evaluated(
    package, tmp_path, one_thread
):
    made = whole_life(NAMED, tmp_path)
    results = frugal_rl.evaluate(made, "plugins=[lantern] evaluation.episodes=4")
    assert results["policy"].score.means["return"] > 0
    assert importlib.import_module("lantern.codec_torch").calls > 0
    assert not declared()


def test_an_installed_package_needs_no_word(installed, tmp_path, one_thread):
    assert declared() == ("lantern",)
    made = whole_life(OWN, tmp_path)
    assert frugal_rl.evaluate(made, "evaluation.episodes=4")["policy"].score.means["return"] > 0
    assert importlib.import_module("lantern.codec_torch").calls > 0


def test_its_environment_and_codec_keep_the_contracts(package):
    run = compose_run(NAMED.split())
    codec = run.env.spec().by_name["flames"].codecs[0]
    check_env(run.env)
    check_codec(codec, run.env.make(0).raw()["flames"][None], (8,))
    assert run.encoding().choice["flames"] == "nibbles"


def test_a_package_that_nobody_named_is_not_trusted(package, tmp_path):
    with pytest.raises(ConfigError, match="env=lantern is no choice"):
        compose_run(OWN.split())
    made = trained(NAMED, tmp_path / "made", "algo.total_steps=64")
    with pytest.raises(ConfigError, match=r"lies outside .* Add plugins=\[package\]"):
        frugal_rl.evaluate(made)
    assert "lantern" not in trusted()


def test_a_plugin_that_python_does_not_find_is_named():
    with pytest.raises(ConfigError, match="plugins names 'nowhere_to_be_found'"):
        compose_run(["plugins=[nowhere_to_be_found]"])


def test_a_plugin_without_configurations_is_fine(package):
    shutil.rmtree(package / "lantern" / "conf")
    assert plugin_conf("lantern") is None
    assert compose_run(["plugins=[lantern]", "env=toy"]).env.name == "toy"


def test_a_plugin_cannot_replace_our_choices(package):
    toy = package / "lantern" / "conf" / "env" / "toy.yaml"
    toy.write_text("_target_: lantern.config.Lantern\nname: toy\n")
    assert type(compose_run(["plugins=[lantern]", "env=toy"]).env).__module__ != "lantern.config"


def test_hydra_learns_the_folder_only_while_it_is_searched(package):
    found = []

    class Path:
        def append(self, provider, path):
            found.append(path)

    FurtherFolders().manipulate_search_path(Path())
    assert found == []
    with pytest.raises(ConfigError):
        compose_run(["plugins=[lantern]", "env=nothing"])
    FurtherFolders().manipulate_search_path(Path())
    assert found == []


def script(name, *words, home, cwd):
    """A script in a process of its own; what it printed."""
    code = folder("scripts").parent
    env = {**os.environ, "PYTHONPATH": f"{home}{os.pathsep}{code}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(folder("scripts") / f"{name}.py"), *words]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_yaml_beside_the_command_is_found_and_checked(package, tmp_path):
    shutil.move(package / "lantern" / "conf", tmp_path / "mine")
    beside = ["--config-dir", str(tmp_path / "mine")]
    with searching([], beside[1:]):
        assert compose_run(NAMED.split()).env.name == "lantern"
        with pytest.raises(ConfigError, match="did you mean 'lantern'"):
            compose_run([*NAMED.split(), "env=lantren"])
    assert typed_folders(beside) == typed_folders([f"--config-dir={beside[1]}"]) == beside[1:]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["named", "installed"])
def test_the_scripts_serve_a_plugin(package, way, tmp_path):
    """With pip, as a user would; without a network."""
    home, words = package, NAMED.split()
    trust = ["plugins=[lantern]"]
    if way == "installed":
        home, words, trust = tmp_path / "site", OWN.split(), []
        flags = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
        command = [sys.executable, "-m", "pip", "install", *flags]
        subprocess.run([*command, "--target", str(home), str(package)], check=True)
    at = {"home": home, "cwd": tmp_path}
    assert json.loads(script("plan", *words, "format=json", **at))
    script("train", *words, "algo.total_steps=256", "hydra.run.dir=half", **at)
    script("train", *words, "resume=half", "hydra.run.dir=rest", **at)
    script("train", *words, "vec=shared_memory", "hydra.run.dir=workers", **at)
    shutil.move(home / "lantern" / "conf", tmp_path / "mine")
    beside = ["--config-dir", str(tmp_path / "mine")]
    script("train", *beside, *NAMED.split(), "hydra.run.dir=beside", **at)
    with pytest.raises(AssertionError, match="did you mean 'lantern'"):
        script("plan", *beside, *NAMED.split(), "env=lantren", **at)
    assert "return" in script("evaluate", *trust, "checkpoint=rest", **at)
