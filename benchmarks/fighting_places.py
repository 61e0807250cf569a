"""What a million frames of an exploring run hold: planned in whole, and filled in small.

    python benchmarks/fighting_places.py [filled steps of each machine] [overrides]

`env.profile=hop_places`, episodes of 20,000 steps, 64 machines x 16,384 steps: 1,048,576 grey
frames. The plan is arithmetic; the bytes beside it are those of a rollout of fewer steps, filled by
random play and by the script that jumps before a gap, one machine in two each.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run
from frugal_rl.store.layout import planned_bytes
from frugal_rl.store.rollout import RolloutBuffer

MACHINES, STEPS, FILLED = 64, 16_384, 16
OVERRIDES = ["env=fighting_game_boy", "env.profile=hop_places", "env.obs=both", "env.stack=4"]
OVERRIDES += ["env.max_pool=false", "hardware.threads=1", f"algo.num_envs={MACHINES}"]


def actions(rows: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """The script on even machines, random play on odd ones."""
    edge, height = rows["features"][:, 0] * 96, rows["features"][:, 1]
    script = np.where((edge <= 14) & (height == 0), 2, 1)
    return np.where(np.arange(len(script)) % 2, rng.integers(4, size=len(script)), script)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    run = compose_run([*OVERRIDES, *sys.argv[2:]])
    encoding, space = run.encoding(), run.env.action_space()
    print("forms", dict(encoding.choice))
    whole = planned_bytes(encoding, STEPS, MACHINES, space)
    frames = MACHINES * STEPS
    print(f"planned: {frames:,} frames in {whole:,} B, {whole / frames:.1f} B per frame")
    env: Any = run.env.make_vec(FILLED, encoding, run.memory, run.vec, "train")
    buffer = RolloutBuffer(
        steps, encoding.policy_space(0), space, n_envs=FILLED, encoding=encoding, device="cpu"
    )
    history, rng = History(encoding, FILLED, 0), np.random.default_rng(0)
    rows, starts = history.reset(env.reset(0)), np.ones(FILLED, bool)
    zeros, begin = np.zeros(FILLED, np.float32), time.process_time()
    for _ in range(steps):
        acted = actions(rows, rng)
        buffer.add(rows, acted, zeros, starts, zeros, zeros)
        step = env.step(acted)
        rows, _ = history.push(step.rows, step.done, step.final_index, step.final_rows)
        starts = step.done.copy()
    spent, kept = time.process_time() - begin, FILLED * steps
    planned = planned_bytes(encoding, steps, FILLED, space)
    print(f"filled: {kept:,} frames in {buffer.nbytes:,} B, {planned:,} planned")
    column: Any = buffer.columns["frame"]
    used = column.pool.used * column.pool.units.itemsize + column.references.values.nbytes
    print(f"frames: {used:,} B in use of {column.nbytes:,}, {used / kept:.1f} B per frame")
    print(f"{kept / spent:,.0f} steps per CPU second; 160 x 144 grey, stacked: {4 * 23040} B")
    env.close()


if __name__ == "__main__":
    main()
