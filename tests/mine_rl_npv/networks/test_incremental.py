"""Maps updated by crops equal maps computed whole, alone and inside the network that acts."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from frugal_rl.errors import ConfigError
from frugal_rl.observation.decoder import Decoder
from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run
from mine_rl_npv.networks.agents import Norm, cache_bytes
from mine_rl_npv.networks.incremental import ConvolutionCache

GRID = (11, 9, 8)


def whole(convolutions, pool, volume):
    for i, conv in enumerate(convolutions):
        volume = F.relu(conv(volume))
        if pool and i + 1 < len(convolutions):
            volume = F.max_pool3d(volume, 2)
    return volume


@pytest.mark.parametrize(
    ("kernel", "strides", "pool"),
    [(3, (1, 2, 2), False), (5, (2, 2), False), (3, (1, 1, 1), True), (5, (1, 1), True)],
)
@torch.no_grad()
def test_sixty_steps_leave_the_maps_of_a_full_pass(kernel, strides, pool):
    torch.manual_seed(0)
    widths = [5, 4, 6, 8]
    convolutions = [
        nn.Conv3d(widths[i], widths[i + 1], kernel, s, kernel // 2) for i, s in enumerate(strides)
    ]
    cache = ConvolutionCache(convolutions, max_pool=pool)
    ground, ids = torch.randn(2, 3, *GRID), torch.tensor([0, 1])
    changing = torch.randn(2, 2, *GRID)
    cache.read(changing, ids, ground.__getitem__)
    for step in range(60):
        env = int(torch.randint(2, ()))
        cell = tuple(int(torch.randint(n, ())) for n in GRID)
        changing[(env, slice(None), *cell)] = torch.randn(2)
        if step % 25 == 24:  # an episode begins, on another mine
            changing[0], ids = torch.randn(2, *GRID), ids.flip(0)
        last = cache.read(changing, ids, ground[ids].__getitem__)
        expected = whole(convolutions, pool, torch.cat((ground[ids], changing), dim=1))
        assert_close(last, expected, rtol=1e-5, atol=1e-5)
    per_env = cache_bytes(GRID, widths[1 : len(strides) + 1], strides, kernel, pool)
    assert cache.nbytes == 2 * per_env


def test_a_network_with_whole_map_norms_is_refused():
    with pytest.raises(ConfigError, match=r"agent\.norm=none"):
        ConvolutionCache([nn.Conv3d(2, 2, 3)], [nn.GroupNorm(1, 2)])


@pytest.mark.parametrize("name", ["cnn3d", "cnn3d_small", "cnn3d_tiny"])
def test_acting_by_crops_gives_the_outputs_of_whole_passes(name):
    words = [
        "env=mine_daily_small",
        f"agent={name}",
        "env.deposits=3",
        "env.eval_deposits=0",
        "env.max_steps=9",
        "agent.norm=none",
        "agent.incremental=true",
    ]
    run = compose_run(words)
    vec_env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
    policy = run.algo.build_policy(run, vec_env)
    plain = replace(run.agent, incremental=False, norm=Norm.none).build(
        vec_env.encoding, vec_env.tables, vec_env.action_space
    )
    plain.load_state_dict(policy.network.state_dict())
    policy.set_training_mode(False)
    decoder = Decoder(vec_env.encoding, vec_env.tables)
    history = History(vec_env.encoding, 2, run.env.episode_steps)
    rows = history.reset(vec_env.reset(3))
    rng = np.random.default_rng(0)
    for _ in range(24):
        tensors = {name: torch.from_numpy(row.copy()) for name, row in rows.items()}
        with torch.no_grad():
            one, other = policy.network(decoder(tensors)), plain(decoder(tensors))
        assert_close(one.logits, other.logits, rtol=1e-4, atol=1e-6)
        step = vec_env.step(np.array([rng.choice(np.flatnonzero(m)) for m in vec_env.game.masks()]))
        rows, _ = history.push(step.rows, step.done)
    cache = policy.network.cache
    two = replace(
        run, algo=replace(run.algo, num_envs=2), evaluation=replace(run.evaluation, num_envs=1)
    )
    planned = {part.name: part.ram_bytes for part in run.agent.parts(two)}
    assert planned["convolution maps"] == cache.nbytes
    policy.set_training_mode(True)
    assert cache.nbytes == 0  # the update changes the weights
