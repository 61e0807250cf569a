"""How small an environment's rows are kept that nothing is declared of: a moment of random play.

    python -m frugal_rl.run.play_rollout < request.json

Where something is compiled for it, everything is that a store may call: a tiny run is too short to
meet most of it, and compiled where a run trains it would leave 66 MiB that no plan knows of.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import FrugalError
from frugal_rl.memory.found_rows import is_found
from frugal_rl.observation.history import History
from frugal_rl.run.asked import asked_run, end_with
from frugal_rl.run.compiling import told_compiling
from frugal_rl.store.found.study import study
from frugal_rl.store.found.trial import load_kernels
from frugal_rl.store.layout import columns_of
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.store.seen import shares_in
from frugal_rl.vec_env.ending import close_all

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.store.column_spec import ColumnSpec

STEPS = 64
"""What is whole at first counts as one row in so many; a longer rollout takes less."""


def shares(run: RunConfig) -> dict[str, float]:
    """Of the size of its rows, what each field of random play takes."""
    if any(_is_coded(column) for column in columns_of(run.encoding())):
        return _coded_shares(run)
    env = run.env.make(run.seed)
    try:
        fields = study(env, STEPS, run.seed).fields
    finally:
        close_all([env])
    return {f.name: f.found_bytes / f.dense_bytes for f in fields if f.dense_bytes}


def _is_coded(column: ColumnSpec) -> bool:
    """Whether rows are written by an inner codec before it is found how to keep them."""
    codec = column.codec
    return is_found(column) and codec is not None and codec.rows.name != "dense"


def _coded_shares(run: RunConfig) -> dict[str, float]:
    """The same of rows that the environment codes, as a rollout keeps them."""
    encoding = run.encoding()
    env = run.env.make_vec(1, encoding, run.memory, run.vec.stepping(), "train")
    space = env.action_space
    try:
        rollout = RolloutBuffer(
            STEPS, encoding.policy_space(0), space, n_envs=1, encoding=encoding, device="cpu"
        )
        history, nothing = History(encoding, 1, run.env.episode_steps), np.zeros(1, np.float32)
        space.seed(run.seed)
        rows, starts = history.reset(env.reset(run.seed)), np.ones(1, bool)
        for _ in range(STEPS):
            action = np.asarray(space.sample())[None]
            rollout.add(rows, action, nothing, starts, nothing, nothing)
            step = env.step(action)
            rows, _ = history.push(step.rows, step.done, step.final_index, step.final_rows)
            starts = step.done.copy()
        return shares_in(rollout)
    finally:
        env.close()


def main() -> None:
    """Read the request, print shares by field as one line of JSON; null where it cannot be made."""
    with told_compiling() as compiling:
        try:
            answer = shares(asked_run())
        except FrugalError:
            answer = None
        if compiling.count:
            load_kernels()
    print(json.dumps(answer))


if __name__ == "__main__":
    end_with(main)
