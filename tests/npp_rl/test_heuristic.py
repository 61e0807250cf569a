"""The script follows the path that the graph shows."""

import numpy as np
import pytest

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from nclone.config import NppConfig
from nclone.spec import Observation
from npp_rl.heuristic import PathFollower


@pytest.fixture(scope="module")
def env():
    config = NppConfig(obs=Observation.graph, levels=("simplest",), start_frames=0)
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    return config.make_vec(16, encoding, MemoryProfile(), None, "eval")


def test_the_script_solves_corridors_that_random_play_does_not(env):
    player = PathFollower(env.encoding, env.tables)
    rows = env.reset(0)
    wins = episodes = 0
    for _ in range(250):
        step = env.step(player(rows))
        rows = step.rows
        if step.ended is not None:
            wins += int(step.ended.stats["success"].sum())
            episodes += len(step.ended.index)

    assert episodes > 0
    assert wins >= 5


def test_the_script_never_takes_a_forbidden_action(env):
    player = PathFollower(env.encoding, env.tables)
    rows = env.reset(1)
    for _ in range(60):
        actions = player(rows)
        allowed = np.array([player.decoder(_tensors(rows))["action_mask"].numpy()])[0]
        assert (allowed[np.arange(len(actions)), actions] == 1).all()
        rows = env.step(actions).rows


def _tensors(rows):
    import torch

    return {k: torch.from_numpy(np.asarray(v)) for k, v in rows.items()}
