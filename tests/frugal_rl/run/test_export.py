"""A policy's episodes as a Minari data set: what it saw and did, in an environment of its own."""

from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.memory.auto import prepare
from frugal_rl.run.compose import compose_run
from frugal_rl.run.export import export_policy
from frugal_rl.run.session import train_planned
from frugal_rl.store.offline import read_dataset

WORDS = (
    "env=toy", "tracking=disabled", "algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=64",
    "algo.total_steps=256", "evaluation.episodes=4", "hardware.threads=1", "hardware.device=cpu",
)  # fmt: skip


def test_what_a_policy_plays_is_what_is_written(tmp_path):
    pytest.importorskip("minari")
    run, plan = prepare(replace(compose_run(WORDS), run_dir=str(tmp_path / "run")))
    train_planned(run, plan)

    said = export_policy(str(tmp_path / "run"), tmp_path / "data", 3, run)

    assert "3 episodes" in said
    replay = read_dataset(tmp_path / "data")
    env, at = run.env.make(run.evaluation.seed), 0
    for episode in range(3):
        seen, _ = env.reset(seed=run.evaluation.seed + episode)
        ended = False
        while not ended:
            step = [at], [0]
            for name, value in seen.items():
                assert np.array_equal(replay.observations[name][step][0], value)
            action = int(replay.actions[step][0, 0])
            seen, reward, terminated, truncated, _ = env.step(action)
            assert replay.rewards[step] == np.float32(reward)
            ended = terminated or truncated
            assert (replay.dones[step], replay.timeouts[step]) == (ended, truncated)
            at += 1
    assert at == replay.size()
