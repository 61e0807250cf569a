"""What a million frames of an exploring run hold: planned in whole, and filled in small.

    python benchmarks/fighting_places.py [filled steps of each machine] [machines=16] [overrides]

`env.profile=roam`, or `env.profile=hop_places`, episodes of 20,000 steps, 64 machines x 16,384
steps: 1,048,576 grey frames. The plan is arithmetic; the bytes beside it are those of a rollout of
fewer steps or machines, filled by random play and by the profile's script, one machine in two each.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from fighting_explorer import Explorer

from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run
from frugal_rl.store.layout import planned_bytes
from frugal_rl.store.rollout import RolloutBuffer

if TYPE_CHECKING:
    from frugal_rl.run.evaluate import Player, Rows

MACHINES, STEPS, FILLED = 64, 16_384, 16
OVERRIDES = ["env=fighting_game_boy", "env.profile=roam", "env.obs=both", "env.stack=4"]
OVERRIDES += ["env.max_pool=false", "hardware.threads=1", f"algo.num_envs={MACHINES}"]


def hop_script(rows: Rows) -> np.ndarray:
    """Runs, and jumps 14 pixels before a gap."""
    edge, height = rows["features"][:, 0] * 96, rows["features"][:, 1]
    return np.where((edge <= 14) & (height == 0), 2, 1)


SCRIPTS: dict[str, Player] = {"hop_places": hop_script, "roam": Explorer()}


def actions(script: Player, rows: Rows, rng: np.random.Generator) -> np.ndarray:
    """The script on even machines, random play on odd ones."""
    chosen = rng.integers(4, size=len(rows["features"]))
    chosen[::2] = script({"features": rows["features"][::2]})
    return chosen


def in_use(column: Any) -> int:
    """Bytes of a column of frames that hold something: differences and what they refer to."""
    if not hasattr(column, "references"):
        return int(column.nbytes)
    used: int = column.pool.used * column.pool.units.itemsize
    return used + column.references.used * column.references.values[0].nbytes


def main() -> None:
    given = dict(word.split("=", 1) for word in sys.argv[2:])
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    filled = int(given.pop("machines", FILLED))
    run: Any = compose_run([*OVERRIDES, *map("=".join, given.items())])
    script = SCRIPTS[run.env.profile]
    encoding, space = run.encoding(), run.env.action_space()
    print("forms", dict(encoding.choice))
    whole = planned_bytes(encoding, STEPS, MACHINES, space)
    frames = MACHINES * STEPS
    print(f"planned: {frames:,} frames in {whole:,} B, {whole / frames:.1f} B per frame")
    env: Any = run.env.make_vec(filled, encoding, run.memory, run.vec, "train")
    buffer = RolloutBuffer(
        steps, encoding.policy_space(0), space, n_envs=filled, encoding=encoding, device="cpu"
    )
    history, rng = History(encoding, filled, 0), np.random.default_rng(0)
    rows, starts = history.reset(env.reset(0)), np.ones(filled, bool)
    zeros, begin = np.zeros(filled, np.float32), time.process_time()
    for _ in range(steps):
        acted = actions(script, rows, rng)
        buffer.add(rows, acted, zeros, starts, zeros, zeros)
        step = env.step(acted)
        rows, _ = history.push(step.rows, step.done, step.final_index, step.final_rows)
        starts = step.done.copy()
    spent, kept = time.process_time() - begin, filled * steps
    planned = planned_bytes(encoding, steps, filled, space)
    print(f"filled: {kept:,} frames in {buffer.nbytes:,} B, {planned:,} planned")
    column: Any = buffer.columns["frame"]
    used = in_use(column)
    print(f"frames: {used:,} B in use of {column.nbytes:,}, {used / kept:.1f} B per frame")
    print(f"{kept / spent:,.0f} steps per CPU second; 160 x 144 grey, stacked: {4 * 23040} B")
    env.close()


if __name__ == "__main__":
    main()
