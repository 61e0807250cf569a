"""The end of a run: results beside random play, memory, and commands that can be pasted."""

import shlex
from dataclasses import replace

import pytest

import frugal_rl
from frugal_rl.report.closing import next_commands, outcome, scores
from frugal_rl.run.compose import compose_run

SUMMARY = {
    "num_steps": 4096,
    "steps_per_second": 1234.5,
    "interrupted": True,
    "memory/peak_bytes": 500 * 2**20,
    **{
        f"{who}/{name}": value
        for who in ("eval", "random")
        for name, value in {
            "success": 0.5, "success_low": 0.4, "success_high": 0.6,
            "return": 1.5, "length": 7.0, "episodes": 32.0,
        }.items()
    },
}  # fmt: skip


def test_the_policy_stands_beside_random_play():
    assert scores(SUMMARY).row_count == 2


def test_planned_stands_beside_held():
    plan = frugal_rl.plan("env=toy")

    lines = list(outcome(compose_run(["env=toy"]), plan, SUMMARY))

    assert any("planned, 500.0 MiB held" in line for line in lines)
    assert any(line == "results: runs/latest" for line in lines)


def test_every_next_command_composes(tmp_path):
    folder = tmp_path / "a run [1]"
    (folder / "wandb" / "offline-run-1").mkdir(parents=True)
    run = replace(compose_run(["env=nclone", "env.levels=[walk,jump]"]), run_dir=str(folder))

    commands = [shlex.split(line.split(":", 1)[1]) for line in next_commands(run, SUMMARY)]

    assert [c[1] for c in commands] == [
        "scripts/play.py", "scripts/report.py", "scripts/train.py", "sync"
    ]  # fmt: skip
    again = compose_run(commands[2][2:])
    assert again.resume == str(folder)
    assert list(again.env.levels) == ["walk", "jump"]


def test_curves_of_tensorboard_are_opened_by_a_command(tmp_path):
    run = compose_run(["env=toy", "tracking.tensorboard=true"], check=False)
    run = replace(run, run_dir=str(tmp_path / "a b"))

    (line,) = (x for x in next_commands(run, SUMMARY) if x.startswith("curves:"))

    words = shlex.split(line.removeprefix("curves:"))
    assert words[1:] == ["--logdir", str(tmp_path / "a b" / "tensorboard")]


@pytest.mark.parametrize(("display", "more"), [(":987", ["video=film.mp4"]), ("far:0", [])])
def test_without_a_window_the_policy_is_filmed(tmp_path, monkeypatch, display, more):
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    run = replace(compose_run(["env=nclone"]), run_dir=str(tmp_path))

    play = next(iter(next_commands(run, SUMMARY)))

    assert shlex.split(play)[4:] == [f"checkpoint={tmp_path}", *more]
