"""Bytes of the guide's rollout (8,192 steps x 2, stack of 4) in every form, planned and allocated.

    python benchmarks/fighting_bytes.py [steps]

Frames come from fights between random play and the computer's level 4.
"""

from __future__ import annotations

import sys

import numpy as np

from fighting.config import DuelConfig
from fighting.spec import View
from fighting.vec_env import DuelVecEnv
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import FrameStack, Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.store.layout import planned_bytes
from frugal_rl.store.rollout import RolloutBuffer

GIB = 1 << 30


def filled(config: DuelConfig, encoding: Encoding, steps: int) -> RolloutBuffer:
    """A rollout of `steps` x 2 transitions of random play."""
    env = DuelVecEnv(config, 2, encoding, MemoryProfile())
    history = History(encoding, 2)
    space = encoding.policy_space()
    rollout = RolloutBuffer(steps, space, env.action_space, n_envs=2, encoding=encoding)
    rng = np.random.default_rng(0)
    rows = history.reset(env.reset(0))
    start = np.ones(2, np.bool_)
    import torch

    nothing = torch.zeros(2)
    for _ in range(steps):
        actions = rng.integers(0, 16, 2)
        rollout.add(rows, actions[:, None], np.zeros(2, np.float32), start, nothing, nothing)
        step = env.step(actions)
        rows, _ = history.push(step.rows, step.done)
        start = step.done
    env.close()
    return rollout


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    print(f"{'form':<28}{'planned GiB':>12}{'of 8,192':>10}{'held GiB':>10}")
    forms = [
        ("rgb, stacks copied", View.rgb, Storage.dense, FrameStack.copies, {}),
        ("gray, stacks copied", View.gray, Storage.dense, FrameStack.copies, {}),
        ("gray, stored once", View.gray, Storage.dense, FrameStack.once, {}),
        ("half size, stored once", View.half_size, Storage.dense, FrameStack.once, {}),
        ("gray, packed", View.gray, Storage.lossless, FrameStack.once, {"frame": "packed"}),
        ("gray, delta", View.gray, Storage.lossless, FrameStack.once, {"frame": "delta"}),
        ("ram", View.ram, Storage.lossless, FrameStack.once, {}),
    ]
    for name, view, storage, stack, fields in forms:
        config = DuelConfig(obs=view, levels=(4,), threads=1)
        encoding = Encoding.choose(config.spec(), storage, stack, fields=fields)
        full = planned_bytes(encoding, 8192, 2, config.action_space())
        planned = planned_bytes(encoding, steps, 2, config.action_space())
        held = "-"
        if planned < 2 * GIB:
            held = f"{sum(filled(config, encoding, steps).parts().values()) / GIB:.4f}"
        print(f"{name:<28}{planned / GIB:>12.4f}{full / GIB:>10.4f}{held:>10}")


if __name__ == "__main__":
    main()
