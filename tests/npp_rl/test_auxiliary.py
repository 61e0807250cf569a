"""Auxiliary labels against a slow twin that looks ahead step by step."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from nclone.config import NppConfig
from nclone.game import NppGame
from nclone.levels.format import pack_level
from nclone.levels.level import load_level
from npp_rl.config import AuxiliaryTasks
from npp_rl.networks.auxiliary import MISSING, AuxiliaryHeads, label_rollout


def slow_labels(died, done, milestone, n, t, horizon):
    """Looks ahead from (t, n) until the episode or the rollout ends."""
    T = len(died)
    death, steps, objective = MISSING, MISSING, MISSING
    for ahead, u in enumerate(range(t, T), start=1):
        if steps == MISSING and milestone[u, n] >= 0:
            steps, objective = ahead, milestone[u, n]
        if ahead <= horizon and died[u, n]:
            death = 1
        if death == MISSING and (done[u, n] or ahead == horizon):
            death = 0 if not died[u, n] or ahead > horizon else 1
        if done[u, n]:
            break
    return death, steps, objective


@given(st.integers(1, 30), st.integers(1, 3), st.integers(1, 6), st.integers(0, 10_000))
def test_labels_equal_a_look_ahead(T, N, horizon, seed):
    rng = np.random.default_rng(seed)
    done = rng.random((T, N)) < 0.15
    died = done & (rng.random((T, N)) < 0.6)
    milestone = np.where(rng.random((T, N)) < 0.1, rng.integers(0, 34, (T, N)), -1).astype(np.int8)

    labels = label_rollout(died, done, milestone, horizon)

    for t in range(T):
        for n in range(N):
            assert (
                labels.death[t, n], labels.milestone_steps[t, n], labels.next_objective[t, n]
            ) == slow_labels(died, done, milestone, n, t, horizon)  # fmt: skip


def test_unknown_futures_have_no_loss_and_known_ones_teach_the_head():
    heads = AuxiliaryHeads.build(AuxiliaryTasks(death=0.05, milestone=0.02, objective=0.03), 8)
    latent = torch.randn(6, 8)
    unknown = {name: torch.full((6,), MISSING) for name in heads.heads}
    assert sum(heads.losses(latent, unknown).values()).item() == 0

    known = {name: torch.ones(6, dtype=torch.int16) for name in heads.heads}
    losses = heads.losses(latent, known)
    sum(losses.values()).backward()
    assert all(bool(h.weight.grad.any()) for h in heads.heads.values())
    assert len(losses) == 3


def test_without_weights_there_are_no_heads():
    assert AuxiliaryHeads.build(AuxiliaryTasks(), 8) is None


def walked(records, steps=40):
    """Milestones of a ninja that walks right through a corridor with these entities."""
    tiles = np.ones((25, 44), int)
    tiles[10:12, 3:30] = 0
    level = load_level(pack_level(tiles, [[0, 14, 46, 0, 0], *records]))
    game = NppGame(NppConfig(start_frames=0), [level], 1, threads=1)
    game.seed([np.random.default_rng(0)])
    game.begin(np.arange(1))
    return [int(game.advance(np.array([2])).events["milestone"][0]) for _ in range(steps)]


def test_a_milestone_is_a_switch_or_the_exit_and_not_a_door_that_opens_by_itself():
    exit_far = [[3, 110, 42, 0, 0], [4, 112, 42, 0, 0]]
    by_itself = walked([*exit_far, [5, 36, 46, 0, 0]])
    with_switch = walked([*exit_far, [5, 36, 46, 0, 0], [6, 84, 42, 0, 0], [7, 24, 46, 0, 0]])

    assert set(by_itself) == {-1}
    assert [m for m in with_switch if m >= 0] == [2]
