"""Every number reaches `metrics.jsonl`; W&B's offline run holds what was asked and measured."""

import json
import os
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from frugal_rl.errors import DataError, DiskError, FolderInUseError
from frugal_rl.memory.meter import MemoryMeter
from frugal_rl.memory.part import Phase
from frugal_rl.memory.plan import draw_up
from frugal_rl.report.files import read_json, read_metrics, write_json
from frugal_rl.report.log import Log, MetricsFile, open_log
from frugal_rl.run.compose import compose_run
from frugal_rl.testing.faults import FullDisk, disk, short_writes

WORDS = ["env=toy", "algo.num_envs=6", "memory.micro_batch=5", "seed=3"]


@pytest.fixture
def run_in(tmp_path, monkeypatch):
    def make(*words: str):
        from dataclasses import replace

        return replace(compose_run([*WORDS, *words]), run_dir=str(tmp_path / "run"))

    monkeypatch.delenv("WANDB_MODE", raising=False)
    return make


def inspect(folder: Path) -> list[dict]:
    """The records of the offline run in a run folder, as W&B's own reader prints them."""
    (log,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    command = [str(Path(sys.executable).parent / "wandb"), "leet", "inspect", "--json", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_an_offline_run_read_back_holds_configuration_overrides_prediction_and_measurement(run_in):
    run = run_in()
    plan = draw_up(run)
    with MemoryMeter() as meter, open_log(run, plan, meter) as log:
        with meter.phase(Phase.rollout):
            pass
        log.metrics(128, {"train/loss": 0.5})
        log.summary({"eval/success": 1.0})
    text = json.dumps(inspect(Path(run.run_dir)))

    for word in WORDS:
        assert word in text
    for key in ("micro_batch", "plan/ram_bytes", "memory/peak_bytes", "memory/rollout_peak_bytes",
                "global_step", "train/loss", "eval/success", "choices"):  # fmt: skip
        assert key in text, key
    assert str(plan.ram_bytes) in text


def test_staged_files_of_an_offline_run_lie_in_its_folder(run_in):
    run = run_in()
    with open_log(run, draw_up(run)):
        assert os.environ["WANDB_DATA_DIR"] == str(Path(run.run_dir, "wandb").absolute())


def test_lines_carry_the_step_and_what_is_held(run_in):
    run = run_in("tracking=disabled")
    with MemoryMeter() as meter, open_log(run, draw_up(run), meter) as log:
        with meter.phase(Phase.rollout):
            pass
        log.metrics(10, {"train/loss": 1.5, "episode/return": float("nan")})
        log.metrics(20, {"train/loss": 1.0})
    first, second = read_metrics(Path(run.run_dir))

    assert (first["step"], first["train/loss"], first["episode/return"]) == (10, 1.5, None)
    assert second["step"] == 20
    assert first["memory/held_bytes"] > 1 << 20
    assert first["memory/rollout_peak_bytes"] > 1 << 20


def test_the_run_folder_says_what_was_asked_and_what_was_planned(run_in):
    run = run_in("tracking=disabled")
    plan = draw_up(run)
    with open_log(run, plan) as log:
        log.summary({"eval/success": 0.5})
    folder = Path(run.run_dir)

    assert read_json(folder / "run.json")["overrides"] == [*WORDS, "tracking=disabled"]
    assert read_json(folder / "run.json")["config"]["memory"]["micro_batch"] == 5
    assert re.match(r"\d+ cores of .+, [\d.]+ GiB", read_json(folder / "run.json")["machine"])
    resolved = yaml.safe_load((folder / "cfg.resolved.yaml").read_text())
    assert resolved["memory"]["micro_batch"] == 5
    assert read_json(folder / "plan.json")["ram_bytes"] == plan.ram_bytes
    assert read_json(folder / "report.json")["eval/success"] == 0.5


class Broken:
    """A sink on a full disk."""

    name = "metrics.jsonl"

    def __init__(self) -> None:
        self.calls = 0

    def metrics(self, step, values):
        self.calls += 1
        raise OSError(28, "No space left on device")

    summary = file = metrics

    def close(self):
        pass


def test_a_full_disk_is_reported_once_and_the_run_goes_on(run_in):
    broken = Broken()
    log = Log([broken], draw_up(run_in("tracking=disabled")))

    with pytest.warns(UserWarning, match=r"metrics\.jsonl is not written.*No space left"):
        log.metrics(0, {"loss": 0.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log.metrics(1, {"loss": 0.0})

    assert broken.calls == 2


def test_a_file_of_holes_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "metrics.jsonl").open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(DataError, match=r"metrics\.jsonl is not read: .* are free"):
        next(read_metrics(tmp_path))


def test_damaged_lines_are_skipped_and_counted(tmp_path):
    lines = b'{"step": 1}\n{"st\n\xff\n[1]\n{"x": 1}\n{"step": 3}\n{"ste'
    (tmp_path / "metrics.jsonl").write_bytes(lines)
    with pytest.warns(UserWarning, match="5 damaged lines were skipped"):
        assert [m["step"] for m in read_metrics(tmp_path)] == [1, 3]


def test_a_torn_last_line_is_cut_off_before_a_resumed_run_writes_on(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n' + '{"step": 2, "x": "' + "a" * 200_000)
    with pytest.warns(UserWarning, match="torn line"):
        lines = MetricsFile(tmp_path)
    lines.metrics(3, {})
    lines.close()
    assert [m["step"] for m in read_metrics(tmp_path)] == [1, 3]


def test_short_writes_go_on_until_the_line_is_whole(tmp_path):
    lines = MetricsFile(tmp_path)
    with short_writes(at_most=3):
        lines.metrics(1, {"x": 2.0})
        lines.metrics(2, {"x": 3.0})
    lines.close()
    assert [m["x"] for m in read_metrics(tmp_path)] == [2.0, 3.0]


@pytest.mark.parametrize("moment", range(6))
def test_a_disk_that_is_full_for_a_while_leaves_whole_lines_only(moment, tmp_path):
    lines = MetricsFile(tmp_path)
    with short_writes(at_most=20), disk(FullDisk(moment, moment + 3)):
        for step in range(8):
            with suppress(OSError):
                lines.metrics(step, {"x": 1.0})
    lines.close()
    steps = [m["step"] for m in read_metrics(tmp_path)]
    assert steps == sorted(steps)
    assert len(steps) >= 5
    assert (tmp_path / "metrics.jsonl").read_bytes().endswith(b"\n")


def test_a_second_run_in_one_folder_is_refused_in_words(run_in):
    run = run_in("tracking=disabled")
    with open_log(run, draw_up(run)) as log:
        log.metrics(1, {})
        second, us = open_log(run, draw_up(run)), f"process {os.getpid()} on"
        with pytest.raises(FolderInUseError, match=us), second:
            pass
    with open_log(run, draw_up(run)) as log:  # it is free again
        log.metrics(2, {})
    assert [m["step"] for m in read_metrics(Path(run.run_dir))] == [1, 2]


def test_a_folder_that_cannot_be_written_to_is_refused_in_words(run_in, tmp_path):
    from dataclasses import replace

    (tmp_path / "file").write_text("no folder")
    run = replace(run_in("tracking=disabled"), run_dir=str(tmp_path / "file" / "run"))
    words = r"cannot be written to.*hydra\.run\.dir"
    with pytest.raises(DiskError, match=words), open_log(run, draw_up(run)):
        pass


def test_a_folder_that_is_no_run_is_refused_in_words(tmp_path):
    with pytest.raises(DataError, match=r"has no metrics\.jsonl: is it a run folder"):
        list(read_metrics(tmp_path))


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_json(tmp_path / "a.json", {"x": 1})
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))

    with pytest.raises(OSError, match="killed"):
        write_json(tmp_path / "a.json", {"x": 2})

    assert read_json(tmp_path / "a.json") == {"x": 1}


def test_a_resumed_run_keeps_its_id(run_in):
    first = run_in()
    with open_log(first, draw_up(first)):
        pass
    known = Path(first.run_dir, "wandb_id.txt").read_text()
    resumed = run_in(f"resume={first.run_dir}/checkpoints/last.pt")

    from frugal_rl.report.wandb_sink import run_id

    assert run_id(resumed) == known.strip()
