"""How many bytes of a night in Crafter are chance: what no exact form, however clever, goes below.

`python benchmarks/crafter_nights.py`. The simulator's own light falls many times on one picture;
the entropy of what each pixel becomes is estimated from how often each colour comes. Beside it,
what our store takes for pictures of random play: of nights alone, of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl import FoundArray

DRAWS, EVERY, DAY, ROW_BYTES = 1024, 20, 300, 64 * 64 * 3
NIGHT = 0.5
"""Daylight below which the simulator adds noise."""
DUSK = 148
"""The step that a night begins at; the first one of a world lies at 0.3 of a day."""
ENVS = 4


def night_bits(env: Any, daylight: float) -> float:
    """Bits of chance in one picture at a daylight; pixels are independent of each other."""
    view, picture = env._local_view, env._local_view._canvas
    drawn = [view._light(picture, daylight).astype(np.uint8) for _ in range(DRAWS)]
    colours = np.stack(drawn).astype(np.int64) @ (1, 1 << 8, 1 << 16)
    counts = [np.unique(pixel, return_counts=True)[1] for pixel in colours.reshape(DRAWS, -1).T]
    return float(sum(-(c / DRAWS * np.log2(c / DRAWS)).sum() for c in counts))


def played(make: Any, steps: int, night: bool) -> list[Any]:
    """Pictures of random play, one environment after another; of nights only, or as they come."""
    shown_in_all: list[Any] = []
    for seed in range(ENVS):
        env, dice = make(seed), np.random.default_rng(seed)
        shown, done = None, True
        for _ in range(steps):
            if done or (night and env._world.daylight >= NIGHT):
                env.reset()
                env._step = DUSK if night else 0
                done = False
            shown, _, done, _ = env.step(int(dice.integers(17)))
            shown_in_all.append(shown)
    return shown_in_all


def kept_bytes(pictures: list[Any]) -> float:
    """Bytes a row of our store for a rollout of these."""
    steps = len(pictures) // ENVS
    store = FoundArray(steps, ENVS, spaces.Box(0, 255, (64, 64, 3), np.uint8))
    rows = np.array(pictures[: steps * ENVS]).reshape(ENVS, steps, 64, 64, 3)
    for _ in range(2):  # forms are chosen in the first
        for t in range(steps):
            store[t] = np.ascontiguousarray(rows[:, t])
    return store.nbytes / (steps * ENVS)


def main() -> None:
    import crafter

    env = crafter.Env(seed=0)
    env.reset()
    view = env._local_view
    light, view._light = view._light, lambda picture, daylight: picture
    view._canvas = view(env._player, env._local_view._unit)
    view._light = light
    day = 1 - np.abs(np.cos(np.pi * np.arange(0, DAY, EVERY) / DAY)) ** 3
    chance = np.array([night_bits(env, d) / 8 if d < NIGHT else 0 for d in day])
    nights = chance[chance > 0]
    every, dark = (played(lambda s: crafter.Env(seed=s), 2 * DAY, night) for night in (False, True))
    for what, bytes_ in (
        ("chance at midnight", chance.max()),
        ("chance over a night", nights.mean()),
        ("chance over a whole day", chance.mean()),
        ("kept, rows of nights", kept_bytes(dark)),
        ("kept, rows of random play", kept_bytes(every)),
    ):
        print(f"{what}: {bytes_:,.0f} B of {ROW_BYTES:,} a row, 1/{ROW_BYTES / bytes_:.1f}")


if __name__ == "__main__":
    main()
