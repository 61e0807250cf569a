"""Representations are checked on play, and each saving runs alone."""

import subprocess
from contextlib import nullcontext

import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory.savings import BY_NAME, filled
from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.report import ablation
from frugal_rl.report.ablation import SINGLE, AblationOptions, ablate, wanted
from frugal_rl.report.files import write_json
from frugal_rl.report.results import RunResult
from frugal_rl.report.storage import StorageOptions, verify_storage
from frugal_rl.run.compose import compose_run
from frugal_rl.run.digest import parameter_digest
from frugal_rl.run.lock import locked

RUN = ["env=toy", "tracking=disabled"]


def test_every_lossless_representation_of_the_toy_is_exact_on_play():
    checks = verify_storage(compose_run(RUN), StorageOptions(steps=40))

    assert {(c.field, c.representation) for c in checks} >= {
        ("action_mask", "bits"), ("walls", "interned"), ("picture", "derived"), ("speed", "half"),
    }  # fmt: skip
    assert all(c.passed for c in checks)
    assert all(c.largest_error == 0 for c in checks if c.label == "lossless")
    assert any(c.largest_error > 0 for c in checks if c.label == "precision")


def test_only_observed_fields_of_nclone_are_checked_and_all_of_them_pass():
    run = compose_run(["env=nclone", "tracking=disabled"])
    checks = verify_storage(run, StorageOptions(steps=5, envs=2))

    assert {"tile_window", "hazards"} <= {c.field for c in checks}
    assert "tiles" not in {c.field for c in checks}
    assert all(c.passed for c in checks)


def test_a_representation_that_loses_a_bit_is_found(monkeypatch):
    def lossy(self, values):
        flags = values.astype(bool).copy()
        flags[..., 0] = False
        return np.packbits(flags, axis=-1)

    monkeypatch.setattr(BitCodec, "encode", lossy)
    checks = verify_storage(compose_run(RUN), StorageOptions(steps=40))

    assert [c.field for c in checks if not c.passed] == ["action_mask"]


def test_the_size_of_a_micro_batch_follows_the_minibatch():
    pieces = BY_NAME["micro-batches"]

    assert filled(pieces, 1024, 4) == ("memory.micro_batch=256",)
    assert filled(pieces, 64, 8) == ("memory.micro_batch=32",)
    assert filled(pieces, 20, 8) == ("memory.micro_batch=20",)


def test_a_mistyped_saving_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"only=gather is no saving; did you mean 'gather by"):
        wanted(AblationOptions(only=("gather",)))


def test_every_switch_that_baseline_turns_off_has_its_own_row():
    words = {w for saving in SINGLE for w in saving.words}
    off = {"internal_observations", "frame_stack", "level_data", "buffers", "graphs", "rendering",
           "animation", "shuffle", "allocator", "library_pages", "storage"}  # fmt: skip

    assert off <= {w.split("=")[0].removeprefix("memory.") for w in words}
    assert len({saving.name for saving in SINGLE}) == len(SINGLE)
    assert SINGLE[-1].words == ("memory=lossless",)


def test_the_ablation_says_which_savings_leave_learning_unchanged(tmp_path, monkeypatch):
    """Training is replaced by folders as it leaves them behind; the slow test below trains."""

    def trained(words, seed, at, config_dir):
        at.mkdir(parents=True)
        if "memory.storage=half" in words:
            raise ConfigError("half is not possible here.")
        write_json(at / "run.json", {"config": {}, "overrides": list(words)})
        write_json(
            at / "report.json",
            {"num_steps": 9, "memory/peak_bytes": 1 << 20, "steps_per_second": 10.0},
        )
        (at / "metrics.jsonl").touch()
        return RunResult.read(at)

    monkeypatch.setattr(ablation, "_train", trained)
    only = ("gather by index", "half precision storage", "bfloat16 arithmetic")
    options = AblationOptions(out=str(tmp_path), only=only)
    run = compose_run(RUN)
    paths = ablate(run, options, lambda at: "b" if "bfloat16" in str(at) else "a")
    text = paths[0].read_text()

    assert "| gather by index | lossless | - | - | 1 | 10 | - | bit for bit |" in text
    assert "| bfloat16 arithmetic | precision | - | - | 1 | 10 | - | no |" in text
    assert "| half precision storage | precision | - | - | - | - | - | impossible here |" in text
    assert "half is not possible here." in text


def test_a_row_that_was_killed_is_trained_anew_and_one_that_still_trains_is_left(
    tmp_path, monkeypatch
):
    seen = []

    def run(command, **options):
        seen.append(sorted(p.name for p in at.iterdir()) if at.is_dir() else None)
        return subprocess.CompletedProcess(command, 1, "", "ConfigError: enough")

    monkeypatch.setattr(ablation.subprocess, "run", run)
    at = tmp_path / "row"
    at.mkdir()
    (at / "left").touch()
    for writes in (nullcontext(), locked(at)):
        with writes, pytest.raises(ConfigError, match="enough"):
            ablation._train([], 0, at, "")
    assert seen == [None, ["run.lock"]]


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_run_that_was_asked_to_stop_is_no_row(interrupted, tmp_path, monkeypatch):
    """It ended with 0 and wrote a report; its numbers are those of half a run."""
    at, trained = tmp_path / "row", []

    def run(command, **options):
        trained.append(command)
        at.mkdir(exist_ok=True)
        write_json(at / "run.json", {"config": {}, "overrides": ["seed=0"]})
        write_json(at / "report.json", {"num_steps": 9, "interrupted": interrupted})
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(ablation.subprocess, "run", run)
    for _ in range(2):
        with pytest.raises(ConfigError, match="asked to stop") if interrupted else nullcontext():
            ablation._train([], 0, at, "")
    assert len(trained) == (2 if interrupted else 1)


def test_a_row_says_nothing_twice_that_was_typed_as_well(tmp_path, monkeypatch):
    asked = []

    def trained(words, seed, at, config_dir):
        asked.append(words)
        raise ConfigError("enough")

    monkeypatch.setattr(ablation, "_train", trained)
    run = compose_run([*RUN, "vec=serial", "memory=parallel"])
    options = AblationOptions(out=str(tmp_path))
    ablation._cell(run, options, "one", "lossless", ("memory=baseline", "vec=batch"), str)

    keys = [word.partition("=")[0] for word in asked[0]]
    assert len(set(keys)) == len(keys)
    assert asked[0][-2:] == ["memory=baseline", "vec=batch"]


@pytest.mark.slow
def test_an_ablation_of_the_toy_trains_and_lossless_savings_change_no_bit(tmp_path):
    run = compose_run(
        [*RUN, "algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=64", "algo.total_steps=256"]
    )
    options = AblationOptions(out=str(tmp_path), only=("gather by index", "all lossless ones"))
    text = ablate(run, options, parameter_digest)[0].read_text()

    assert text.count("bit for bit |") == 2
