"""How long wins take: trained agents beside the searcher, and one reward beside another.

    python benchmarks/npp_rl_times.py guide=RUN,RUN speedrun=RUN,RUN [--judged plain bundled]

Each `LABEL=RUN,...` names run folders of one agent, a seed each. Every test level, bundled or drawn
level is played once by each of them, looking ahead as `--samples` says (0: sampled actions alone),
and searched once, as the levels of a pool are proved. Printed are the searcher's share and
milliseconds of a level, each agent's share of episodes won, and the frames of its wins over those
of the searcher's, mean over the levels that both win; then, for each further agent, its frames over
the first one's on the levels that both win with the same seed, mean with its standard error over
levels.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from npp_rl_transfer import SEED, groups_of

from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import play_episodes, policy_player
from frugal_rl.run.saved import open_saved
from nclone.config import RewardPreset
from nclone.levels.sources import open_levels
from nclone.search.proof import Prover

if TYPE_CHECKING:
    from frugal_rl.run.saved import Saved

Names = tuple[str, ...]


def searched(names: Names) -> tuple[np.ndarray, float]:
    """[levels] frames of the searcher's wins, NaN where it finds none, and median milliseconds."""
    prover, frames, seconds = Prover(), [], []
    for level in open_levels(names, "eval"):
        began = time.process_time()
        won = prover.solution(level)
        seconds.append(time.process_time() - began)
        frames.append(np.nan if won is None else won.frames)
    return np.array(frames), 1000 * float(np.median(seconds))


def played(saved: Saved, names: Names) -> np.ndarray:
    """[levels] frames of the agent's wins, NaN where it does not win; each level once."""
    count = len(open_levels(names, "eval"))
    env: Any = replace(saved.run.env, eval_levels=names, reward=RewardPreset.guide)
    vec_env = env.make_vec(count, saved.run.encoding(), saved.run.memory, None, "eval")
    try:
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            player = policy_player(saved.run, saved.policy, vec_env, deterministic=False)
            stats = play_episodes(vec_env, player, count, SEED, saved.run.env.episode_steps)
    finally:
        vec_env.close()
    frames = np.full(count, np.nan)
    won = stats["success"] > 0
    frames[stats["level"][won].astype(int)] = stats["frames"][won]
    return frames


def share(over: np.ndarray, under: np.ndarray) -> str:
    """Mean of a ratio where both are known, with its standard error."""
    ratio = over / under
    ratio = ratio[np.isfinite(ratio)]
    error = ratio.std(ddof=1) / len(ratio) ** 0.5 if len(ratio) > 1 else np.nan
    return f"{ratio.mean():.2f} +- {error:.2f}" if len(ratio) else "-"


def row(group: str, names: Names, agents: list[list[Saved]]) -> list[str]:
    """One line of the table, of agents with several seeds each."""
    found, milliseconds = searched(names)
    wins = [np.array([played(seed, names) for seed in agent]) for agent in agents]
    cells = [
        group,
        f"{len(found)}",
        f"{100 * np.isfinite(found).mean():.0f}",
        f"{milliseconds:.1f}",
    ]
    for frames in wins:
        cells += [f"{100 * np.isfinite(frames).mean():.0f}", share(frames, found[None])]
    first, *others = wins
    return cells + [share(frames, first) for frames in others]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="+", help="LABEL=RUN,RUN,...")
    parser.add_argument("--judged", nargs="+", default=["plain", "lively", "bundled", "drawn"])
    parser.add_argument("--samples", type=int, default=16, help="of agent.lookahead")
    args = parser.parse_args()
    torch.set_num_threads(1)
    runs = {label: paths.split(",") for label, paths in (a.split("=", 1) for a in args.agents)}
    looking = f"agent.lookahead.samples={args.samples}"
    asked = compose_run(["env=nclone", "agent=attention_foresight", looking])
    first, *others = runs
    titles = ["levels", "of", "searcher, %", "ms"]
    for label in runs:
        titles += [f"{label}, %", ": searcher"]
    print(line([*titles, *(f"{label} : {first}" for label in others)]))
    print("|---" * (len(titles) + len(others)) + "|")
    with ExitStack() as opened:
        agents = [
            [opened.enter_context(open_saved(path, asked, single=True)) for path in paths]
            for paths in runs.values()
        ]
        for group, names in groups_of(args.judged):
            print(line(row(group, names, agents)), flush=True)


def line(cells: list[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
