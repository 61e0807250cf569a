"""What a replay of a run's environments is like: a moment of random play, really stored.

python -m frugal_rl.run.play_replay < request.json
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import FrugalError
from frugal_rl.learn.off_policy import stacks_of
from frugal_rl.learn.stored_rows import Source
from frugal_rl.learn.transitions import Rows, TransitionCollector
from frugal_rl.observation.decoder import Decoder
from frugal_rl.observation.history import History
from frugal_rl.run.asked import asked_run, end_with
from frugal_rl.store.replay import DictReplayBuffer
from frugal_rl.store.seen import seen_in

if TYPE_CHECKING:
    from frugal_rl.memory.replay_data import Seen
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

ENVS = 4
"""At most; more of them show the same in as many steps."""
SECONDS = 1.0
"""Of the processor, once what happens only at first is over."""
STEPS = 20_000
"""Of each environment, at most."""
ADDRESSES = 1 << 30
"""Of all rows, if nothing repeated."""
BYTES = 64 << 20
"""Play ends when so much is kept."""
FIRST_STEPS = 40
"""They load kernels; a first chain of differences is begun."""
LOOK_EVERY = 16


def play(run: RunConfig) -> Seen:
    """Random play of a few of the run's environments, as its replay would hold it."""
    n = min(ENVS, run.algo.num_envs)
    vec_env = run.env.make_vec(n, run.encoding(), run.memory, run.vec, "train")
    try:
        collector = _collector(run, vec_env)
        collector.reset(run.seed)
        _play_on(collector)
        return seen_in(collector.replay)
    finally:
        vec_env.close()


def _collector(run: RunConfig, vec_env: VectorEnv) -> TransitionCollector:
    encoding, n, episode = vec_env.encoding, vec_env.num_envs, run.env.episode_steps
    space = encoding.policy_space(episode)
    plugins = tuple(run.resolved.get("plugins") or ())
    source = Source(Decoder(encoding, vec_env.tables, plugins), space)
    row_bytes = sum(
        math.prod(s.shape or ()) * np.dtype(s.dtype).itemsize for s in space.spaces.values()
    )
    steps = max(FIRST_STEPS, min(STEPS, ADDRESSES // max(1, n * row_bytes)))
    replay = DictReplayBuffer(
        steps * n, space, vec_env.action_space, "cpu", n, frame_stack=stacks_of(encoding)
    )
    return TransitionCollector(vec_env, replay, History(encoding, n, episode), source)


def _play_on(collector: TransitionCollector) -> None:
    """Until there is no room, or time, for more."""
    replay = collector.replay
    for _ in range(FIRST_STEPS):
        collector.step(_as_drawn)
    until, most = time.process_time() + SECONDS, replay.nbytes + BYTES
    while not replay.full and time.process_time() < until:
        for _ in range(min(LOOK_EVERY, replay.buffer_size - replay.pos)):
            collector.step(_as_drawn)
        if replay.nbytes > most:
            return


def _as_drawn(obs: Rows, drawn: np.ndarray) -> np.ndarray:
    """Random actions."""
    return drawn


def main() -> None:
    """Read the request, print the answer as one line of JSON; null where it cannot be made."""
    try:
        answer = asdict(play(asked_run()))
    except FrugalError:
        answer = None
    print(json.dumps(answer))


if __name__ == "__main__":
    end_with(main)
