"""The rules of a profile, compiled: reward, end, success, score, features, the side one stands on.

A profile with expressions says them itself; of a fight they follow from health and phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.meaning import Meanings
from fighting.cartridge.profile import HEALTH, Goal, Profile
from fighting.cartridge.rule import Rule, rule_of
from fighting.cartridge.source import Source, Text
from fighting.choices import Weights
from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    from fighting.cartridge.scene import Scene


@dataclass(frozen=True)
class CartridgeRules:
    """What one step of a game is worth, for N machines at once."""

    meanings: Meanings
    reward: Mapping[str, Rule]
    end: Rule | None
    success: Rule | None
    score: Rule | None
    features: Mapping[str, Rule]
    left_side: Rule
    """1 where the own figure stands left of the other, so that `toward` is right."""

    def shown(self, scene: Scene) -> np.ndarray:
        """What `features:` say, [N, F] float32."""
        found = [rule(scene) for rule in self.features.values()]
        return np.vstack(found).T.astype(np.float32)

    def begin(self, scene: Scene, which: np.ndarray) -> None:
        """New episodes in the machines listed."""
        self.meanings.begin(scene, which)

    def keep(self, scene: Scene) -> None:
        """One more step."""
        self.meanings.keep(scene)


def compiled(profile: Profile, weights: Weights, accept_guesses: bool = False) -> CartridgeRules:
    """The rules of a profile; `weights` count in a fight only."""
    meanings = Meanings(profile.memory)
    goal = profile.goal or fight(profile, weights)

    def rule(text: Text | None) -> Rule | None:
        return None if text is None else rule_of(meanings, text)

    rules = CartridgeRules(
        meanings,
        {name: rule_of(meanings, text) for name, text in goal.reward.items()},
        rule(goal.end),
        rule(goal.success),
        rule(goal.score),
        {name: rule_of(meanings, text) for name, text in profile.features.items()},
        rule_of(meanings, _side(profile)),
    )
    if profile.goal is not None and weights != Weights():
        raise ConfigError(
            f"env.reward has no effect: {profile.source.at('reward')} says what is paid. Change it."
        )
    for name in sorted(meanings.used) if profile.goal is not None else HEALTH:
        profile.check_sure(name, accept_guesses)
    return rules


def fight(profile: Profile, weights: Weights) -> Goal:
    """The rules of a fight: shares of a full health bar, knock-outs, rounds that are over."""
    for name in HEALTH:
        profile.address(name)
    values = ", ".join(map(str, profile.ko_values))
    down = {name: f"one_of({name}, {values})" for name in HEALTH}
    share = {n: f"if({down[n]}, 0, {n} / {profile.address(n).max})" for n in HEALTH}
    own, his = HEALTH
    parts = {
        "dealt": f"{weights.dealt} * fall({share[his]})",
        "taken": f"-{weights.taken} * fall({share[own]})",
        "ko": f"{weights.ko} * (({down[his]}) - ({down[own]}))",
        "time": f"-{weights.time}",
    }
    end = f"{down[own]} or {down[his]}"
    phase = profile.memory.get("phase")
    if phase is not None and phase.addr is not None and (phase.over or phase.match_over):
        end += f" or one_of(phase, {', '.join(map(str, (*phase.over, *phase.match_over)))})"
    return Goal(
        {name: _own(text, profile.source, name) for name, text in parts.items()},
        _own(end, profile.source, "end"),
        _own(f"{share[own]} > {share[his]}", profile.source, "success"),
    )


def _side(profile: Profile) -> Text:
    """Where the profile knows both places; else as at the start."""
    places = [profile.memory.get(n) for n in ("p1_x", "p2_x")]
    known = all(place is not None and place.addr is not None for place in places)
    return _own("p1_x <= p2_x" if known else "1", profile.source, "p1_x")


def _own(text: str, source: Source, name: str) -> Text:
    return Text(text, ("memory", name), source)
