"""The observation of a fight, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from fighting.machine.emulator import SCREEN
from fighting.machine.frames import CROP_TOP, EXPECTED_SHARE, HALF, GreyCodec
from fighting.signals import FEATURES, SIGNALS, features
from frugal_rl.observation.codecs.pooled import DeltaCodec, FoundCodec
from frugal_rl.observation.spec import AnyField, Derived, ObservationSpec, Stored

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding

DUELS = (GreyCodec(), DeltaCodec(GreyCodec(), EXPECTED_SHARE))
"""Forms of Duel's screen of four shades; of a delta the rollout keeps what differs from before."""
ANY_GAMES = (GreyCodec(), FoundCodec(GreyCodec()))
"""The same of any game, of which nobody knows how much of its screen moves."""


class View(Enum):
    """What the policy observes."""

    ram = "ram"
    """48 features of the cartridge's memory; nothing is rendered."""
    rgb = "rgb"
    """The screen in colour: the guide's form."""
    gray = "gray"
    """The screen in grey values; stored as two bits per pixel where a game has four shades."""
    half_size = "half_size"
    """Means of 2 x 2 pixels."""
    both = "both"
    """Grey screen and features."""


@dataclass(frozen=True)
class Camera:
    """Which picture is taken: its form, its rows, how many of them the policy sees at once."""

    view: View
    crop: bool = False
    stack: int = 4

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one frame."""
        height = SCREEN[0] - (CROP_TOP if self.crop else 0)
        if self.view is View.half_size:
            return height // 2, HALF[1]
        return (height, SCREEN[1], 3) if self.view is View.rgb else (height, SCREEN[1])

    @property
    def renders(self) -> bool:
        """Whether a picture is needed at all."""
        return self.view is not View.ram

    @property
    def hides_health(self) -> bool:
        """Whether the health bars are cut off and no features tell them either."""
        return self.crop and self.renders and self.view is not View.both


def observation_spec(
    camera: Camera, four_shades: bool = True, named: int | None = None
) -> ObservationSpec:
    """The fields of a view; `four_shades` offers the two-bit form.

    `named` is the number of features of a profile, in the place of Duel's.
    """
    fields: list[AnyField] = []
    if camera.renders:
        packable = four_shades and camera.view in (View.gray, View.both)
        fields.append(
            Stored(
                "frame",
                camera.shape,
                np.uint8,
                0,
                255,
                "the screen after the action",
                codecs=(DUELS if named is None else ANY_GAMES) if packable else (),
                window=camera.stack,
            )
        )
    if named is not None and camera.view in (View.ram, View.both):
        about = "the profile's features"
        fields.append(Stored("features", (named,), np.float32, -np.inf, np.inf, about))
    elif camera.view in (View.ram, View.both):
        fields.append(
            Stored(
                "signals",
                (SIGNALS,),
                np.uint8,
                0,
                255,
                "the game's memory, own seat first",
                observed=False,
            )
        )
        fields.append(
            Derived(
                "ram",
                (FEATURES,),
                np.float32,
                -1,
                1,
                "health, places, states, timing, waves",
                sources=("signals",),
                derive=features,
                twin="fighting.derive:features",
            )
        )
    return ObservationSpec(tuple(fields))


def packed_form(encoding: Encoding) -> str:
    """The form of a frame that a game writes by itself, two bits per pixel; or none."""
    form = encoding.choice.get("frame", "")
    return form if form in ("packed", "delta", "found") else ""
