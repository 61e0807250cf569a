"""Every named architecture that reads pictures finds them in env.obs=full and learns a step."""

import numpy as np
import pytest
import torch

from frugal_rl.run.compose import compose_run, folder
from frugal_rl.run.trainer import no_meter

AGENTS = sorted(
    path.stem
    for path in (folder("conf") / "agent").glob("attention*.yaml")
    if "observation: full" in path.read_text()
)


def test_there_are_such_architectures():
    assert len(AGENTS) == 6


@pytest.mark.parametrize("agent", AGENTS)
def test_an_architecture_that_reads_pictures_learns_a_step(agent):
    run = compose_run(
        [
            "env=nclone", f"agent={agent}", "env.levels=[walk]", "algo.num_envs=2",
            "algo.n_steps=2", "algo.batch_size=4", "algo.n_epochs=1", "env.player_frame=[40,40]",
            "env.global_view=[25,44]", "hardware.threads=1",
        ]
    )  # fmt: skip
    torch.manual_seed(0)
    env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, env)

    metrics = learner.iterate(no_meter)

    assert np.isfinite(metrics["train/loss"])
    pictures = [p for n, p in learner.policy.named_parameters() if "player_frame" in n]
    assert pictures
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in pictures)
