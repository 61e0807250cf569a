"""Each lossless switch trains the column network to the same bits, whatever lies where."""

import pytest
import torch
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import no_meter

WORDS = [
    "env=mine_daily_small",
    "env.obs=columns",
    "env.deposit.nx=9",
    "env.deposit.ny=8",
    "env.deposit.nz=5",
    "env.deposits=2",
    "env.eval_deposits=1",
    "tracking=disabled",
    "algo.num_envs=5",
    "algo.n_steps=8",
    "algo.batch_size=16",
    "algo.n_epochs=1",
    "hardware.threads=1",
]


def trained(*words: str) -> torch.Tensor:
    """Parameters after two rollouts: the second begins from arrays that the first has used."""
    run = compose_run([*WORDS, *words])
    set_random_seed(run.seed)
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    for _ in range(2):
        learner.iterate(no_meter)
    vec_env.close()
    return learner.optimizer.flat.detach()


SWITCHES = ("memory.buffers=reused", "memory.storage=lossless", "memory.shuffle=gather")


@pytest.mark.parametrize("agent", [pytest.param("column2d", marks=pytest.mark.slow), "cnn3d_test"])
def test_storage_and_reuse_do_not_change_a_bit(agent):
    words = [f"agent={agent}", "memory=baseline"]
    if agent == "cnn3d_test":
        words += ["env.obs=volume"]
    whole = trained(*words)

    for switch in SWITCHES:
        assert torch.equal(trained(*words, switch), whole), switch


@pytest.mark.parametrize("seed", range(5, 8))
def test_whole_profiles_train_a_volume_network_to_the_same_bits(seed):
    words = [f"seed={seed}", "agent=cnn3d_test", "env.obs=volume", "env.deposits=4"]
    assert torch.equal(trained(*words, "memory=baseline"), trained(*words, "memory=lossless"))
