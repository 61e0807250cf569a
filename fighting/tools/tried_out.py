"""A profile tried out by random play: what is missing, in words, before hours of training."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.game import CartridgeGame
from fighting.machine.emulator import PYBOY_VERSION, sha1
from frugal_rl import remembered
from frugal_rl.memory.finding import Finding, Severity
from frugal_rl.untrusted.files import read_bytes

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig

MACHINES = 4
STEPS = 1000
"""Random steps in all."""
NOISE = 0.5
"""Share of random steps that are paid, above which noise is all that a policy needs."""
SHORTEST = 5
"""Steps of a random episode, on the average, below which its end holds as it begins."""


@dataclass(frozen=True)
class Trial:
    """What random play met: shares of its steps."""

    rewarded: float
    """Steps with a reward other than 0."""
    paid: float
    """Steps with a reward above 0."""
    ended: int
    """Episodes that were over by `end`."""
    cut: int
    """Episodes that the time limit cut."""
    changes: bool
    """Whether the observation is ever another one."""


def tried_out(config: GameBoyConfig) -> list[Finding]:
    """F41 to F44 of a profile whose cartridge is at hand; else nothing."""
    if not config.rom and not any(image.bundled for image in config.game.roms):
        return []
    name = f"trial_{_fingerprint(config)}"
    kept = remembered.read(name)
    met = Trial(**kept) if kept else trial(config)
    if not kept:
        remembered.write(name, asdict(met))
    return judged(config, met)


def _fingerprint(config: GameBoyConfig) -> str:
    """All that decides what random play meets: the cartridge, its profile, settings and code."""
    game = config.game
    rom = game.open_rom(config.rom, config.allow_unknown_rom)
    named = [str(step["state"]) for step in game.start if "state" in step]
    states = [p for name in named if (p := game.source.folder / name).is_file()]
    settings = replace(config, rom=None, profile="", cache=None, threads=1, fields={})
    versions = (sys.version, np.__version__, PYBOY_VERSION)
    code = remembered.code_digest("fighting")
    read = [sha1(read_bytes(path)) for path in states]
    return remembered.fingerprint(sha1(rom), game.source.text, *read, settings, *versions, code)


def trial(config: GameBoyConfig, steps: int = STEPS) -> Trial:
    """Random play on a few machines, always from the same seed."""
    game = CartridgeGame(replace(config, threads=1), MACHINES)
    try:
        return _played(game, max(1, steps // MACHINES))
    finally:
        game.close()


def _played(game: CartridgeGame, steps: int) -> Trial:
    every = np.arange(MACHINES)
    game.action_space.seed(0)
    game.seed([np.random.default_rng([0, i]) for i in every])
    game.begin(every)
    first = {name: np.array(value) for name, value in game.observe().items()}
    rewarded = paid = ended = cut = 0
    changes = False
    for _ in range(steps):
        told = game.advance(np.stack([game.action_space.sample() for _ in every]))
        rewarded += int((told.reward != 0).sum())
        paid += int((told.reward > 0).sum())
        ended += int(told.terminated.sum())
        cut += int(told.truncated.sum())
        changes |= any((game.observe()[name] != value).any() for name, value in first.items())
        over = np.flatnonzero(told.terminated | told.truncated)
        if len(over):
            game.begin(over)
    total = steps * MACHINES
    return Trial(rewarded / total, paid / total, ended, cut, changes)


def judged(config: GameBoyConfig, met: Trial) -> list[Finding]:
    """A finding for each thing that may be missing."""
    at = config.game.source.at
    unlimited = met.ended == 0 and not config.max_steps and _no_limit(config)
    at_once = met.ended * SHORTEST > STEPS
    words = f"no episode ended in {STEPS} random steps and the profile names no time limit"
    remedy = "add time_limit: 60"
    if at_once:
        words = f"an episode is over after {STEPS / met.ended:.1f} steps: it ends as it begins"
        remedy = "begin later (start:)"
    return [
        _finding(
            "F41",
            "reward",
            met.rewarded == 0,
            f"{met.rewarded:.1%} of steps",
            f"no reward in {STEPS} random steps: a policy has nothing to begin from",
            f"{at('reward')}: pay something nearer, or begin nearer to it (start:)",
        ),
        _finding(
            "F42",
            "episode end",
            unlimited or at_once,
            f"{met.ended} ended, {met.cut} cut",
            words,
            f"{at('end')}: check its address, or {remedy}",
        ),
        _finding(
            "F43",
            "noise",
            met.paid > NOISE,
            f"{met.paid:.1%} of steps paid",
            "random play is paid in most of its steps: there is little to learn",
            f"{at('reward')}: pay a change, such as rise(score), not a value",
        ),
        _finding(
            "F44",
            "observation",
            not met.changes,
            "changes" if met.changes else "never changes",
            f"the observation was the same in {STEPS} random steps",
            f"env.obs=half_size, or other addresses in {at('features')}",
        ),
    ]


def _no_limit(config: GameBoyConfig) -> bool:
    goal = config.game.goal
    return goal is not None and not goal.time_limit


def _finding(number: str, name: str, wrong: bool, value: str, words: str, remedy: str) -> Finding:
    severity = Severity.warning if wrong else Severity.ok
    return Finding(number, name, severity, value, words if wrong else "", remedy)
