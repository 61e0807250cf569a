"""Roam explored: policies that learn from its features, beside random play and the explorer.

    python benchmarks/fighting_roam.py OUT.png [steps] [episodes] [seeds=0,1,2] [long=20000]
        [overrides of scripts/train.py]

Episodes of 5,000 steps while it is learned, all rows as in fighting_cartridges.py (its lines are
kept in benchmarks/results/fighting_cartridges_roam.csv); then `long` steps, as the profile has
them, by each player on four machines. OUT.png shows where one machine of each has been.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from fighting_cartridges import compared
from stable_baselines3.common.utils import set_random_seed

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.game import CartridgeGame
from fighting.machine import roam
from fighting.spec import View

if TYPE_CHECKING:
    from frugal_rl.run.evaluate import Player

matplotlib.use("Agg")
from matplotlib import pyplot as plt

OWN = {"seeds": "0,1,2", "long": "20000"}
MACHINES = 4
BASE = ["env=fighting_game_boy", "experiment=cartridge_features", "env.profile=roam"]
BASE += ["env.max_steps=5000", "hardware.threads=1"]
BASE += ["evaluation.deterministic=false", "evaluation.num_envs=8"]
SHADES = np.array([0, 0, 0.25, 0.1, 0.6, 0.85, 0.85, 0.95])
"""Of tiles by their numbers: trees and walls are dark, doors grey."""


def walked(name: str, player: Player, steps: int) -> np.ndarray:
    """Prints what a player meets in `steps` steps; (128, 256, 3) float64, one machine's map."""
    config = GameBoyConfig(profile="roam", obs=View.ram, threads=1, max_steps=steps + 1)
    game = CartridgeGame(config, MACHINES)
    game.seed([np.random.default_rng([1000, n]) for n in range(MACHINES)])
    game.begin(np.arange(MACHINES))
    set_random_seed(1000)
    for _ in range(steps):
        game.advance(player(game.observe()))
    places = np.array([roam.trodden(machine).sum() for machine in game.emulators.machines])
    regions, doors, keys = (
        np.mean([machine.memory[address] for machine in game.emulators.machines])
        for address in (roam.REGIONS, roam.DOORS, roam.KEYS)
    )
    spread = np.std(places) / np.sqrt(MACHINES)
    print(
        f"{name:<28}{places.mean():>9.0f} +-{spread:>5.0f}{regions:>9.2f}{doors:>9.2f}"
        f"{doors + keys:>9.2f}",
        flush=True,
    )
    picture = painted(roam.world(game.emulators.machines[0]))
    game.close()
    return picture


def painted(tiles: np.ndarray) -> np.ndarray:
    """(128, 256) tiles -> (128, 256, 3): grey, and orange where the walker has been."""
    picture = np.repeat(SHADES[tiles][..., None], 3, axis=2)
    picture[tiles == roam.GRASS] = (0.95, 0.5, 0.1)
    picture[tiles == roam.KEY] = (0.1, 0.4, 0.9)
    return picture


def drawn(out: str, pictures: dict[str, np.ndarray]) -> None:
    """One panel per player."""
    figure, panels = plt.subplots(len(pictures), 1, figsize=(7.2, 3.9 * len(pictures)))
    for panel, (name, picture) in zip(panels, pictures.items(), strict=True):
        panel.imshow(picture, interpolation="nearest")
        panel.set(title=name, xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(out, dpi=100)


def main() -> None:
    out, *words = sys.argv[1:]
    given = dict(word.split("=", 1) for word in words if "=" in word)
    own = OWN | {key: given.pop(key) for key in OWN if key in given}
    numbers = [int(word) for word in words if "=" not in word]
    steps, episodes = (numbers + [400_000, 8][len(numbers) :])[:2]
    base = [*BASE, f"algo.total_steps={steps}", f"evaluation.episodes={episodes}"]
    print(f"{'player':<28}{'paid':>9} {'error':>7}{'score':>9}")
    players = compared("roam", [*base, *map("=".join, given.items())], own["seeds"], episodes)
    heads = f"{'places':>9} {'error':>7}{'regions':>9}{'doors':>9}{'keys':>9}"
    print(f"{own['long'] + ' steps':<28}{heads}")
    pictures = {name: walked(name, player, int(own["long"])) for name, player in players.items()}
    policy = next(name for name in pictures if name.startswith("seed"))
    drawn(out, {name: pictures[name] for name in ("random play", policy, "script")})


if __name__ == "__main__":
    main()
