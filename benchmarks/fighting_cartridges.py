"""The small cartridges learned from their profiles, and from profiles that the probe wrote alone.

    python benchmarks/fighting_cartridges.py [steps] [episodes] [overrides of scripts/train.py]

Hop and Stack, seeds 0, 1, 2, `experiment=cartridge_features`. What an episode is paid by the
profile of its row: random play, a script of one line, and the policy as it learns. `hop found` is
the profile that `scripts/play.py probe=true` writes after watching random play, unedited. Bytes per
transition are what the rollout holds, beside what was planned for it.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import torch
from stable_baselines3.common.utils import set_random_seed

from fighting.cartridge.config import GameBoyConfig
from fighting.machine.emulator import sha1
from fighting.rom import HOP, STACK
from fighting.tools.address_search import search
from fighting.tools.joypad import opened
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import (
    Player,
    PolicyPlayer,
    RandomPlayer,
    Rows,
    evaluation_env,
    play_episodes,
)
from frugal_rl.store.layout import planned_bytes

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

SEEDS = (0, 1, 2)
POINTS = 4
"""How often a policy is tried out while it learns."""


def hop_script(rows: Rows) -> np.ndarray:
    """Runs, and jumps 14 pixels before a gap."""
    seen = rows["features"]
    return np.where((seen[:, 0] * 96 <= 14) & (seen[:, 2] == 0), 2, 1)


def stack_script(rows: Rows) -> np.ndarray:
    """Moves over the two lowest columns and drops."""
    seen = rows["features"]
    column, heights = np.round(seen[:, 4] * 4), seen[:, 6:12]
    goal = np.maximum(heights[:, :-1], heights[:, 1:]).argmin(axis=1)
    return np.where(column > goal, 1, np.where(column < goal, 2, 4))


SCRIPTS = {"hop": hop_script, "stack": stack_script}


def paid(run: RunConfig, player: Player, episodes: int) -> tuple[float, float]:
    """Mean of what an episode pays and of its score (nan where the profile names none)."""
    env = evaluation_env(run)
    try:
        with torch.random.fork_rng():
            stats = play_episodes(env, player, episodes, run.evaluation.seed, 0)
    finally:
        env.close()
    total = sum(values for name, values in stats.items() if name.startswith("paid_"))
    return float(np.mean(total)), float(stats.get("score", np.full(1, np.nan)).mean())


def told(label: str, found: tuple[float, float], rest: str = "") -> None:
    """One line of the table."""
    print(f"{label:<28}{found[0]:>9.2f}{found[1]:>9.2f}  {rest}", flush=True)


def learned(name: str, run: RunConfig, episodes: int) -> None:
    """One seed to its end, tried out `POINTS` times; its rollout's bytes, held and planned."""
    set_random_seed(run.seed)
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner, algo, start = run.algo.build(run, env), run.algo, time.process_time()
    spent = 0.0
    for point in range(1, POINTS + 1):
        while learner.num_steps < point * algo.total_steps // POINTS:
            learner.iterate(lambda phase: nullcontext())
        spent += time.process_time() - start
        label = f"{name} seed {run.seed} {learner.num_steps:>8,}"
        told(label, paid(run, PolicyPlayer(learner.policy, True), episodes), f"{spent:.0f} CPU s")
        start = time.process_time()
    transitions = algo.num_envs * algo.n_steps
    planned = planned_bytes(run.encoding(), algo.n_steps, algo.num_envs, env.action_space)
    parts = learner.collector.rollout.parts()
    held = sum(held for part, held in parts.items() if part != "rollout/minibatch")
    print(
        f"{name} seed {run.seed}: {held / transitions:.1f} B per transition held, "
        f"{planned / transitions:.1f} planned, {held - planned:+d} B of {planned} apart"
    )
    env.close()


def found_by_probe(name: str, folder: str) -> list[str]:
    """Overrides of the profile that the probe writes alone."""
    profile, rom, emulator = opened(GameBoyConfig(profile=name))
    list(search(emulator, profile, folder=folder, rom=sha1(rom)))
    image = {"hop": HOP, "stack": STACK}[name].image
    path = Path(folder) / f"{name}_found.yaml"
    return [f"env.profile={path}", f"env.rom={image}", "env.accept_guesses=true"]


def main() -> None:
    words = [word for word in sys.argv[1:] if "=" not in word]
    steps, episodes = ([int(word) for word in words] + [120_000, 32][len(words) :])[:2]
    base = ["env=fighting_game_boy", "experiment=cartridge_features", f"algo.total_steps={steps}"]
    base += ["hardware.threads=1", f"evaluation.episodes={episodes}"]
    base += [word for word in sys.argv[1:] if "=" in word]
    print(f"{'player':<28}{'paid':>9}{'score':>9}")
    with TemporaryDirectory() as folder:
        for name, script in SCRIPTS.items():
            both = (
                (name, [f"env.profile={name}"]),
                (f"{name} found", found_by_probe(name, folder)),
            )
            for label, profile in both:
                runs = [compose_run([*base, *profile, f"seed={seed}"]) for seed in SEEDS]
                env = evaluation_env(runs[0])
                noise = RandomPlayer(env.encoding, env.tables, env.action_space, 0)
                env.close()
                told(f"{label} random play", paid(runs[0], noise, episodes))
                if label == name:
                    told(f"{label} script", paid(runs[0], script, episodes))
                for run in runs:
                    learned(label, run, episodes)


if __name__ == "__main__":
    main()
