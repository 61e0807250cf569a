"""How many bytes of a night in Crafter are chance: what no exact form, however clever, goes below.

`python benchmarks/crafter_nights.py`. The simulator's own light falls many times on one picture;
the entropy of what each pixel becomes is estimated from how often each colour comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DRAWS, EVERY, DAY, ROW_BYTES = 1024, 20, 300, 64 * 64 * 3


def night_bits(env: Any, daylight: float) -> float:
    """Bits of chance in one picture at a daylight; pixels are independent of each other."""
    view, picture = env._local_view, env._local_view._canvas
    drawn = [view._light(picture, daylight).astype(np.uint8) for _ in range(DRAWS)]
    colours = np.stack(drawn).astype(np.int64) @ (1, 1 << 8, 1 << 16)
    counts = [np.unique(pixel, return_counts=True)[1] for pixel in colours.reshape(DRAWS, -1).T]
    return float(sum(-(c / DRAWS * np.log2(c / DRAWS)).sum() for c in counts))


def main() -> None:
    import crafter

    env = crafter.Env(seed=0)
    env.reset()
    view = env._local_view
    light, view._light = view._light, lambda picture, daylight: picture
    view._canvas = view(env._player, env._local_view._unit)
    view._light = light
    day = 1 - np.abs(np.cos(np.pi * np.arange(0, DAY, EVERY) / DAY)) ** 3
    chance = np.array([night_bits(env, d) / 8 if d < 0.5 else 0 for d in day])
    nights = chance[chance > 0]
    for what, bytes_ in (
        ("at midnight", chance.max()),
        ("over a night", nights.mean()),
        ("over a whole day", chance.mean()),
    ):
        print(f"chance {what}: {bytes_:,.0f} B of {ROW_BYTES:,} a row, 1/{ROW_BYTES / bytes_:.1f}")


if __name__ == "__main__":
    main()
