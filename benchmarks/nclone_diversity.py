"""How different generated levels are: length, inputs, kinds, topologies, what the script wins.

    python benchmarks/nclone_diversity.py [levels per category] [category or level name ...]

Draws recipes that the bundled pool does not hold, keeps those that are proved, and prints per
category: the median of the solution's frames and of its changes of input per second, the mean
number of tile and of entity kinds per level, those met in all of its levels, how many topologies
(`nclone.levels.topology`) differ, the frames that the search spent (median and mean over proved
levels: a measure of difficulty), and the share of test levels that following the path wins.
"""

import sys

import numpy as np

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import play_episodes
from nclone.config import NppConfig
from nclone.levels.generators import CATEGORIES, draw_recipes, generate
from nclone.levels.inputs import Inputs
from nclone.levels.level import Level
from nclone.levels.sources import open_levels
from nclone.levels.topology import topology
from nclone.search.proof import Proof, Prover
from npp_rl.heuristic import PathFollower

FIRST_SEED = 1 << 50
FRAMES_PER_SECOND = 60
HEAD = (
    "category,proved,frames,inputs/s,tile kinds,of,entity kinds,of,topologies,loops,doors,"
    "search frames,mean,follows path"
)


def main(per_category: int, names: list[str]) -> None:
    prover = Prover()
    print("| " + " | ".join(HEAD.split(",")) + " |")
    print("|---" * (HEAD.count(",") + 1) + "|")
    for name in names or CATEGORIES:
        if name in CATEGORIES:
            levels = [generate(r) for r in draw_recipes(name, per_category, FIRST_SEED)]
        else:
            levels = open_levels([name])
        proofs = [prover.prove(level) for level in levels]
        won = [(v, p.inputs, p) for v, p in zip(levels, proofs, strict=True) if p.inputs]
        print(f"| {name} | {len(won)} of {len(levels)} | {row(won)} | {followed(name):.0%} |")


def row(won: list[tuple[Level, Inputs, Proof]]) -> str:
    """The cells of one category."""
    tiles = [set(np.unique(level.tiles)) for level, _, _ in won]
    kinds = [set(np.unique(level.entities[:, 0])) for level, _, _ in won]
    graphs = [topology(level) for level, _, _ in won]
    rate = [len(i.actions) * FRAMES_PER_SECOND / i.frames for _, i, _ in won]
    spent = [p.frames_spent for _, _, p in won]
    cells = [
        f"{np.median([i.frames for _, i, _ in won]):.0f}",
        f"{np.median(rate):.1f}",
        f"{np.mean([len(t) for t in tiles]):.1f}",
        str(len(set().union(*tiles))),
        f"{np.mean([len(k) for k in kinds]):.1f}",
        str(len(set().union(*kinds))),
        str(len(set(graphs))),
        f"{np.mean([g.loops for g in graphs]):.1f}",
        f"{np.mean([g.doors for g in graphs]):.1f}",
        f"{np.median(spent):,.0f}",
        f"{np.mean(spent):,.0f}",
    ]
    return " | ".join(cells)


def followed(name: str) -> float:
    """Share of a category's test levels, or of the levels of a name, that the script wins."""
    run = compose_run(["env=nclone", "env.obs=graph", f"env.levels=[{name}]"])
    assert isinstance(run.env, NppConfig)
    count = len(run.env.open_levels("eval"))
    env = run.env.make_vec(count, run.encoding(), MemoryProfile(), None, "eval")
    stats = play_episodes(env, PathFollower(env.encoding, env.tables), count, 0, 0)
    env.close()
    return float(stats["success"].mean())


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 200, words[1:])
