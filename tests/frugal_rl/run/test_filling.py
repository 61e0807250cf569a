"""A replay's size is foretold while it fills, and a run that will not fit says so once."""

from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl.learn.filling import filling
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.run import filling as told
from frugal_rl.run.filling import Filling
from frugal_rl.store.replay import ReplayBuffer

SIZES = {"chained": 900, "dense": 40}


def filled(replay, steps, seed=0):
    """Rows of which a twentieth changes, each episode 30 steps long."""
    dice, (row_bytes,) = np.random.default_rng(seed), replay.observation_space.shape
    row = dice.integers(0, 256, (2, row_bytes), dtype=np.uint8)
    for step in range(steps):
        after = row.copy()
        after[:, : row_bytes // 20] = dice.integers(0, 256, (2, row_bytes // 20))
        done = np.full(2, step % 30 == 29)
        replay.add(row, after, np.zeros(2, int), np.zeros(2), done, [{}, {}])
        row = dice.integers(0, 256, row.shape, dtype=np.uint8) if done[0] else after


@pytest.mark.parametrize("row_bytes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("total", [8_000, 100_000])
def test_what_a_replay_will_hold_is_seen_from_a_quarter_of_it(row_bytes, total):
    space = spaces.Box(0, 255, (row_bytes,), np.uint8)
    replay = ReplayBuffer(10_000, space, spaces.Discrete(2), "cpu", n_envs=2)
    assert filling(replay, total) == {}
    filled(replay, 1_250)
    early = filling(replay, total)
    filled(replay, min(5_000, total // 2) - 1_250, seed=1)
    late = filling(replay, total)

    assert early["memory/replay_full_bytes"] == pytest.approx(late["memory/replay_bytes"], rel=0.1)
    assert late["memory/replay_full_bytes"] == pytest.approx(late["memory/replay_bytes"])
    assert late["memory/replay_bytes"] > 2.5 * early["memory/replay_bytes"]


@pytest.mark.parametrize(("device", "counted"), [("cpu", True), ("cuda", False)])
def test_what_lies_on_an_accelerator_takes_no_memory(device, counted):
    parts = {"replay/obs/records": 100, "replay/obs/on the device": 50}
    place = SimpleNamespace(type=device)
    replay = SimpleNamespace(
        count=10, buffer_size=10, n_envs=1, device=place, parts=lambda: dict(parts)
    )

    assert filling(replay, 10)["memory/replay_bytes"] == (150 if counted else 100)


def run_of(monkeypatch, resident, **memory):
    monkeypatch.setattr(told.usage, "resident_bytes", lambda: resident)
    limit = SimpleNamespace(ram_bytes=1000 << 20, ram_source="memory.budget_gib")
    monkeypatch.setattr(told, "find_limit", lambda *_: limit)
    return Filling.of(SimpleNamespace(memory=MemoryProfile(watchdog_share=0.9, **memory)))


def metrics(now_mib, full_mib):
    return {
        "memory/replay_bytes": now_mib * 2.0**20,
        "memory/replay_full_bytes": full_mib * 2.0**20,
    }


def test_a_run_that_will_be_ended_says_so_once(monkeypatch):
    run = run_of(monkeypatch, 400 << 20)

    assert run.note(metrics(100, 599)) == []
    (words,) = run.note(metrics(100, 650))
    assert "650.0 MiB once it is full" in words
    assert "950.0 MiB" in words and "900.0 MiB" in words and "memmap" in words  # noqa: PT018
    assert run.note(metrics(120, 700)) == []


def test_a_run_without_a_replay_or_with_a_mapped_one_says_nothing(monkeypatch):
    assert run_of(monkeypatch, 400 << 20).note({"train/loss": 1.0}) == []
    mapped = run_of(monkeypatch, 400 << 20, rollout_location=RolloutLocation.memmap)
    assert mapped.note(metrics(100, 5_000)) == []
