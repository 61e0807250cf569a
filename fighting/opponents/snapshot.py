"""A frozen policy as a player: it sees one seat's memory and draws an action."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.observation.decoder import to_tensors
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.tables import Tables

if TYPE_CHECKING:
    from fighting.opponents.scripts import Rngs
    from frugal_rl.learn.policy import FrugalPolicy


class SnapshotPlayer:
    """Plays with a policy from the memory of one seat; draws its actions.

    `field` is the observation that the policy plays from, its only one.
    """

    def __init__(self, policy: FrugalPolicy, field: str = "signals") -> None:
        self.policy, self.field = policy, field
        self.encoder = Encoder(policy.decoder.encoding, Tables(), 0)

    @property
    def digest(self) -> str:
        """Of its policy; see `digest_of`."""
        return digest_of(self.policy)

    @torch.no_grad()
    def __call__(self, seen: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """As a `Script`; random numbers come from each place's own source."""
        rows = self.encoder.encode({self.field: seen}, lasting=True)
        tensors = to_tensors(rows, self.policy.device)
        chances = self.policy.actor_output(tensors).softmax(-1).cumsum(-1).numpy(force=True)
        drawn = np.array([rng.random() for rng in rngs])[:, None]
        return np.minimum((chances < drawn).sum(axis=1), chances.shape[1] - 1)


def digest_of(policy: FrugalPolicy) -> str:
    """A hash of the weights, by which a resumed tournament knows the player again."""
    found = hashlib.sha1(usedforsecurity=False)
    for name, value in sorted(policy.state_dict().items()):
        found.update(name.encode() + value.detach().cpu().numpy().tobytes())
    return found.hexdigest()
