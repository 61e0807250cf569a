"""A policy at play: as a film, or in a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fighting.choices import Emulation, Rival
from fighting.machine.emulator import FRAMES_PER_SECOND
from fighting.tools.pictures import Shot, packed_screen, pages, picture, save_film
from frugal_rl.errors import ConfigError
from frugal_rl.observation.decoder import to_tensors
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.history import History
from frugal_rl.run.play import PlayOptions, Window
from frugal_rl.run.saved import open_saved

if TYPE_CHECKING:
    from fighting.cartridge.env import GameBoyEnv
    from fighting.cartridge.profile import Profile
    from fighting.env import DuelEnv
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig

UNUSED = ("solver", "report", "crop", "deterministic")
"""Options of `scripts/play.py` that change nothing on a Game Boy."""
AFTER_FRAMES = 48
"""Frames that are shown after the decision."""
WORDS = {64: "up", 128: "down", 16: "toward", 32: "away", 1: "A", 2: "B", 4: "select", 8: "start"}


def action_words(profile: Profile, action: int) -> str:
    """`down toward A`, `wave`, or `wait`."""
    if action >= len(profile.combos):
        return list(profile.macros)[action - len(profile.combos)]
    byte = profile.combos[action]
    return " ".join(word for bit, word in WORDS.items() if byte & bit) or "wait"


@dataclass(frozen=True)
class Shown:
    """What there is to watch of an environment.

    `shots` films one episode: run, policy, level, seed. `levels` are those that it may be of:
    the run, and whether they were named for watching.
    """

    shots: Callable[[RunConfig, FrugalPolicy, int, int], Iterator[Shot]]
    levels: Callable[[RunConfig, bool], tuple[int, ...]]


def fight(run: RunConfig, policy: FrugalPolicy, level: int, seed: int) -> Iterator[Shot]:
    """One fight of the policy, a picture per action; against a level unless the run names a script.

    Each picture shows what the policy does next, both health bars and the value that it expects.
    """
    config: Any = run.env
    rival = config.opponent
    if rival in (Rival.self_play, Rival.mixed, Rival.curriculum):
        rival = Rival.cpu
    shown = replace(config, opponent=rival, levels=(level,), eval_levels=(), pool_share=1.0)
    config = replace(shown, emulator=Emulation.pyboy)
    name = f"level {level}" if rival is Rival.cpu else rival.value
    env = config.make()
    env.game.emulators.films = True

    def line() -> str:
        health = env.health()
        return f"{name}  {health[0]}:{health[1]}"

    try:
        yield from _episode(run, policy, env, config.profile, line, seed)
        machine = env.game.emulators.machines[0]
        for _ in range(AFTER_FRAMES // config.frame_skip):
            machine.tick(config.frame_skip, True)
            yield Shot(packed_screen(machine.screen), line())
    finally:
        env.close()


def game(run: RunConfig, policy: FrugalPolicy, level: int, seed: int) -> Iterator[Shot]:
    """One game of the policy on a cartridge; each picture shows what has been paid so far."""
    config: Any = run.env
    if config.plays_itself:
        config = replace(config, opponent=config.eval_opponent)
    env = config.make()
    env.game.emulators.drawn = True

    def line() -> str:
        return f"paid {sum(float(total[0]) for total in env.game.totals.values()):.2f}"

    try:
        yield from _episode(run, policy, env, config.game, line, seed)
        yield Shot(packed_screen(env.render()), line())
    finally:
        env.close()


def _episode(
    run: RunConfig,
    policy: FrugalPolicy,
    env: DuelEnv | GameBoyEnv,
    profile: Profile,
    line: Callable[[], str],
    seed: int,
) -> Iterator[Shot]:
    """A picture per action until the episode is over, with what `line` says at that moment."""
    encoding = run.encoding()
    encoder, history = Encoder(encoding, env.tables, 1), History(encoding, 1)
    env.reset(seed=seed)
    begins, over = True, False
    while not over:
        raw = {key: np.asarray(value)[None] for key, value in env.raw().items()}
        rows, _ = history.push(encoder.encode(raw), np.array([begins]))
        action, value = _choose(policy, rows)
        words = (
            " ".join(f"{int(b)}" for b in action)
            if action.ndim
            else action_words(profile, int(action))
        )
        # What render gives, not the screen: without pictures the environment goes back in time.
        yield Shot(packed_screen(env.render()), f"{line()}  {words}", value)
        _, _, terminated, truncated, _ = env.step(action)
        begins, over = False, terminated or truncated


@torch.no_grad()
def _choose(policy: FrugalPolicy, rows: dict[str, np.ndarray]) -> tuple[np.ndarray, float]:
    """The likeliest action and the expected return."""
    out = policy.outputs(to_tensors(rows, policy.device))
    actions, _ = policy.head.act(out.logits, True)
    shape = policy.action_space.shape or ()
    return actions.reshape(-1, *shape).numpy(force=True)[0], float(out.value)


def levels_of(run: RunConfig, named: bool) -> tuple[int, ...]:
    """The levels of Duel that are met."""
    config: Any = run.env
    levels: tuple[int, ...] = config.levels if named else config.eval_levels or config.levels
    return levels


DUEL = Shown(fight, levels_of)
CARTRIDGE = Shown(game, lambda run, named: (0,))
"""Without levels one episode is like another."""


def spectate(run: RunConfig, options: PlayOptions, shown: Shown) -> Iterator[str]:
    """Films `options.episodes` episodes of a checkpoint, or shows them in a window.

    On Duel it meets `env.levels` where they are given now, else those of its evaluation in turn.
    """
    options.without(run.env.name, *UNUSED, "record", "probe")
    with open_saved(options.checkpoint, run, single=True) as saved:
        config: Any = saved.run.env
        if type(config) is not type(run.env):
            raise ConfigError(f"{options.checkpoint} was not trained with env={run.env.name}.")
        levels = shown.levels(saved.run, any(w.startswith("env.levels=") for w in run.overrides))
        shots = (
            shot
            for number in range(options.episodes or (1 if options.video else 1_000_000))
            for shot in shown.shots(
                saved.run, saved.policy, levels[number % len(levels)], run.seed + number
            )
        )
        if options.video:
            kept = list(shots)[:: options.every]
            save_film(Path(options.video), pages(kept), config.frame_skip * options.every)
            yield f"Film: {options.video} ({len(kept)} pictures)"
            return
        _show(shots, options, FRAMES_PER_SECOND / config.frame_skip)


def _show(shots: Iterator[Shot], options: PlayOptions, rate: float) -> None:
    window, count = None, 0
    try:
        for shot in shots:
            image = np.asarray(picture(shot, 3).convert("RGB"))
            window = window or Window("Duel", image.shape, options.scale)
            count += 1
            if window.show(image, rate).closed or count == options.frames:
                return
    finally:
        if window is not None:
            window.close()
