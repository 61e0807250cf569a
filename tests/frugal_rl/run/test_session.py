"""From the words that a user types to a run folder, and from there to an evaluation."""

import json
from dataclasses import replace

import pytest
import torch
import yaml

from frugal_rl.errors import CheckpointError, ConfigError
from frugal_rl.learn.gauge import Gauge
from frugal_rl.learn.trace import trace
from frugal_rl.memory.auto import prepare
from frugal_rl.run import session
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.probe import measured_update
from frugal_rl.run.session import evaluate_saved, train_planned, with_notes

WORDS = (
    "env=toy", "tracking=disabled", "algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=64",
    "algo.total_steps=512", "evaluation.episodes=16", "evaluation.num_envs=8",
    "hardware.threads=1", "hardware.device=cpu",
)  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run, plan = prepare(replace(compose_run(WORDS), run_dir=str(folder)))
    train_planned(run, plan)
    return folder


def asked(folder, *words):
    return replace(compose_run(["env=toy", *words], "evaluate"), run_dir=str(folder))


def test_an_environment_that_changes_the_folder_moves_no_run(tmp_path, monkeypatch):
    led = []
    monkeypatch.setattr(session, "_lead", lambda run, plan, ranks: led.append(run.run_dir))
    monkeypatch.chdir(tmp_path)
    train_planned(replace(compose_run(WORDS), run_dir="runs/a"), None)
    assert led == [str(tmp_path / "runs" / "a")]


def test_a_run_folder_holds_configuration_plan_numbers_and_checkpoint(trained):
    names = {p.name for p in trained.iterdir()}
    assert {"cfg.resolved.yaml", "plan.json", "metrics.jsonl", "summary.json"} <= names
    resolved = yaml.safe_load((trained / "cfg.resolved.yaml").read_text())
    assert resolved["algo"]["num_envs"] == 8
    assert load_checkpoint(trained)["config"] == resolved
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "train/loss" in line] == [128, 256, 384, 512]
    assert all("memory/held_bytes" in line for line in lines)


def test_a_saved_policy_is_evaluated_beside_random_play(trained, tmp_path):
    results = evaluate_saved(str(trained), asked(tmp_path, f"checkpoint={trained}"))
    assert set(results) == {"policy", "random"}
    assert results["policy"].score.episodes == 16
    written = json.loads((tmp_path / "evaluation.json").read_text())
    assert written["random"]["eval/success"] == results["random"].score.means["success"]
    summary = json.loads((trained / "summary.json").read_text())
    assert summary["eval/success"] == results["policy"].score.means["success"]


def test_words_typed_at_evaluation_change_the_saved_run(trained, tmp_path):
    words = (f"checkpoint={trained}", "evaluation.episodes=24", "env.levels=2")
    results = evaluate_saved(str(trained), asked(tmp_path, *words))
    assert results["policy"].score.episodes == 24


def test_another_environment_than_the_checkpoints_is_refused_in_words(trained, tmp_path):
    with pytest.raises(ConfigError, match="memory"):
        evaluate_saved(str(trained), asked(tmp_path, f"checkpoint={trained}", "memory=baseline"))


def test_weights_that_do_not_fit_the_network_are_refused_in_words(trained, tmp_path):
    content = load_checkpoint(trained)
    content["config"]["agent"]["actor"] = [32]
    save_checkpoint(tmp_path / "last.pt", content)
    with pytest.raises(CheckpointError, match="do not fit agent=mlp"):
        evaluate_saved(str(tmp_path), asked(tmp_path, f"checkpoint={tmp_path}"))


@pytest.mark.parametrize("find", [pytest.param(measured_update, marks=pytest.mark.slow), trace])
def test_weights_are_counted_exactly_and_a_cost_per_sample_is_found(trained, find):
    large = ("algo.n_steps=512", "algo.batch_size=4096")
    probe = find(compose_run([*WORDS, *large]))
    weights = load_checkpoint(trained)["learner"]["optimizer"]["moments"]["exp_avg"].nbytes
    assert probe.parameter_bytes == probe.gradient_bytes == weights
    assert probe.optimizer_bytes == 2 * weights
    assert probe.traced is (find is trace)
    assert 4 * 4 * 64 < probe.bytes_per_sample < 10 * 4 * 4 * 64  # four layers of 64 float32


def test_a_probe_that_breaks_off_says_so(monkeypatch):
    monkeypatch.setattr("frugal_rl.memory.child.sys.executable", "/bin/false")
    with pytest.raises(ConfigError, match="Measuring the learner fails: nothing was said"):
        measured_update(compose_run(WORDS))


@pytest.mark.slow
def test_a_run_that_the_probe_refuses_is_refused_in_the_same_words():
    with pytest.raises(ConfigError, match=r"^agent\.read names \['nothing'\]"):
        measured_update(compose_run([*WORDS, "agent.read=[nothing]"]))


@pytest.mark.parametrize("width", [1 << 12, 1 << 14])
def test_the_gauge_finds_the_bytes_per_sample_of_a_known_allocation(width):
    def prepared(samples):
        return lambda: torch.ones(samples, width)

    line = Gauge(torch.device("cpu")).line(prepared, 8, 1 << 14)
    assert line.per_sample == pytest.approx(4 * width, rel=0.1)


class OddError(Exception):
    """Asks for more than words."""

    def __init__(self, words, code):
        super().__init__(words)
        self.code = code


def test_an_error_is_handed_on_with_its_notes():
    error = OddError("The pump is broken", 7)
    error.add_note("In step 41 of the environments.")

    told = with_notes(error)

    assert f"{type(told).__name__}: {told}" == (
        "OddError: The pump is broken. In step 41 of the environments."
    )
