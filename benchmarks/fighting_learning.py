"""How fast Duel is learned: seeds side by side in one process, evaluated on fixed seeds.

    python benchmarks/fighting_learning.py seeds=0,1,2 every=20000 episodes=30 env=fighting ...

Further words are overrides of `scripts/train.py`. Seconds are those of the processor that one seed
took (learning and fighting, without its evaluations), so that busy machines can be compared.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext

from stable_baselines3.common.utils import set_random_seed

from frugal_rl.config import compose_run
from frugal_rl.train.evaluate import PolicyPlayer, Score, evaluation_env, play_episodes


def main() -> None:
    own = {"seeds": "0,1,2", "every": "20000", "episodes": "30"}
    words = [w for w in sys.argv[1:] if w.partition("=")[0] not in own]
    own |= dict(w.split("=") for w in sys.argv[1:] if w.partition("=")[0] in own)
    every, episodes = int(own["every"]), int(own["episodes"])
    runs = [compose_run([*words, f"seed={seed}"]) for seed in own["seeds"].split(",")]
    learners, used = [], [0.0] * len(runs)
    for run in runs:
        set_random_seed(run.seed)
        env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
        learners.append(run.algo.build(run, env))
    trial = evaluation_env(runs[0])
    print(f"{'seed':>4} {'steps':>9} {'cpu s':>7} {'wall s':>7}  success by level", flush=True)
    begin = time.perf_counter()
    while learners[0].num_steps < runs[0].algo.total_steps:
        for i, learner in enumerate(learners):
            before, start = learner.num_steps, time.process_time()
            learner.iterate(lambda phase: nullcontext())
            used[i] += time.process_time() - start
            if learner.num_steps // every > before // every:
                player = PolicyPlayer(learner.policy, True)
                line = _line(play_episodes(trial, player, episodes, 1_000_003, 0))
                wall = time.perf_counter() - begin
                head = f"{runs[i].seed:>4} {learner.num_steps:>9,} {used[i]:>7.0f} {wall:>7.0f}"
                print(f"{head}  {line}", flush=True)


def _line(stats: dict) -> str:
    levels = stats.pop("level")
    parts = []
    for level in sorted(set(levels.astype(int))):
        chosen = {name: values[levels == level] for name, values in stats.items()}
        score = Score.of(chosen)
        low, high = score.success_low, score.success_high
        parts.append(
            f"cpu_{level} {score.means['success']:.0%} ({low:.0%}-{high:.0%}, {score.episodes})"
        )
    return ", ".join(parts)


if __name__ == "__main__":
    main()
