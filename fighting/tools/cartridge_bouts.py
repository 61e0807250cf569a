"""Any cartridge's games between two players, and between players who each play alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.cartridge.game import CartridgeGame
from fighting.cartridge.saved_player import saved_player
from fighting.choices import Actions, Rival
from fighting.opponents.scripts import of_any_game
from fighting.opponents.snapshot import digest_of
from fighting.spec import View
from fighting.tools.contest import Contest, Contestant, Fight
from frugal_rl.errors import ConfigError
from frugal_rl.run.evaluate import PolicyPlayer, RandomPlayer, evaluation_env, play_episodes
from frugal_rl.run.saved import open_saved

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig
    from fighting.opponents.scripts import Rngs, Script
    from frugal_rl.run.config import RunConfig

SIDE_BY_SIDE = 16
CPU = "cpu"
"""The cartridge's own player, at the second pad's place."""
TYPED = ("evaluation.", "hardware.", "env.rom=", "env.allow_unknown_rom=", "env.cache=")
"""What may be typed of saved policies that play apart."""
ANCHORS = {"random": 1000.0}
"""Ratings are told against random play."""


def contest(run: RunConfig, checkpoints: Sequence[str]) -> Contest:
    """Random play, who stands still, and policies; at two pads the cartridge's own player too."""
    config: Any = run.env
    if config.game.pads is None:
        return apart(run, checkpoints)
    if config.actions is Actions.buttons:
        raise ConfigError("A tournament takes env.actions=combos or macros, one choice per step.")
    saved = [saved_player(path, config) for path in checkpoints]
    scripts = of_any_game(config.choices)
    players = [Contestant(CPU)]
    players += [Contestant(rival.value, script=script) for rival, script in scripts.items()]
    for number, player in enumerate(saved):
        players.append(Contestant(f"policy_{number}", script=player, learned=True))
    return Contest(players, against(config), ANCHORS, [player.digest for player in saved])


def against(config: GameBoyConfig) -> Fight:
    """Two players at the two pads, sides swapped half way; the cartridge's own has the second."""
    if config.game.goal is not None and config.game.goal.success is None:
        raise ConfigError(
            f"{config.game.source.at()}: no success: nobody would win a game. Add success: "
            "'p1_points > p2_points', or what the first player wants."
        )

    def fight(one: Contestant, two: Contestant, rounds: int, seed: int) -> float:
        if one.script is None:
            return rounds - fight(two, one, rounds, seed)
        if two.script is None:
            return _series(config, one.script, None, rounds, seed)
        half = rounds // 2
        first = _series(config, one.script, two.script, half, seed)
        rest = rounds - half
        return first + rest - _series(config, two.script, one.script, rest, seed + 1)

    return fight


def _series(
    config: GameBoyConfig, one: Script, two: Script | None, rounds: int, seed: int
) -> float:
    """Points of the first pad in `rounds` games; without `two` the cartridge's own player meets it.

    Against that player a draw is not won.
    """
    if not rounds:
        return 0.0
    seats, count = 1 if two is None else 2, min(SIDE_BY_SIDE, rounds)
    rival = Rival.cpu if two is None else Rival.self_play
    alone = replace(config, obs=View.ram, opponent=rival, pool_share=0.0, threads=1, rival="")
    game = CartridgeGame(alone, seats * count)
    try:
        return _played(game, [one] if two is None else [one, two], rounds, seed)
    finally:
        game.close()


def _played(game: CartridgeGame, players: Sequence[Script], rounds: int, seed: int) -> float:
    """Every machine plays its share of the rounds."""
    seats, rows = len(players), game.num_worlds
    count = rows // seats
    rngs: Rngs = [np.random.default_rng([seed, row]) for row in range(rows)]
    left = np.full(count, rounds // count)
    left[: rounds % count] += 1
    game.seed(rngs)
    game.begin(np.arange(rows))
    points, actions = 0.0, np.zeros(rows, np.int64)
    while left.any():
        seen, clock = game.observe()["features"], game.scene.steps
        for seat, player in enumerate(players):
            at = slice(seat, None, seats)
            actions[at] = player(seen[at], clock[at], rngs[at])
        told = game.advance(actions)
        over = np.flatnonzero(told.terminated | told.truncated)
        if len(over):
            won = np.zeros(rows)
            won[over] = game.outcomes(over)["success"]
            for machine in np.unique(over // seats):
                if left[machine] > 0:
                    left[machine] -= 1
                    own = won[seats * machine]
                    points += own if seats == 1 else (1 + own - won[seats * machine + 1]) / 2
            game.begin(over)
    return points


def apart(run: RunConfig, checkpoints: Sequence[str]) -> Contest:
    """Players who each play alone: of two games of two players the higher score wins."""
    config: Any = run.env
    # A policy plays with the observation and the actions that it learned with.
    kept = tuple(word for word in run.overrides if word.startswith(TYPED))
    asked = replace(run, overrides=kept)
    results = {"random": lambda: _alone(run, None)}
    if config.actions is not Actions.buttons:
        results["still"] = lambda: _alone(run, _still)
    players, digests = [Contestant(name) for name in results], []
    for number, path in enumerate(checkpoints):
        with open_saved(path, asked) as saved:
            if saved.run.env.game.id != config.game.id:
                raise ConfigError(
                    f"{path} plays {saved.run.env.game.id}, env.profile={config.profile} is "
                    f"{config.game.id}."
                )
            digests.append(digest_of(saved.policy))
        name = f"policy_{number}"
        results[name] = lambda path=path: _saved_alone(asked, path)
        players.append(Contestant(name, learned=True))
    known: Callable[[str], np.ndarray] = cache(lambda name: results[name]())

    def fight(one: Contestant, two: Contestant, rounds: int, seed: int) -> float:
        first, second = known(one.name)[:, None], known(two.name)[None]
        return float(np.mean((first > second) + (first == second) / 2)) * rounds

    return Contest(players, fight, ANCHORS, digests)


def _still(rows: Any) -> np.ndarray:
    return np.zeros(len(next(iter(rows.values()))), np.int64)


def _alone(run: RunConfig, player: Any) -> np.ndarray:
    """Scores of some episodes (what was paid, where the profile has no score); random if None."""
    env = evaluation_env(run)
    try:
        chosen = player or RandomPlayer(env.encoding, env.tables, env.action_space, run.seed)
        return _scores(play_episodes(env, chosen, run.evaluation.episodes, run.evaluation.seed, 0))
    finally:
        env.close()


def _saved_alone(run: RunConfig, path: str) -> np.ndarray:
    with open_saved(path, run) as saved:
        chosen = PolicyPlayer(saved.policy, run.evaluation.deterministic)
        episodes, seed = run.evaluation.episodes, run.evaluation.seed
        return _scores(play_episodes(saved.vec_env, chosen, episodes, seed, 0))


def _scores(stats: dict[str, np.ndarray]) -> np.ndarray:
    return stats.get("score", stats["return"])
