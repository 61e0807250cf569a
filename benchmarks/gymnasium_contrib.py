"""sb3-contrib with and without our rollouts: bytes, and whether parameters are equal.

`python benchmarks/gymnasium_contrib.py` prints the table of gymnasium_contrib.md: the world
is the mapped one of your_environment.py, with masks that forbid one of four moves.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from sb3_contrib import TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from your_environment import Mapped

from frugal_rl.sb3 import compact, shrink

STEPS, ENVS, UPDATES = 128, 4, 4


class Masked(Mapped):
    """The map, with some moves forbidden."""

    def action_masks(self) -> Any:
        """Forbid one of four moves."""
        mask = np.ones(4, np.bool_)
        mask[int(self.dots[0, 0]) % 4] = False
        return mask


def trained(kind: Any, small: bool) -> Any:
    """A model after its updates."""
    env = make_vec_env(Masked, n_envs=ENVS, seed=0)
    recurrent = kind is RecurrentPPO
    given: dict[str, Any] = {"n_steps": STEPS, "batch_size": 128, "seed": 0, "device": "cpu"}
    if kind is not TRPO:
        given["n_epochs"] = 1
    if small and not recurrent:
        given |= compact(env, algorithm=kind)
    torch.manual_seed(0)
    model = kind("MultiInputLstmPolicy" if recurrent else "MultiInputPolicy", env, **given)
    model = shrink(model) if small and recurrent else model
    return model.learn(STEPS * ENVS * UPDATES)


def held(buffer: Any) -> float:
    """Bytes per transition of all that a rollout keeps."""
    kept = [buffer.nbytes] if hasattr(buffer, "nbytes") else []
    if not kept:
        arrays = [v for v in vars(buffer).values() if isinstance(v, np.ndarray)]
        kept = [a.nbytes for a in (*arrays, *buffer.observations.values())]
    return float(sum(kept)) / STEPS / ENVS


def main() -> None:
    torch.set_num_threads(1)
    print("| algorithm | B a transition | with us | share | parameters after 4 updates |")
    print("|---|---|---|---|---|")
    for kind in (PPO, MaskablePPO, RecurrentPPO, TRPO):
        plain, ours = trained(kind, small=False), trained(kind, small=True)
        pairs = zip(plain.policy.parameters(), ours.policy.parameters(), strict=True)
        equal = all(torch.equal(a, b) for a, b in pairs)
        before, after = held(plain.rollout_buffer), held(ours.rollout_buffer)
        words = f"{before:,.0f} | {after:,.0f} | 1/{before / after:.1f}"
        print(f"| {kind.__name__} | {words} | {'equal' if equal else 'DIFFER'} |", flush=True)
        if not equal:
            sys.exit(1)


if __name__ == "__main__":
    main()
