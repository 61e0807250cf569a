"""Real processes under gloo, each with its own environments, learn what one does with all."""

import subprocess
import sys

import pytest
import torch

PROGRAM = """
import sys
from dataclasses import replace

import numpy as np
import torch

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import joined
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.shares import shard
from frugal_rl.run.trainer import no_meter
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.interface import env_seeds

ENVS, STEPS, SEED = 8, 16, 5
WHOLE = ENVS * STEPS
ALGO = PpoConfig(num_envs=ENVS, n_steps=STEPS, batch_size=WHOLE, n_epochs=2, total_steps=1280)
torch.set_num_threads(1)


class SameDraws:
    '''Acts by the policy; random numbers are drawn for all environments, and its own are used.'''

    def __init__(self, policy, mine):
        self.policy, self.mine, self.rng = policy, mine, np.random.default_rng(SEED)

    def __getattr__(self, name):
        return getattr(self.policy, name)

    def __call__(self, obs):
        out = self.policy.outputs(obs)
        below = torch.softmax(out.logits, -1).cumsum(-1)
        drawn = torch.from_numpy(self.rng.random((ENVS, 1), np.float32)[self.mine])
        actions = (below < drawn).sum(-1).clamp(max=out.logits.shape[1] - 1)
        return actions, out.value, self.policy.head.evaluate(out.logits, actions, False)[0]


def learned(ranks):
    run = RunConfig(Toy(), MlpAgent(actor=(16,), critic=(16,)), ALGO, MemoryProfile(), None,
                    hardware=Hardware("cpu", threads=1), seed=SEED)
    own = replace(shard(run, ranks), seed=SEED)
    count = own.algo.num_envs
    mine = slice(count * ranks.rank, count * (ranks.rank + 1))
    vec_env = own.env.make_vec(count, own.encoding(), own.memory, own.vec, "train")
    vec_env._seed = lambda seed: vec_env.game.seed(
        [np.random.default_rng(s) for s in env_seeds(ENVS, seed)[mine]]
    )
    torch.manual_seed(3)
    learner = own.algo.build(own, vec_env)
    learner.actor = SameDraws(learner.policy, mine)
    before = learner.optimizer.flat.detach().clone()
    if ranks.size > 1:
        learner.join(ranks)
    for _ in range(10):
        learner.iterate(no_meter)
    return {"before": before, "after": learner.optimizer.flat.detach(),
            "count": len(learner.collector.starts), "steps": learner.num_steps}


with joined(60.0) as ranks:
    torch.save(learned(ranks), f"{sys.argv[1]}/{ranks.size}_{ranks.rank}.pt")
"""


def learned_by(size, folder):
    """Ten iterations of as many processes; what each of them came to."""
    (folder / "program.py").write_text(PROGRAM)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    words = [*torchrun, f"--nproc-per-node={size}", str(folder / "program.py"), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [torch.load(folder / f"{size}_{rank}.pt") for rank in range(size)]


@pytest.mark.slow
def test_processes_learn_in_ten_full_batches_what_one_does_on_all_environments(tmp_path):
    (alone,) = learned_by(1, tmp_path)
    told = []
    for size in (2, 4):
        parts = learned_by(size, tmp_path)

        assert [part["count"] for part in parts] == [8 // size] * size
        assert all(part["steps"] == alone["steps"] == 1280 for part in parts)
        assert all(torch.equal(part["after"], parts[0]["after"]) for part in parts)
        away = (parts[0]["after"] - alone["after"]).abs().max().item()
        told.append(f"{size} processes: {away:.1e} from one")
        assert away < 1e-5
    moved = (alone["after"] - alone["before"]).abs().max().item()
    print(f"{', '.join(told)}, {moved:.1e} from the start")
    assert moved > 1e-3
