"""A policy at play: as a film, or in a window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from fighting.cartridge.profile import Profile
from fighting.choices import Actions, Rival
from fighting.config import DuelConfig
from fighting.machine.emulator import FRAMES_PER_SECOND
from fighting.tools.pictures import Shot, packed_screen, picture, save_film
from frugal_rl.errors import ConfigError
from frugal_rl.learn.collect import to_tensors
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.history import History
from frugal_rl.run.config import RunConfig
from frugal_rl.run.play import PlayOptions, Window
from frugal_rl.run.saved import open_saved

AFTER_FRAMES = 48
"""Frames that are shown after the decision."""
WORDS = {1: "A", 2: "B", 16: "toward", 32: "away", 64: "up", 128: "down"}


def action_words(profile: Profile, action: int) -> str:
    """`down toward A`, `wave`, or `wait`."""
    if action >= len(profile.combos):
        return list(profile.macros)[action - len(profile.combos)]
    byte = profile.combos[action]
    order = (64, 128, 16, 32, 1, 2)
    return " ".join(WORDS[bit] for bit in order if byte & bit) or "wait"


def fight(run: RunConfig, policy: FrugalPolicy, level: int, seed: int) -> Iterator[Shot]:
    """One fight of the policy, a picture per action; against a level unless the run names a script.

    Each picture shows what the policy does next, both health bars and the value that it expects.
    """
    config = run.env
    assert isinstance(config, DuelConfig)
    rival = config.opponent
    if rival in (Rival.self_play, Rival.curriculum):
        rival = Rival.cpu
    config = replace(config, opponent=rival, levels=(level,), eval_levels=(), pool_share=1.0)
    env = config.make()
    encoding = run.encoding()
    edge, history = Encoder(encoding, env.tables, 1), History(encoding, 1)
    name = f"level {level}" if rival is Rival.cpu else rival.value
    try:
        _, info = env.reset(seed=seed)
        begins, over = True, False
        while not over:
            raw = {key: np.asarray(value)[None] for key, value in env.raw().items()}
            rows, _ = history.push(edge.encode(raw), np.array([begins]))
            action, value = _choose(policy, rows)
            words = (
                " ".join(f"{int(b)}" for b in action)
                if config.actions is Actions.buttons
                else action_words(config.profile, int(action))
            )
            # What render gives, not the screen: without pictures the environment goes back in time.
            screen = env.render()
            line = f"{name}  {info['hp'][0]}:{info['hp'][1]}  {words}"
            yield Shot(packed_screen(screen), line, value)
            _, _, terminated, truncated, info = env.step(action)
            begins, over = False, terminated or truncated
        machine = env.game.emulators.machines[0]
        for _ in range(AFTER_FRAMES // config.frame_skip):
            machine.tick(config.frame_skip, True)
            yield Shot(packed_screen(machine.screen), f"{name}  {info['hp'][0]}:{info['hp'][1]}")
    finally:
        env.close()


@torch.no_grad()
def _choose(policy: FrugalPolicy, rows: dict[str, np.ndarray]) -> tuple[np.ndarray, float]:
    """The likeliest action and the expected return."""
    out = policy.outputs(to_tensors(rows, policy.device))
    actions, _ = policy.head.act(out.logits, True)
    shape = policy.action_space.shape or ()
    return actions.reshape(-1, *shape).numpy(force=True)[0], float(out.value)


def watch(run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """Films `options.episodes` fights of a checkpoint, or shows them in a window.

    It meets `env.levels` where they are given now, else the levels of its evaluation in turn.
    """
    with open_saved(options.checkpoint, run) as saved:
        config = saved.run.env
        if not isinstance(config, DuelConfig):
            raise ConfigError(f"{options.checkpoint} was not trained with env=fighting.")
        named = any(word.startswith("env.levels=") for word in run.overrides)
        levels = config.levels if named else config.eval_levels or config.levels
        shots = (
            shot
            for number in range(options.episodes or (1 if options.video else 1_000_000))
            for shot in fight(
                saved.run, saved.policy, levels[number % len(levels)], run.seed + number
            )
        )
        if options.video:
            kept = list(shots)[:: options.every]
            save_film(Path(options.video), kept, config.frame_skip * options.every)
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
