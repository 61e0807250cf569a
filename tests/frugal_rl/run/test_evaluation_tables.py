"""A policy plays environments whose static tables are numbered in another order."""

import numpy as np
import torch

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.evaluate import PolicyPlayer
from nclone.config import NppConfig


def made(levels, encoding):
    config = NppConfig(levels=levels, start_frames=0)
    return config.make_vec(4, encoding, MemoryProfile(), None, "eval")


def test_ids_are_looked_up_in_the_tables_of_the_environments_that_are_played():
    encoding = Encoding.choose(NppConfig().spec(), Storage.lossless)
    learned = made(("walk", "jump", "fall", "switch_first"), encoding)
    played = made(("switch_first", "fall", "jump", "walk"), encoding)
    torch.manual_seed(0)
    policy = FrugalPolicy(
        encoding.policy_space(), learned.action_space, lambda _: 0.0, agent=MlpAgent(),
        encoding=encoding, tables=learned.tables,
    )  # fmt: skip
    torch.nn.init.normal_(policy.network.logits.weight)
    there = {k: v.copy() for k, v in played.reset(0).items()}
    here = {k: v.copy() for k, v in learned.reset(0).items()}
    outputs = []
    for rows, tables in ((there, played.tables), (here, learned.tables)):
        seen = policy.decoder.reading(tables)({k: torch.from_numpy(v) for k, v in rows.items()})
        outputs.append(seen["tile_window"].numpy())
    np.testing.assert_array_equal(outputs[0], outputs[1][::-1])

    alone = PolicyPlayer(policy, True, played.tables)(there)
    at_home = PolicyPlayer(policy, True)(here)

    np.testing.assert_array_equal(alone, at_home[::-1])
