"""The probe's process: real updates of growing size, and what each of them adds to the peak.

python -m frugal_rl.run.probe_process < request.json

A tiny run is measured as a whole beside it; what an update of the run's own size adds to that is
the chord between both sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch

from frugal_rl.errors import ConfigError, FrugalError
from frugal_rl.learn.gauge import Gauge
from frugal_rl.learn.learner import settle
from frugal_rl.learn.on_policy import OnPolicyLearner, choose_device
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.timing import line
from frugal_rl.learn.trace import heap_bytes_of
from frugal_rl.learn.update import Record, update_threads
from frugal_rl.memory.allocator import SETTLED_HOLES, pin_allocator
from frugal_rl.memory.base import TINY
from frugal_rl.memory.duration import Pace
from frugal_rl.memory.probe import Probe
from frugal_rl.run.asked import asked_run, end_with
from frugal_rl.run.compiling import told_compiling
from frugal_rl.run.probe_rows import Played, play
from frugal_rl.run.trainer import no_meter

if TYPE_CHECKING:
    from frugal_rl.learn.policy import Actor
    from frugal_rl.run.config import RunConfig

PROBE_ENVS = 16
"""Environments whose observations fill the probe's minibatches; at most the run's own."""
STEPS = 4
"""Steps of the first, complete iteration."""


def measure(run: RunConfig) -> Probe:
    """Probe in this process; it must do nothing else."""
    pin_allocator()
    config = run.algo
    if not isinstance(config, PpoConfig):
        raise ConfigError(f"algo={type(config).__name__} has no probe; PPO has one.")
    envs = min(config.num_envs, PROBE_ENVS)
    vec_env = run.env.make_vec(envs, run.encoding(), run.memory, run.vec, "train")
    played = play(run, vec_env)
    gauge = Gauge(choose_device(run.hardware.device))
    bare = gauge.held()
    learner: Any = replace(config, n_steps=STEPS, batch_size=envs * STEPS).build(run, vec_env)
    learner.iterate(no_meter)  # loads every kernel that a run will need
    settle(learner, no_meter)
    parts = learner.parts()
    kept = gauge.held() - bare - sum(parts.values())
    total = config.n_steps * config.num_envs
    at_once = min(run.memory.micro_batch or config.batch_size, config.batch_size, total)
    wanted, processes = run.hardware.threads, run.launch.processes
    torch.set_num_threads(update_threads(wanted, learner.policy, at_once, processes))
    learning = gauge.line(
        learn(learner, played, at_once), TINY["batch_size"], at_once, played.share
    )
    players = max(config.num_envs, 2)
    acting = gauge.line(act(learner.actor, played), TINY["num_envs"], players, played.share)
    updating = line(learn(learner, played, at_once), at_once)
    torch.set_num_threads(1)  # as while collecting
    pace = Pace(updating, line(act(learner.actor, played), players))
    vec_env.close()
    return Probe(
        fixed_bytes=int(max(0, kept) + learning.fixed) + engines(parts),
        bytes_per_sample=learning.per_sample,
        parameter_bytes=parts["parameters"],
        gradient_bytes=parts["gradients"],
        optimizer_bytes=parts["optimiser"],
        forward_bytes_per_sample=acting.per_sample,
        heap_bytes_per_sample=SETTLED_HOLES * (heap_bytes_of(run) or 0.0),
        pace=pace,
    )


def engines(parts: dict[str, int]) -> int:
    """Bytes of compiled engines: of the one that learns, and of one that acts beside it."""
    return parts.get("engine", 0) + parts.get("acting engine", 0)


def learn(
    learner: OnPolicyLearner, played: Played, largest: int
) -> Callable[[int], Callable[[], Any]]:
    """B -> an update on B samples of a minibatch of `largest`, drawn already."""
    update = learner.update.whole()  # without micro-batches: B is what is held
    terms = replace(learner.config.terms(0.0), target_kl=None)

    def prepared(count: int) -> Callable[[], Any]:
        observations = played.minibatch(count, largest, learner.policy.device)
        with torch.no_grad():
            actions = learner.policy(observations)[0].float()
        noise = [torch.randn(count, device=learner.policy.device) for _ in range(4)]
        batch = Minibatch(observations, actions, *noise)
        return lambda: update.learn(batch, terms, Record())

    return prepared


def act(policy: Actor, played: Played) -> Callable[[int], Callable[[], Any]]:
    """B -> acting on B observations."""

    def prepared(count: int) -> Callable[[], Any]:
        observations = played.acting(count, policy.device)

        def forward() -> None:
            with torch.no_grad():
                policy(observations)

        return forward

    return prepared


def main() -> None:
    """Read the request, print the answer as one line of JSON; or why the run is refused."""
    try:
        run = asked_run()
        with told_compiling():
            answer = measure(run).as_json()
    except FrugalError as error:
        answer = {"refused": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    end_with(main)
