"""The policies of the package: small, of today's features, and better than chance on any mine."""

import numpy as np

from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.decode import Decoder
from mine_rl_npv.optimise.orders import random_order
from mine_rl_npv.priority.features import GEOLOGY, block_features
from mine_rl_npv.priority.shipped import PATH, shipped_orders, shipped_policies, write_policies
from mine_rl_npv.priority.task import open_mine


def test_they_are_small_and_read_back_as_they_were_written(tmp_path):
    assert PATH.stat().st_size < 2**20
    net, policies = shipped_policies()
    assert policies.shape == (6, net.size)
    assert net.features == len(GEOLOGY)
    write_policies(tmp_path / "again.json", net, policies)
    assert (tmp_path / "again.json").read_bytes() == PATH.read_bytes()


def test_a_relaxation_changes_nothing_and_the_best_of_them_beats_chance():
    instance = varied_instance(7, 6, 6)
    mine = open_mine(instance, False)
    keys = shipped_orders(mine.features)
    seen = shipped_orders(block_features(mine.problem, relaxation(instance)))
    assert all(np.array_equal(keys[name], seen[name]) for name in keys)
    worth = [mine.worth(mine.decode(key, Decoder.two_pass)) for key in keys.values()]
    chance = [
        mine.worth(mine.decode(random_order(mine.problem, seed), Decoder.two_pass))
        for seed in range(6)
    ]
    assert max(worth) > max(chance)
