"""Build the bundled levels: bytes from drawings, inputs from a search where they do not win."""

from __future__ import annotations

import numpy as np

from nclone.levels.ascii import parse_drawing
from nclone.levels.bundled import FOLDER, bundled_names
from nclone.levels.level import Level, load_level
from nclone.replay.inputs import actions_of_inputs, inputs_of_actions
from nclone.search.solve import solve
from nclone.sim.world import World


def wins(level: Level, actions: np.ndarray) -> bool:
    """Whether one action per frame completes the level on the last frame."""
    world = World([level], threads=1)
    frames = world.step(actions[:, None], frames=1) if len(actions) else np.zeros(1)
    return bool(world.won[0]) and int(frames[0]) == len(actions)


def main() -> None:
    """Write `.map` files, and `.inputs` files where the old ones do not win."""
    for name in bundled_names():
        data = parse_drawing((FOLDER / f"{name}.txt").read_text())
        (FOLDER / f"{name}.map").write_bytes(data)
        level, stored = load_level(data), FOLDER / f"{name}.inputs"
        if stored.exists() and wins(level, actions_of_inputs(stored.read_bytes())):
            print(f"{name}: {stored.stat().st_size} frames, as before")
            continue
        found = solve(level)
        if found is None:
            print(f"{name}: no inputs found")
            continue
        stored.write_bytes(inputs_of_actions(found.actions))
        print(f"{name}: {found.frames} frames, found")


if __name__ == "__main__":
    main()
