"""A run that goes on in its own folder does some steps again: their numbers stand there once."""

import json

import pytest

from frugal_rl.report.files import METRICS, read_metrics
from frugal_rl.report.live import LiveRun
from frugal_rl.run.disk import AppendedLines
from frugal_rl.testing.quiet_runs import quiet_run

WORDS = ("env=toy", "tracking=disabled", "algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16",
         "algo.n_epochs=1", "algo.total_steps=192", "evaluation.episodes=1",
         "evaluation.every_steps=64", "evaluation.num_envs=1", "hardware.threads=1",
         "hardware.device=cpu", "agent.actor=[4]", "agent.critic=[4]",
         "checkpoint_every_steps=64")  # fmt: skip


def learned(folder):
    """Steps and what does not depend on the clock, line by line."""
    return [
        {k: v for k, v in line.items() if k in ("step", "train/loss", "eval/return")}
        for line in read_metrics(folder)
    ]


@pytest.fixture
def further(tmp_path):
    """A run that was killed behind its last checkpoint, at 128 steps, in the midst of a line."""
    quiet_run(WORDS, tmp_path / "a")
    for name in ("last.pt", "step_000000000192.pt"):
        (tmp_path / "a" / "checkpoints" / name).unlink()
    with (tmp_path / "a" / METRICS).open("a") as file:
        file.write('{"step": 2')
    return tmp_path / "a"


def test_steps_that_are_done_again_stand_there_once(further, tmp_path):
    quiet_run(WORDS, tmp_path / "whole")
    live = LiveRun(further)
    live.state()
    with pytest.warns(UserWarning, match="torn line"):
        quiet_run(WORDS, further, resume=str(further))
    assert learned(further) == learned(tmp_path / "whole")
    steps = [line["step"] for line in read_metrics(further) if "train/loss" in line]
    shown = live.state()["curves"]["train/loss"]
    assert [step for step, _ in shown] == steps == [32, 64, 96, 128, 160, 192]


def test_a_run_that_is_over_and_goes_further_keeps_all_its_lines(tmp_path):
    quiet_run(WORDS, tmp_path / "a")
    before = learned(tmp_path / "a")
    quiet_run((*WORDS, "algo.total_steps=256"), tmp_path / "a", resume=str(tmp_path / "a"))
    after = learned(tmp_path / "a")
    assert after[: len(before)] == before
    assert after[-2]["step"] == 256


def test_lines_are_dropped_from_the_end_only(tmp_path):
    lines = AppendedLines(tmp_path / "lines")
    for step in (1, 2, 9, 3, 4, 5):
        lines.append(json.dumps(step))
    lines.drop_behind(lambda line: int(line) < 4)
    lines.append("7")
    lines.close()
    assert (tmp_path / "lines").read_text().split() == ["1", "2", "9", "3", "7"]
