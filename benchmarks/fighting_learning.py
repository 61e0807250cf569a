"""How fast Duel is learned: seeds side by side in one process, evaluated on fixed seeds.

    python benchmarks/fighting_learning.py NAME [seeds=0,1,2] [every=200000] [episodes=90]
        [final=200] [baselines=0] [minutes=45] [stop=1.01] [overrides of scripts/train.py]
    python benchmarks/fighting_learning.py NAME seeds=none baselines=100 [players=...] [overrides]

Writes benchmarks/results/fighting_learning_NAME.csv (one row per seed, evaluation and level) and a
checkpoint per seed under runs/learning/NAME. `cpu` is the processor time that one seed took to
fight and learn, without evaluations; `wall` is the clock since the start, with everything, all
seeds together. `minutes` ends the run by the clock; a seed that won the share `stop` at every
level in two evaluations in a row is done; minutes=0 takes the checkpoints that an earlier run of
that name left. `final` fights against each of the eight levels end it (0: none), on PyBoy whatever
`env.emulator` is. Random play and the scripts meet `env.eval_levels`, `baselines` fights each, on
PyBoy and the same evaluation seeds, or those of them that `players` names; scripts see the
game's memory also where the policy sees pictures. `spammer` presses toward and B in every step: a
policy that wins no more often than it has learned no more than one action.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3.common.utils import set_random_seed

from fighting.choices import Emulation
from fighting.opponents.scripts import SCRIPTS, Script
from fighting.spec import View
from fighting.tools.spectator import action_words
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import (
    Player,
    PolicyPlayer,
    RandomPlayer,
    Rows,
    evaluation_env,
    play_episodes,
    wilson,
)
from frugal_rl.run.identity import identity

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

RESULTS = Path(__file__).parent / "results"
OWN = {"seeds": "0,1,2", "every": "200000", "episodes": "90", "final": "200"}
OWN |= {"baselines": "0", "minutes": "45", "stop": "1.01", "players": ""}
Row = tuple[str, int, float, float, int, int, int]
"""Seed or player, steps, processor seconds, wall seconds, level, episodes, won."""


def won_by_level(run: RunConfig, player: Player, episodes: int) -> Iterator[tuple[int, int, int]]:
    """Level, episodes, won; as many episodes for each of `env.eval_levels`."""
    env = evaluation_env(run)
    try:
        with torch.random.fork_rng():
            stats = play_episodes(env, player, episodes, run.evaluation.seed, 0)
    finally:
        env.close()
    levels = stats["level"].astype(int)
    for level in sorted(set(levels.tolist())):
        at = levels == level
        yield level, int(at.sum()), int(stats["success"][at].sum())


class Seed:
    """One run: its learner, and the processor time that it has used."""

    def __init__(self, run: RunConfig, name: str) -> None:
        set_random_seed(run.seed)
        env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
        self.run, self.learner, self.cpu = run, run.algo.build(run, env), 0.0
        self.folder = Path("runs/learning") / name / f"seed{run.seed}"
        self.random = torch.get_rng_state()
        self.good = 0

    def iterate(self) -> bool:
        """One iteration with this seed's own random numbers; whether an evaluation is due."""
        torch.set_rng_state(self.random)
        before, start = self.learner.num_steps, time.process_time()
        self.learner.iterate(lambda phase: nullcontext())
        self.cpu += time.process_time() - start
        self.random = torch.get_rng_state()
        every = self.run.evaluation.every_steps
        return bool(self.learner.num_steps // every > before // every)

    def tried(self, wall: float, episodes: int, run: RunConfig | None = None) -> list[Row]:
        """An evaluation as rows; prints a line."""
        run = run or self.run
        player = Counted(PolicyPlayer(self.learner.policy, True), self.run)
        found = list(won_by_level(run, player, episodes))
        steps = self.learner.num_steps
        head = f"{self.run.seed:>6} {steps:>9,} {self.cpu:>7.0f} {wall:>7.0f}"
        print(head, "  ", words(found), "|", player.favourite(), flush=True)
        rows: list[Row] = []
        for found_at_level in found:
            rows.append((str(self.run.seed), steps, self.cpu, wall, *found_at_level))
        return rows

    def load(self) -> None:
        """The policy that an earlier run saved."""
        content = load_checkpoint(self.folder)
        self.learner.policy.load_state_dict(content["learner"]["policy"])
        self.learner.num_steps = int(content["num_steps"])

    def done(self, rows: list[Row], stop: float) -> bool:
        """Whether the last two evaluations were good enough."""
        self.good = self.good + 1 if all(row[6] >= stop * row[5] for row in rows) else 0
        return self.good >= 2

    def save(self) -> None:
        """A checkpoint that evaluate, play and the tournament read."""
        content: dict[str, Any] = {
            "identity": identity(self.run),
            "config": dict(self.run.resolved),
            "overrides": list(self.run.overrides),
            "num_steps": self.learner.num_steps,
            "learner": {"policy": dict(self.learner.policy.state_dict())},
        }
        save_checkpoint(self.folder / "checkpoints" / "last.pt", content)


def words(found: list[tuple[int, int, int]]) -> str:
    """`level 5: 96 % (91-98)` for each level."""
    parts = []
    for level, episodes, won in found:
        low, high = wilson(won, episodes)
        parts.append(f"level {level}: {won / episodes:.0%} ({low:.0%}-{high:.0%})")
    return ", ".join(parts)


class Counted:
    """A player whose actions are counted: a policy that repeats one has learned little."""

    def __init__(self, player: Player, run: RunConfig) -> None:
        self.player, self.run = player, run
        self.count: Counter[int] = Counter()

    def __call__(self, rows: Rows) -> np.ndarray:
        """What the player does."""
        actions = self.player(rows)
        self.count.update(np.asarray(actions).tolist())
        return actions

    def favourite(self) -> str:
        """The most frequent action and its share of the steps."""
        (action, times), *_ = self.count.most_common(1)
        name = action_words(self.run.env.profile, action)
        return f"{name} in {times / self.count.total():.0%} of the steps"


class ScriptPlayer:
    """A script in the policy's seat; its clock counts steps, whichever episode they belong to."""

    def __init__(self, script: Script, seed: int) -> None:
        self.script, self.clock = script, 0
        self.rng = np.random.default_rng(seed)

    def __call__(self, rows: Rows) -> np.ndarray:
        """Signals [N, 24] -> combos [N]."""
        signals = np.asarray(rows["signals"])
        clock = np.full(len(signals), self.clock)
        self.clock += 1
        return self.script(signals, clock, [self.rng] * len(signals))


def baselines(run: RunConfig, each: int, only: str) -> Iterator[Row]:
    """Random play and the scripts against `env.eval_levels`, `each` fights per level."""
    run = replace(run, env=replace(run.env, obs=View.ram, emulator=Emulation.pyboy))
    env = evaluation_env(run)
    players: dict[str, Player] = {
        "random play": RandomPlayer(env.encoding, env.tables, env.action_space, 0)
    }
    env.close()
    players |= {rival.value: ScriptPlayer(script, 0) for rival, script in SCRIPTS.items()}
    for name in only.split(",") if only else players:
        player = players[name]
        found = list(won_by_level(run, player, each * len(run.env.eval_levels)))
        print(f"{name:>12}  {words(found)}", flush=True)
        yield from ((name, 0, 0.0, 0.0, *value) for value in found)


def main() -> None:
    name = sys.argv[1]
    given = dict(word.split("=", 1) for word in sys.argv[2:])
    own = OWN | {key: given[key] for key in OWN if key in given}
    overrides = [word for word in sys.argv[2:] if word.partition("=")[0] not in OWN]
    overrides += [
        f"evaluation.every_steps={own['every']}",
        f"evaluation.episodes={own['episodes']}",
    ]
    numbers = [n for n in own["seeds"].split(",") if n != "none"]
    seeds = [Seed(compose_run([*overrides, f"seed={n}"]), name) for n in numbers]
    begin = time.perf_counter()
    if seeds:
        print(f"{'seed':>6} {'steps':>9} {'cpu s':>7} {'wall s':>7}   won (95 %)", flush=True)
    if own["minutes"] == "0":
        for seed in seeds:
            seed.load()
    elif seeds:
        learn(seeds, name, own, begin)
    ends = list(at_the_end(seeds, int(own["final"]), begin))
    if int(own["baselines"]):
        run = compose_run([*overrides, "seed=0"])
        ends += baselines(run, int(own["baselines"]), own["players"])
    if ends:
        write(f"fighting_learning_{name}_final.csv", ends)


def learn(seeds: list[Seed], name: str, own: dict[str, str], begin: float) -> None:
    """Iterations of the seeds in turn, until each is done or the minutes are over."""
    rows: list[Row] = []
    active = list(seeds)
    while active and time.perf_counter() - begin < 60 * float(own["minutes"]):
        for seed in list(active):
            done = False
            if seed.iterate():
                found = seed.tried(time.perf_counter() - begin, int(own["episodes"]))
                seed.save()
                rows += found
                write(f"fighting_learning_{name}.csv", rows)
                done = seed.done(found, float(own["stop"]))
            if done or seed.learner.num_steps >= seed.run.algo.total_steps:
                seed.save()
                active.remove(seed)


def at_the_end(seeds: list[Seed], final: int, begin: float) -> Iterator[Row]:
    """The last evaluation, `final` fights against each level, and a checkpoint of each seed."""
    if not final:
        return
    print(f"at the end, {final} fights against each level", flush=True)
    for seed in seeds:
        env = replace(seed.run.env, eval_levels=tuple(range(8)), emulator=Emulation.pyboy)
        every = replace(seed.run, env=env)
        yield from seed.tried(time.perf_counter() - begin, 8 * final, every)


def write(name: str, rows: list[Row]) -> None:
    """A CSV with a head."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / name).open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("player", "steps", "cpu_s", "wall_s", "level", "episodes", "won"))
        table.writerows((p, s, f"{c:.1f}", f"{w:.1f}", *rest) for p, s, c, w, *rest in rows)


if __name__ == "__main__":
    main()
