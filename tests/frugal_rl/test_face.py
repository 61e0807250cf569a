"""The public names: few, lazy, documented, typed, and enough to work without Hydra."""

import doctest
import inspect
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType

import pytest

import frugal_rl

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "numpy", "numba", "gymnasium", "hydra", "stable_baselines3")


def fresh(code: str) -> str:
    """What `code` prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, frugal_rl; print([m for m in {HEAVY} if m in sys.modules])"

    assert fresh(code).strip() == "[]"


def test_the_face_is_small_and_complete():
    assert len(frugal_rl.__all__) <= 20
    assert sorted(frugal_rl.__all__) == frugal_rl.__all__
    assert set(frugal_rl.__all__) == set(dir(frugal_rl)) - {"__version__"}


@pytest.mark.parametrize("name", frugal_rl.__all__)
def test_a_public_name_is_documented_and_typed(name):
    value = getattr(frugal_rl, name)

    assert inspect.getdoc(value)
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        assert signature.return_annotation is not inspect.Signature.empty
        for parameter in signature.parameters.values():
            assert parameter.annotation is not inspect.Parameter.empty, parameter.name
    else:
        assert is_dataclass(value) or inspect.isclass(value)


@pytest.mark.parametrize("name", frugal_rl.__all__)
def test_a_public_name_has_an_example_that_holds(name):
    value = getattr(frugal_rl, name)
    found = doctest.DocTestFinder(recurse=False).find(value, name, globs=vars(module_of(value)))
    runner = doctest.DocTestRunner()

    assert any(test.examples for test in found)
    for test in found:
        runner.run(test)
    assert runner.failures == 0


def module_of(value: object) -> ModuleType:
    return sys.modules[inspect.unwrap(value).__module__]


@pytest.mark.parametrize("name", frugal_rl.__all__)
def test_a_public_name_stands_in_an_example_or_a_page(name):
    pages = [*(ROOT / "examples").glob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]

    assert any(name in page.read_text() for page in pages)


def test_a_name_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(
        AttributeError, match=r"frugal_rl has no 'ReplayBufer'; it offers .*compose"
    ):
        frugal_rl.ReplayBufer  # noqa: B018


def test_compose_is_the_run_that_the_command_line_describes():
    run = frugal_rl.compose("env=toy memory=parallel algo.num_envs=3 seed=7")

    assert (run.env.name, run.memory.profile) == ("toy", "parallel")
    assert (run.algo.num_envs, run.seed) == (3, 7)
    assert Path(run.run_dir).parts[:3] == ("runs", "toy", "parallel")


def test_plan_refuses_with_the_plan_at_hand():
    with pytest.raises(frugal_rl.MemoryBudgetError, match=r"memory\.budget_gib") as refused:
        frugal_rl.plan("env=toy memory.budget_gib=0.01")

    assert refused.value.plan.verdict == "does not fit"


def test_train_evaluate_and_load_work_without_hydra(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = frugal_rl.compose(
        "env=toy algo.num_envs=8 algo.n_steps=16 algo.batch_size=64 algo.total_steps=128 "
        "evaluation.episodes=8 tracking=disabled",
        run_dir=tmp_path / "run",
    )

    summary = frugal_rl.train(run)
    results = frugal_rl.evaluate(summary["run_dir"])
    with frugal_rl.load_policy(summary["run_dir"]) as player:
        step = player.step(player.choose())

    assert summary["num_steps"] == 128
    assert set(results) == {"policy", "random"}
    assert step.reward.shape == (1,)


def test_the_package_can_be_run_as_a_module():
    words = [sys.executable, "-m", "frugal_rl", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)

    assert "train" in done.stdout


@pytest.mark.parametrize("package", ["frugal_rl", "nclone", "npp_rl", "mine_rl_npv", "fighting"])
def test_packages_tell_type_checkers_that_they_are_typed(package):
    assert (ROOT / package / "py.typed").is_file()
