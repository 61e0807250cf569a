"""What is planned is what a real run holds; a real run that grows too large stops in order."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.memory.auto import choose, prepare
from frugal_rl.memory.meter import MemoryMeter
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.watchdog import Watchdog
from frugal_rl.report.files import read_json
from frugal_rl.report.log import open_log
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.probe import probe_update
from frugal_rl.run.trainer import train

TOY = ["env=toy", "tracking=disabled", "algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=64"]


def test_an_overrun_is_stopped_with_the_checkpoint_intact(tmp_path):
    run = replace(compose_run([*TOY, "algo.total_steps=100000"]), run_dir=str(tmp_path))
    plan = draw_up(run)
    with MemoryMeter() as meter, open_log(run, plan, meter) as log:
        limit = meter.held_bytes() // 2
        watch = Watchdog(meter, limit, "memory.budget_gib=0.01", 0.95, plan.ram_bytes)
        with pytest.raises(MemoryBudgetError, match=r"memory\.budget_gib=0\.01.*resume="):
            train(run, log, phase=meter.phase, watch=watch)
    content = load_checkpoint(tmp_path)

    assert content["num_steps"] == 8 * 16
    assert not list(Path(tmp_path).rglob("*.part"))
    assert read_json(tmp_path / "report.json")["memory/peak_bytes"] > limit


def measured(words: list[str], folder: Path) -> tuple[float, float]:
    """Predicted and measured peak of a run in a process of its own."""
    import subprocess
    import sys

    from frugal_rl.run.compose import folder as place

    script = str(place("scripts") / "train.py")
    subprocess.run([sys.executable, script, *words, f"hydra.run.dir={folder}"], check=True)
    report = read_json(folder / "report.json")
    return report["plan/ram_bytes"], report["memory/peak_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["baseline", "lossless"])
@pytest.mark.parametrize("size", [(64, 256), (512, 1024)])
def test_the_predicted_peak_is_the_measured_peak_within_a_tenth(profile, size, tmp_path):
    envs, steps = size
    words = ["env=toy", f"memory={profile}", f"algo.num_envs={envs}", f"algo.n_steps={steps}"]
    predicted, held = measured([*words, f"algo.total_steps={2 * envs * steps}"], tmp_path)

    assert predicted == pytest.approx(held, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.62, 0.7, 0.9, 2.0])
def test_auto_stays_below_its_budget_and_its_words_reproduce_it(budget, tmp_path):
    words = [
        "env=toy", "tracking=disabled", "memory=auto", "algo.num_envs=512", "algo.n_steps=4096",
        f"memory.budget_gib={budget}", "memory.allow=[lossless,precision,capacity]",
    ]  # fmt: skip
    choice = choose(compose_run(words), probe_update)
    again = [w for w in shlex.split(choice.command)[2:] if not w.startswith("algo.total_steps")]
    samples = choice.run.algo.num_envs * choice.run.algo.n_steps

    _, held = measured([*again, f"algo.total_steps={2 * samples}"], tmp_path)

    assert held < budget * 2**30


def test_preparing_leaves_a_run_that_fits_as_it_is():
    run = compose_run(TOY)
    prepared, plan = prepare(run)

    assert prepared is run
    assert plan.fits
