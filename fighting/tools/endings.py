"""When an episode is over, for a profile that a probe writes: what its recipe waited for has gone.

A recipe that waits `until: phase == 1` says what playing looks like. Where that holds for most of a
recording, and stays away once it has gone, its end is the end of the game.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.meaning import Meanings
from fighting.cartridge.scene import Scene
from fighting.cartridge.start_states import condition_words
from fighting.tools.candidates import WORK_RAM, WORK_RAM_BYTES

if TYPE_CHECKING:
    from fighting.cartridge.profile import Profile


def ending(memory: np.ndarray, game: Profile, rounds: Sequence[int]) -> str | None:
    """The end that a recording (F, 8192) shows, as an expression; `rounds` are their first frames.

    A condition that looks at more than present work memory says nothing.
    """
    for step in game.start:
        if step.get("until") is None:
            continue
        words = condition_words(step["until"])
        holds = _holds(memory, game, words)
        if holds is not None and _goes_once(holds, rounds):
            return f"not ({words})"
    return None


def _holds(memory: np.ndarray, game: Profile, words: str) -> np.ndarray | None:
    """Where the condition holds [F], each frame taken for a machine of its own."""
    meanings = Meanings(game.memory)
    value = meanings.of(words)
    watched = meanings.watched
    inside = all(0 <= a - WORK_RAM < WORK_RAM_BYTES for a in watched.addresses)
    if watched.pixels or meanings.slots or not watched.addresses or not inside:
        return None
    scene = Scene.empty(len(memory), watched, 0)
    for address, column in watched.addresses.items():
        scene.memory[:, column] = memory[:, address - WORK_RAM]
    scene.pass_on()
    return value(scene) != 0


def _goes_once(holds: np.ndarray, rounds: Sequence[int]) -> bool:
    """Whether it holds as every round begins, and in some goes, never to come back."""
    pieces = np.split(holds, list(rounds)[1:])
    goes = [piece for piece in pieces if not piece.all()]
    stays_away = all(not piece[int(np.argmin(piece)) :].any() for piece in goes)
    return bool(goes) and stays_away and all(piece[0] for piece in pieces)
