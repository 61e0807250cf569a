"""The memory guide's savings table, switch by switch: what each optimisation saves per environment.

    python benchmarks/nclone_guide.py [environments] [steps] [observation] [row ...]

Every row is the "before" side with one optimisation on; "saved" is the difference to none. Arrays
are what an environment holds, by difference of one and of more environments; "per step" is the most
that a step allocates on top (tracemalloc); steps/s are of one environment after the other.
"""

import sys
import time
import tracemalloc
from dataclasses import fields

import numpy as np

from frugal_rl.run.compose import compose_run
from nclone.guide import Guide
from nclone.levels.bundled import bundled_names

GUIDE = {
    "half-precision state": "60 B",
    "no_animation": "500 KB",
    "views": "100 KB",
    "shared_levels": "200 KB",
    "buffer_reuse": "50 KB",
    "everything": "850 KB",
}
LEVELS = f"env.levels=[{','.join(bundled_names())}]"


def measure(words: list[str], count: int, steps: int) -> tuple[float, float, float]:
    """Bytes of arrays per environment, transient bytes per step, steps per second."""
    run = compose_run(["env=nclone", LEVELS, *words])
    rng = np.random.default_rng(0)
    arrays, envs = [], []
    for size in (1, 1 + count):
        env = run.env.make_vec(size, run.encoding(), run.memory, run.vec, "train")
        env.reset(0)
        for _ in range(4):
            env.step(rng.integers(0, 6, size))
        envs.append(env)
        singles = getattr(env, "singles", None)
        own = sum(env.parts().values())
        seen: set[int] = set()
        for single in singles.envs if singles is not None else ():
            game = single.game
            own += sum(game.parts().values()) + sum(single.parts().values())
            if id(game.level_table) in seen:  # one copy, counted with the first
                own -= game.level_table.nbytes + game.distances.nbytes
            seen.add(id(game.level_table))
        arrays.append(own)
    env, size = envs[-1], 1 + count
    began = time.perf_counter()
    for _ in range(steps):
        env.step(rng.integers(0, 6, size))
    speed = steps * size / (time.perf_counter() - began)
    tracemalloc.start()
    env.step(rng.integers(0, 6, size))
    tracemalloc.reset_peak()
    start = tracemalloc.get_traced_memory()[0]
    env.step(rng.integers(0, 6, size))
    peak = tracemalloc.get_traced_memory()[1] - start
    tracemalloc.stop()
    for made in envs:
        made.close()
    return (arrays[1] - arrays[0]) / count, float(peak), speed


def main(count: int, steps: int, obs: str, rows: list[str]) -> None:
    shown = [f"env.obs={obs}"]
    before = [*shown, "memory=baseline"]
    cells = [("the guide's before", before)]
    cells += [(f.name, [*before, f"env.guide.{f.name}=true"]) for f in fields(Guide)]
    if obs in ("state", "graph", "full"):
        cells.append(("half-precision state", [*before, "env.fields.game_state=half"]))
    cells.append(("everything", [*shown, "memory=lossless"]))
    print("| optimisation | arrays per env | saved | per step | steps/s | guide's figure |")
    print("|---|---|---|---|---|---|")
    first = None
    for name, words in cells:
        if rows and name not in rows and first is not None:
            continue
        arrays, peak, speed = measure(words, count, steps)
        first = arrays if first is None else first
        print(
            f"| {name} | {arrays / 1e3:,.1f} kB | {(first - arrays) / 1e3:,.2f} kB | "
            f"{peak / 1e3:,.0f} kB | {speed:,.0f} | {GUIDE.get(name, '')} |",
            flush=True,
        )


if __name__ == "__main__":
    words = sys.argv[1:]
    main(
        int(words[0]) if words else 10,
        int(words[1]) if len(words) > 1 else 20,
        words[2] if len(words) > 2 else "full",
        words[3:],
    )
