"""The flat keys of older agents, the kernels' stamps, and graphs under a small bound."""

from pathlib import Path

import numpy as np
import torch
from numpy.testing import assert_array_equal

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.decoder import Decoder, to_tensors
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding
from nclone.config import NppConfig
from nclone.geometry import MAP_HEIGHT_PX, MAP_WIDTH_PX
from nclone.graph import lattice, paths
from nclone.graph.fields import GRAPH_TABLE
from nclone.search.explore import explore
from nclone.sim.advance import advance_worlds, source_stamp
from nclone.spec import Observation
from nclone.vec_env import NppVecEnv

SIZE = np.array([MAP_WIDTH_PX, MAP_HEIGHT_PX])
SMALL = {"player_frame": (16, 16), "global_view": (25, 44)}


def played(config: NppConfig, steps: int, num_envs: int = 4):
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    env = NppVecEnv(config, num_envs, encoding, MemoryProfile(), threads=1)
    rng = np.random.default_rng(0)
    rows = env.reset(0)
    for _ in range(steps):
        yield env, encoding, rows
        rows = env.step(rng.integers(0, 6, num_envs)).rows


def test_places_and_switches_are_those_of_level_and_world():
    config = NppConfig(obs=Observation.full, levels=("locked_door", "walk"), **SMALL)
    used = 0
    for env, encoding, rows in played(config, 150):
        seen = decode(encoding, rows, env.tables)
        fields = Decoder(encoding, env.tables)(to_tensors(rows, torch.device("cpu")))
        for name in ("entity_positions", "switch_states"):
            assert_array_equal(fields[name].numpy(), seen[name])
        world = env.game.world
        for n in range(4):
            marks = env.game.marks[world.level[n]]
            places = np.concatenate([world.position[n], marks.goals[0], marks.goals[1]])
            expected = (places.reshape(3, 2) / SIZE).reshape(-1)
            np.testing.assert_allclose(seen["entity_positions"][n], expected, atol=1e-6)
            doors = seen["switch_states"][n].reshape(5, 5)
            count = len(marks.door_entities)
            for d in range(count):
                flat = np.concatenate([marks.goals[2 + 2 * d], marks.goals[3 + 2 * d]])
                np.testing.assert_allclose(
                    doors[d, :4].reshape(2, 2), flat.reshape(2, 2) / SIZE, atol=1e-6
                )
                collected = world.entity_active[n, marks.door_entities[d]] == 0
                assert doors[d, 4] == collected
                used += collected
            assert not doors[count:].any()
    assert used > 0


def test_a_small_bound_on_graphs_changes_no_observation():
    levels = ("walk", "locked_door", "mines", "fall", "jump")
    tight, roomy = (
        NppConfig(obs=Observation.graph, levels=levels, graphs_mib=mib) for mib in (0.03, 256.0)
    )
    for (env, encoding, rows), (other, _, same) in zip(
        played(tight, 120), played(roomy, 120), strict=True
    ):
        a = Decoder(encoding, env.tables)(to_tensors(rows, torch.device("cpu")))
        b = Decoder(encoding, other.tables)(to_tensors(same, torch.device("cpu")))
        for name in ("player_node", "goal_nodes", "graph_node_types"):
            assert torch.equal(a[name], b[name])

    assert env.tables[GRAPH_TABLE].drops > 0
    assert other.tables[GRAPH_TABLE].drops == 0


def test_kernels_that_contain_the_simulator_follow_its_sources():
    def stamps(kernel):
        return [cell.cell_contents for cell in kernel.py_func.__closure__]

    graph = (Path(lattice.__file__), Path(paths.__file__))
    assert source_stamp() != source_stamp(*graph)
    assert source_stamp() in stamps(advance_worlds)
    assert source_stamp(*graph) in stamps(explore)
