"""The small cartridges learned from their profiles, and from profiles that the probe wrote alone.

    python benchmarks/fighting_cartridges.py [steps] [episodes] [only=hop,hop_found,volley,...]
        [seeds=0,1,2] [overrides of scripts/train.py]

Hop, Stack, Roam (fighting_roam.py says more of it) and Volley, `experiment=cartridge_features`.
What an episode is paid by the profile of its row: random play, a script, and the policy as it
learns. `hop found`, `stack found`, `roam found` and `duel found` are the profiles that
`scripts/play.py probe=true` writes after watching random play, unedited (Duel's computer at level
3); a script is paid by them, too, and still sees the features of the cartridge's own. `volley
marked` is what `probe=replay` writes of a recorded game of the script, with marks 10 to 60 frames
late: in random play the rival's points rise more often than one's own. Policies take
their likeliest action, or with `evaluation.deterministic=false` draw one. Bytes per transition are
what the rollout holds, beside what was planned for it. Every line is kept in
benchmarks/results/fighting_cartridges_NAME.csv, which fighting_cartridges_curves.py draws.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import torch
import yaml
from fighting_explorer import Explorer
from stable_baselines3.common.utils import set_random_seed

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.env import GameBoyEnv
from fighting.cartridge.reading import FOLDER
from fighting.machine.emulator import Emulator, sha1
from fighting.rom import DUEL, HOP, ROAM, STACK, VOLLEY
from fighting.spec import View
from fighting.tools.address_search import search
from fighting.tools.joypad import opened
from fighting.tools.listening import heard
from fighting.tools.marks import Mark, Moment, write_marks
from fighting.tools.replay import CartridgeReplay
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import (
    Player,
    PolicyPlayer,
    RandomPlayer,
    Rows,
    evaluation_env,
    play_episodes,
)
from frugal_rl.run.play import PlayOptions, Probe
from frugal_rl.store.layout import planned_bytes

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

OWN = {
    "only": "hop,hop_found,stack,stack_found,volley,volley_marked,duel_found",
    "seeds": "0,1,2",
}
RESULTS = Path(__file__).parent / "results"
MARKED: dict[str, dict[Mark, Callable[[Emulator], int]]] = {
    "volley": {
        Mark.gained: lambda emulator: emulator.memory[0xC018],
        Mark.lost: lambda emulator: emulator.memory[0xC019],
    },
}
"""What a person sees rise: both players' points."""
MARKED_STEPS = 1500
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


def volley_script(rows: Rows) -> np.ndarray:
    """Follows the ball, within four pixels."""
    below = rows["features"][:, 0] * 105
    return np.where(below < -4, 1, np.where(below > 4, 2, 0))


SCRIPTS: dict[str, Player] = {
    "hop": hop_script,
    "stack": stack_script,
    "volley": volley_script,
    "roam": Explorer(),
}
IMAGES = {"hop": HOP, "stack": STACK, "volley": VOLLEY, "duel": DUEL, "roam": ROAM}


class Table:
    """Prints what was found, and keeps it as rows of a file."""

    def __init__(self, name: str) -> None:
        self.path = RESULTS / f"fighting_cartridges_{name.replace(' ', '_')}.csv"
        self.name, self.rows = name, [("player", "steps", "cpu_s", "paid", "error", "score")]

    def add(self, player: str, steps: int, spent: float, found: dict[str, np.ndarray]) -> None:
        """One line: what `found` paid per episode, its standard error, the score."""
        paid = sum(values for name, values in found.items() if name.startswith("paid_"))
        mean, error = float(np.mean(paid)), float(np.std(paid) / np.sqrt(np.size(paid)))
        score = float(found["score"].mean()) if "score" in found else float("nan")
        text = f"{self.name} {player} {steps:,}" if steps else f"{self.name} {player}"
        print(f"{text:<28}{mean:>9.2f} +-{error:>5.2f}{score:>9.2f}  {spent:.0f} CPU s", flush=True)
        self.rows.append(
            (player, str(steps), f"{spent:.1f}", f"{mean:.3f}", f"{error:.3f}", f"{score:.3f}")
        )
        RESULTS.mkdir(exist_ok=True)
        with self.path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(self.rows)


def tried(run: RunConfig, player: Player, episodes: int) -> dict[str, np.ndarray]:
    """Statistics of episodes, the same ones for every player."""
    env = evaluation_env(run)
    try:
        with torch.random.fork_rng():
            return play_episodes(env, player, episodes, run.evaluation.seed, 0)
    finally:
        env.close()


def learned(table: Table, run: RunConfig, episodes: int) -> Player:
    """One seed to its end, tried out `POINTS` times; its rollout's bytes, held and planned."""
    set_random_seed(run.seed)
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner, algo, start = run.algo.build(run, env), run.algo, time.process_time()
    spent = 0.0
    for point in range(1, POINTS + 1):
        while learner.num_steps < point * algo.total_steps // POINTS:
            learner.iterate(lambda phase: nullcontext())
        spent += time.process_time() - start
        player = PolicyPlayer(learner.policy, run.evaluation.deterministic)
        found = tried(run, player, episodes)
        table.add(f"seed {run.seed}", learner.num_steps, spent, found)
        start = time.process_time()
    transitions = algo.num_envs * algo.n_steps
    planned = planned_bytes(run.encoding(), algo.n_steps, algo.num_envs, env.action_space)
    parts = learner.collector.rollout.parts()
    held = sum(held for part, held in parts.items() if part != "rollout/minibatch")
    print(
        f"{table.name} seed {run.seed}: {held / transitions:.1f} B per transition held, "
        f"{planned / transitions:.1f} planned, {held - planned:+d} B of {planned} apart"
    )
    env.close()
    return player


