"""The probe reads observations of as many environments as a run's minibatch is drawn from."""

import numpy as np
import pytest
import torch

from frugal_rl.run import probe_rows
from frugal_rl.run.compose import compose_run
from frugal_rl.run.probe_rows import Played, play

CPU = torch.device("cpu")


def played(envs: int, moments: int, share: float) -> Played:
    """One field that tells the environment and one that tells the moment."""
    env, moment = np.divmod(np.arange(envs * moments), moments)
    return Played({"env": env, "moment": moment}, envs, moments, share)


def test_a_smaller_minibatch_comes_from_as_many_fewer_environments():
    rows = played(envs=64, moments=8, share=1.0)

    shown = {n: len(rows.minibatch(n, 1024, CPU)["env"].unique()) for n in (128, 512, 1024)}

    assert shown == {128: 8, 512: 32, 1024: 64}


def test_the_smallest_minibatch_shows_what_a_tiny_run_shows():
    rows = played(envs=64, moments=8, share=1.0)

    assert len(rows.minibatch(8, 4096, CPU)["env"].unique()) == 4


def test_a_share_of_the_environments_stands_for_a_share_of_the_minibatch():
    rows = played(envs=16, moments=4, share=0.25)

    assert len(rows.minibatch(256, 1024, CPU)["env"].unique()) == 16
    assert len(rows.minibatch(128, 1024, CPU)["env"].unique()) == 8


def test_acting_shows_one_moment_of_each_environment():
    batch = played(envs=4, moments=8, share=1.0).acting(6, CPU)

    assert batch["env"].tolist() == [0, 1, 2, 3, 0, 1]
    assert batch["moment"].tolist() == [0] * 6


@pytest.mark.parametrize(("seconds", "groups"), [(1e9, 3), (0.0, 1)])
def test_environments_are_played_in_groups_until_the_time_is_up(seconds, groups, monkeypatch):
    monkeypatch.setattr(probe_rows, "SECONDS", seconds)
    words = ["env=nclone", "env.obs=graph", "memory=lossless", "algo.num_envs=12", "algo.n_steps=5"]
    run = compose_run([*words, "algo.batch_size=20"])
    vec_env = run.env.make_vec(4, run.encoding(), run.memory, run.vec, "train")

    found = play(run, vec_env)

    assert (found.envs, found.moments, found.share) == (4 * groups, 5, groups / 3)
    assert {len(rows) for rows in found.rows.values()} == {4 * groups * 5}
    by_env = found.rows["level_id"].reshape(found.envs, found.moments)
    assert len(np.unique(by_env[:, 0])) > 1
    vec_env.close()
