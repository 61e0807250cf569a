"""The metrics of a run are those that docs/train.md explains, by the same names."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.off_policy_kinds import DqnConfig
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Evaluation, Hardware, RunConfig
from frugal_rl.run.trainer import train
from frugal_rl.testing.toy import Toy

PAGE = Path(__file__).resolve().parents[3] / "docs/train.md"
SIZES = {"num_envs": 4, "n_steps": 16, "batch_size": 8, "total_steps": 128}
PPO = PpoConfig(n_epochs=1, **SIZES)
DQN = DqnConfig(learning_starts=16, train_freq=4, buffer_size=160, **SIZES)

OWN = {"episode/turns", "eval/turns"}
"""The toy's own."""
EPISODES = {f"episode/{name}" for name in ("count", "length", "return", "success")}
MEASURED = {
    *("time/steps_per_second", "time/rollout_seconds", "time/update_seconds"),
    "time/processor_seconds",
}
EVALUATED = {f"eval/{name}" for name in ("episodes", "length", "return", "success")} | {
    "eval/success_high", "eval/success_low"
}  # fmt: skip
PPO_TRAINS = {
    *("train/approx_kl", "train/clip_fraction", "train/entropy", "train/explained_variance"),
    *("train/grad_norm", "train/learning_rate", "train/loss", "train/policy_loss"),
    "train/value_loss",
}
DQN_TRAINS = {
    *("rollout/exploration_rate", "train/learning_rate", "train/loss", "train/mean_value"),
    *("train/n_updates", "train/value_ratio"),
}


class Kept:
    """A log that keeps the names of metrics."""

    def __init__(self):
        self.names = set()

    def metrics(self, step, values):
        self.names |= values.keys()

    def summary(self, values):
        pass

    def file(self, path):
        pass


@pytest.fixture(scope="module", params=[(PPO, PPO_TRAINS), (DQN, DQN_TRAINS)], ids=["ppo", "dqn"])
def names(request, tmp_path_factory):
    """Names that a run of the toy wrote, and those that are expected."""
    algo, trains = request.param
    run = RunConfig(
        Toy(), MlpAgent(actor=(16,), critic=(16,)), algo, MemoryProfile(), None,
        evaluation=Evaluation(episodes=4, num_envs=4), hardware=Hardware("cpu", 1), seed=3,
        run_dir=str(tmp_path_factory.mktemp("run")), resolved={"seed": 3},
    )  # fmt: skip
    log = Kept()
    train(run, log, console=Console(file=io.StringIO(), width=200))
    return log.names, OWN | EPISODES | MEASURED | EVALUATED | trains


def test_a_run_writes_the_metrics_of_its_learner_and_evaluation(names):
    written, expected = names
    foretold = {"memory/replay_bytes", "memory/replay_full_bytes"}
    assert foretold & written == (foretold if written & (DQN_TRAINS - PPO_TRAINS) else set())
    assert {name for name in written if not name.startswith("memory/")} == expected


def test_every_metric_that_a_run_writes_is_explained(names):
    table = PAGE.read_text().partition("## Metrics")[2].partition("\n## ")[0]
    explained = set(re.findall(r"`([^`]+)`", table))
    assert names[0] - OWN - explained == set()
