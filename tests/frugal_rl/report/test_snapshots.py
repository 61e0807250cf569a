"""Memory over time: leaks are found where they are, caches that fill are none."""

import dataclasses

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.report import snapshots as snap
from frugal_rl.report.snapshots import SnapshotOptions, judge, profile_memory, write_profile
from frugal_rl.run.compose import compose_run
from frugal_rl.testing.toy import ToyBatch

STEPS = list(range(100, 1100, 100))
KIB = 1024


def run():
    return compose_run(["env=toy", "algo.num_envs=4"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([100 * KIB] * 10, "steady"),
        ([(100 + 20 * k) * KIB for k in range(10)], "leak"),
        ([min(100 + 40 * k, 220) * KIB for k in range(10)], "steady"),
        ([(100 + k) * KIB for k in range(10)], "steady"),
        ([100 * KIB] * 4, "not known after 4 snapshots"),
    ],
    ids=["flat", "growing", "filled once", "below the floor", "too short"],
)
def test_a_leak_grows_steadily_to_the_end(values, words):
    verdict = judge("x", STEPS[: len(values)], values, floor=32 * KIB)
    assert verdict.words == words
    assert verdict.leaks == (words == "leak")


def test_growth_is_told_per_step():
    verdict = judge("x", STEPS, [1000 * k for k in range(10)], floor=0)
    assert verdict.bytes_per_step == 10.0


@pytest.mark.slow
def test_an_environment_that_leaks_is_named(monkeypatch):
    kept = []

    class Leaking(ToyBatch):
        def step(self, actions):
            kept.append(bytearray(20 * KIB))
            return super().step(actions)

    monkeypatch.setattr("frugal_rl.testing.toy.ToyBatch", Leaking)
    options = SnapshotOptions(frames=80, snapshot_every=8, counts=(1,), profile=False)
    monkeypatch.setattr(snap, "component", lambda name: "ours" if name == __file__ else "rest")

    seen = profile_memory(run(), options)

    leaking = [v.name for v in snap.verdicts(seen.snapshots) if v.leaks]
    assert "lines of: ours" in leaking
    assert "lines of: rest" not in leaking
    assert any("test_snapshots.py" in place for place, *_ in seen.grown)
    assert "LEAK in" in snap.report(run(), seen).blocks[0]


@pytest.mark.slow
def test_both_files_of_the_guide_are_written(tmp_path):
    options = SnapshotOptions(frames=25, snapshot_every=10, counts=(1, 3), out=str(tmp_path))

    seen = profile_memory(run(), options)
    paths = write_profile(run(), options, seen)

    assert [p.name for p in paths] == ["memory_profiling_report.txt", "profiling_stats.txt"]
    text = paths[0].read_text()
    for words in ("Verdict: no leak", "Snapshots", "Top allocations", "Cost of an environment"):
        assert words in text
    assert [s.step for s in seen.snapshots] == [10, 20, 25]
    assert "cumtime" in paths[1].read_text()


@pytest.mark.slow
def test_the_cost_of_one_environment_is_a_difference():
    costs = snap.measure_costs(run(), (40, 50))  # by then all maps are in the shared table
    small, large = (
        run().env.make_vec(n, run().encoding(), run().memory, run().vec, "train") for n in (1, 2)
    )
    one = sum(large.parts().values()) - sum(small.parts().values())
    assert costs[1].array_bytes - costs[0].array_bytes == 10 * one


@pytest.mark.parametrize("wrong", [{"frames": 0}, {"snapshot_every": 0}, {"counts": (10, 1)}])
def test_impossible_options_are_refused(wrong):
    with pytest.raises(ConfigError):
        dataclasses.replace(SnapshotOptions(), **wrong)
