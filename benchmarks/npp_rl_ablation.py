"""What each part of the N++ agent is worth: success on test levels after equal processor time.

    python benchmarks/npp_rl_ablation.py [--cells NAME ...] [--minutes 10] [--folder FOLDER]

One cell after the other, each with cloning and PPO inside the same minutes of processor time and a
constant learning rate; two categories, one seed (`--seeds` for more). Success with sampled actions
on the 128 test levels, each played three times; intervals are Wilson's at 95 %.
"""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from npp_rl_learning import arguments, learn


@dataclass(frozen=True)
class Cell:
    """One line of the table: what differs from the line above it that it names."""

    differs_from: str
    agent: str
    overrides: tuple[str, ...] = ()


BASE, GRAPH = "path ahead", "graph"
FEWER = ("algo.cloning.batch_size=4096", "algo.cloning.epochs=5")
"""Each minibatch reads all its distinct graphs, so that small ones would take all the minutes."""
CELLS = {
    BASE: Cell("", "attention_fast"),
    "foresight": Cell(BASE, "attention_foresight"),
    "no path ahead": Cell(BASE, "attention_fast", ("agent.path_features=0",)),
    "no attention over objectives (concat)": Cell(
        BASE, "attention_fast", ("agent.objectives.head=none",)
    ),
    "no entropy bonus": Cell(BASE, "attention_fast", ("algo.ent_coef=0",)),
    "no shaping (sparse reward)": Cell(BASE, "attention_fast", ("env.reward=sparse",)),
    "curriculum": Cell(BASE, "attention_fast", ("env.curriculum=true",)),
    "no cloning": Cell(BASE, "attention_fast", ("algo.cloning.epochs=0",)),
    GRAPH: Cell(BASE, "attention_small", FEWER),
    "graph and pixels": Cell(
        GRAPH, "attention_small", (*FEWER, "env.obs=full", "agent.player_cnn=32")
    ),
}


def played(name: str, args: Namespace) -> str:
    """Learn and score one cell; its line of the table."""
    cell = CELLS[name]
    args.agent = cell.agent
    args.overrides = ["algo.learning_rate=5e-4", *cell.overrides]
    lines = []
    for seed in args.seeds:
        file = args.folder / f"{name.replace(' ', '_')}_{seed}.json"
        if not file.exists():
            file.write_text(json.dumps(learn(args, seed)))
        found = json.loads(file.read_text())
        scores = [row["score"] for row in found["trained"]["sampled"]]
        shares = " | ".join(
            f"{100 * s['means']['success']:.0f} ({100 * s['success_low']:.0f}-"
            f"{100 * s['success_high']:.0f})"
            for s in scores
        )
        cloned = " / ".join(
            f"{100 * row['score']['means']['success']:.0f}"
            for row in found["cloned only"]["sampled"]
        )
        lines.append(
            f"| {name} | {cell.differs_from} | {seed} | {cloned} | {shares} | {found['steps']:,} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = arguments()
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    parser.set_defaults(
        minutes=10.0, seeds=[0], episodes=3, steps=10**9, folder=Path("runs/npp_ablation"),
        categories=["simplest_with_mines", "simple"],
    )  # fmt: skip
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    print(f"{args.minutes:g} minutes of processor time for each cell, cloning included\n")
    names = " | ".join(f"{name}, %" for name in args.categories)
    print(f"| cell | against | seed | before PPO | {names} | PPO steps |")
    print("|---" * (5 + len(args.categories)) + "|")
    for name in args.cells:
        print(played(name, args), flush=True)


if __name__ == "__main__":
    main()
