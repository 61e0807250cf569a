"""What is worth how much: the reward presets as values of two frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np


class TerminalPotential(Enum):
    """The potential of a state after death or win.

    `zero` is what policy invariance needs (F = -Phi(s)), `keep` shapes on as if the episode went
    on, `none` adds nothing on the last step.
    """

    zero = "zero"
    keep = "keep"
    none = "none"


class TimePenalty(Enum):
    """`fixed` per frame, or `progressive` by the share of the frame limit that is spent."""

    fixed = "fixed"
    progressive = "progressive"


class Discount(Enum):
    """Whether gamma of the shaping term counts per environment step or per frame."""

    step = "step"
    frame = "frame"


class Reach(Enum):
    """The distance at which the objective's potential ends.

    `area` is the specification's S = 12 px sqrt(reachable nodes); in long narrow levels it ends
    far from the spawn point. `path` is the greater of S and the whole way from the spawn point to
    the switch, or from the switch to the door, so that every state feels its objective.
    """

    area = "area"
    path = "path"


@dataclass(frozen=True)
class Shaping:
    """F(s, s') = scale * (gamma * Phi(s') - Phi(s)), Phi a weighted sum clipped to [0, 1]."""

    objective: float = 0.3
    """Weight of 1 - min(1, path distance to the current objective / reach)."""
    hazard: float = 0.12
    """Weight of 1 - exp(-distance to the nearest reachable deadly mine / 100 px)."""
    impact: float = 0.09
    """Weight of 1 - risk of dying by the impact on floor or ceiling."""
    scale: float = 1.0
    reach: Reach = Reach.area
    terminal: TerminalPotential = TerminalPotential.zero
    discount: Discount = Discount.step


@dataclass(frozen=True)
class Reward:
    """Value of every component; `guide` is the default preset."""

    completed: float = 20.0
    completion_bonus: float = 2.0
    """Times max(0, 1 - frames / completion_bonus_frames)."""
    completion_bonus_frames: float = 5000.0
    speed: float = 0.0
    """Times the frames of the best known solution over those of the win, at most twice; counts as
    completion bonus. Levels without a known solution are refused unless it is 0."""
    death: float = -2.0
    """Replaces all other terms of that step except the end of shaping."""
    death_by_mine: float = -3.0
    truncation: float = -2.0
    switch: float = 2.0
    time_penalty: TimePenalty = TimePenalty.fixed
    time: float = -0.003
    """Per frame."""
    progressive_time: tuple[float, float, float] = (-0.001, -0.003, -0.006)
    """Per frame below 30 %, up to 70 % and above 70 % of the frame limit."""
    standing: float = -0.05
    """Per frame of action 0 with |vx| and |vy| below 0.1."""
    buffered_jump: float = 0.02
    exploration: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Per newly visited cell of 24, 96, 192 and 384 px."""
    shaping: Shaping = field(default_factory=Shaping)

    def __post_init__(self) -> None:
        for name in ("progressive_time", "exploration"):  # OmegaConf returns tuples as lists
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.progressive_time) != 3 or len(self.exploration) != 4:
            raise ValueError(
                "env.reward.progressive_time needs 3 values and env.reward.exploration needs 4; "
                f"got {self.progressive_time} and {self.exploration}."
            )
        if self.completion_bonus_frames <= 0:
            raise ValueError("env.reward.completion_bonus_frames must be positive.")

    def weights(self) -> np.ndarray:
        """The same values as a record that the kernels read."""
        return np.array(
            [
                (
                    self.completed,
                    self.completion_bonus,
                    self.completion_bonus_frames,
                    self.death,
                    self.death_by_mine,
                    self.truncation,
                    self.switch,
                    (self.time,) * 3
                    if self.time_penalty is TimePenalty.fixed
                    else self.progressive_time,
                    self.standing,
                    self.buffered_jump,
                    self.exploration,
                    self.shaping.objective,
                    self.shaping.hazard,
                    self.shaping.impact,
                    self.shaping.scale,
                    list(TerminalPotential).index(self.shaping.terminal),
                    self.shaping.discount is Discount.frame,
                    self.shaping.reach is Reach.path,
                )
            ],
            WEIGHTS_DTYPE,
        )


WEIGHTS_DTYPE = np.dtype(
    [
        ("completed", "f8"),
        ("completion_bonus", "f8"),
        ("completion_bonus_frames", "f8"),
        ("death", "f8"),
        ("death_by_mine", "f8"),
        ("truncation", "f8"),
        ("switch", "f8"),
        ("time", "f8", 3),
        ("standing", "f8"),
        ("buffered_jump", "f8"),
        ("exploration", "f8", 4),
        ("objective", "f8"),
        ("hazard", "f8"),
        ("impact", "f8"),
        ("scale", "f8"),
        ("terminal", "i8"),
        ("discount_per_frame", "?"),
        ("reach_path", "?"),
    ]
)

PRESETS = {
    "guide": Reward(),
    "sparse": Reward(
        completed=1.0,
        completion_bonus=0.0,
        death=0.0,
        death_by_mine=0.0,
        truncation=0.0,
        switch=0.0,
        time=0.0,
        standing=0.0,
        buffered_jump=0.0,
        shaping=Shaping(objective=0.0, hazard=0.0, impact=0.0),
    ),
    "october": Reward(
        completed=1.0,
        completion_bonus=0.0,
        death=-0.5,
        death_by_mine=-0.5,
        truncation=0.0,
        switch=0.1,
        time=-0.01,
        standing=0.0,
        buffered_jump=0.0,
        shaping=Shaping(objective=1.0, hazard=0.0, impact=0.0, scale=0.05),
    ),
    "speedrun": Reward(completed=10.0, completion_bonus=0.0, speed=10.0),
}
"""guide: the specification's table; sparse: the win alone; october: its small-scale variant;
speedrun: half of a win's worth depends on its time against the best known solution."""