def found_by_probe(name: str, folder: str) -> list[str]:
    """Overrides of the profile that the probe writes alone."""
    profile, rom, emulator = opened(GameBoyConfig(profile=name))
    list(search(emulator, profile, folder=folder, rom=sha1(rom)))
    image = IMAGES[name].image
    path = Path(folder) / f"{name}_found.yaml"
    return [f"env.profile={path}", f"env.rom={image}", "env.accept_guesses=true"]


def seen_by_the_script(name: str, folder: str) -> list[str]:
    """Overrides of the same profile with the features that the cartridge's script reads."""
    own = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    found = yaml.safe_load((Path(folder) / f"{name}_found.yaml").read_text())
    found |= {"memory": own["memory"] | found["memory"], "features": own["features"]}
    path = Path(folder) / f"{name}_scripted.yaml"
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    return [f"env.profile={path}", f"env.rom={IMAGES[name].image}", "env.accept_guesses=true"]


def found_by_marks(name: str, folder: str) -> list[str]:
    """The same by marks: the script plays a recorded game, and somebody says late what happened."""
    config = GameBoyConfig(profile=name, obs=View.ram, threads=1, warmup_noop_max=0, press_frames=0)
    env, rng = GameBoyEnv(config, seed=0), np.random.default_rng(0)
    seen, _ = env.reset(seed=0)
    emulator, game = env.game.emulators.machines[0], config.game
    rom = game.open_rom(None)
    replay, moments, script = CartridgeReplay(rom, emulator.save()), [], SCRIPTS[name]
    before = [read(emulator) for read in MARKED[name].values()]
    for step in range(MARKED_STEPS):
        away = step // 75 % 3 == 2  # who always plays well loses nothing
        action = 0 if away else int(script({"features": seen["features"][None]})[0])
        replay.frames += bytes([game.combos[action]]) * config.frame_skip
        seen, *_ = env.step(action)
        now = [read(emulator) for read in MARKED[name].values()]
        for mark, old, new in zip(MARKED[name], before, now, strict=True):
            if new > old:
                late = config.frame_skip * step + int(rng.integers(10, 61))
                moments.append(Moment(late, mark))
        before = now
    path = Path(folder) / f"{name}_1.replay"
    replay.save(path, emulator)
    env.close()
    marks = path.with_suffix(".csv")
    kept = [moment for moment in moments if moment.frame < replay.length]
    write_marks(marks, sorted(kept, key=lambda moment: moment.frame))
    asked = PlayOptions(probe=Probe.replay, replay=str(path), marks=str(marks), record=folder)
    list(heard(replay, asked, game, sha1(rom)))
    written = f"env.profile={Path(folder) / f'{name}_found.yaml'}"
    return [written, f"env.rom={IMAGES[name].image}", "env.accept_guesses=true"]


def compared(
    label: str, overrides: list[str], seeds: str, episodes: int, scripted: list[str] | None = None
) -> dict[str, Player]:
    """Random play, the script where there is one, and each seed; the players by their names.

    `scripted` are the overrides with which the script plays, where they are other ones.
    """
    runs = [compose_run([*overrides, f"seed={seed}"]) for seed in seeds.split(",")]
    env, table = evaluation_env(runs[0]), Table(label)
    noise: Player = RandomPlayer(env.encoding, env.tables, env.action_space, 0)
    env.close()
    players = {"random play": noise}
    table.add("random play", 0, 0.0, tried(runs[0], noise, episodes))
    name = label.removesuffix(" found")
    if name in SCRIPTS:
        players["script"] = SCRIPTS[name]
        run = compose_run([*scripted, f"seed={runs[0].seed}"]) if scripted else runs[0]
        table.add("script", 0, 0.0, tried(run, players["script"], episodes))
    return players | {f"seed {run.seed}": learned(table, run, episodes) for run in runs}


def main() -> None:
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    own = OWN | {key: given[key] for key in OWN if key in given}
    words = [word for word in sys.argv[1:] if "=" not in word]
    steps, episodes = ([int(word) for word in words] + [300_000, 32][len(words) :])[:2]
    base = ["env=fighting_game_boy", "experiment=cartridge_features", f"algo.total_steps={steps}"]
    base += ["hardware.threads=1", f"evaluation.episodes={episodes}"]
    base += [f"{key}={value}" for key, value in given.items() if key not in OWN]
    chosen = own["only"].split(",")
    print(f"{'player':<28}{'paid':>9} {'error':>7}{'score':>9}")
    with TemporaryDirectory() as folder:
        for name in IMAGES:
            if name in chosen:
                compared(name, [*base, f"env.profile={name}"], own["seeds"], episodes)
            if f"{name}_marked" in chosen:
                marked = [*base, *found_by_marks(name, folder)]
                compared(f"{name} marked", marked, own["seeds"], episodes)
            if f"{name}_found" in chosen:
                found = [*base, *found_by_probe(name, folder)]
                scripted = [*base, *seen_by_the_script(name, folder)] if name in SCRIPTS else None
                compared(f"{name} found", found, own["seeds"], episodes, scripted)


if __name__ == "__main__":
    main()
