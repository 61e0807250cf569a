"""The memory guide's savings table, switch by switch: what each optimisation saves per environment.

    python benchmarks/nclone_guide.py [environments] [steps] [observation]

Every row is the "before" side with one optimisation on, beside the same without it. Held bytes are
resident memory of the process, by difference of one and of more environments; arrays are what
the environments know of; "per step" is the most that one step allocates on top (tracemalloc),
averaged over the environments that step; steps/s are of one environment after the other.
"""

import gc
import sys
import time
import tracemalloc
from dataclasses import fields

import numpy as np

from frugal_rl.config import compose_run
from frugal_rl.memory import usage
from nclone.guide_switches import Guide
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


def measure(words: list[str], count: int, steps: int) -> tuple[float, float, float, float]:
    """Held bytes and arrays per environment, transient bytes per step, steps per second."""
    run = compose_run(["env=nclone", LEVELS, *words])
    rng = np.random.default_rng(0)
    held, arrays, envs = [], [], []
    for size in (1, 1, 1 + count):  # the first is a rehearsal
        gc.collect()
        before = usage.anonymous_bytes()
        env = run.env.make_vec(size, run.encoding(), run.memory, run.vec, "train")
        env.reset(0)
        for _ in range(4):
            env.step(rng.integers(0, 6, size))
        gc.collect()
        envs.append(env)
        held.append(usage.anonymous_bytes() - before)
        singles = getattr(env, "singles", None)
        own = sum(env.parts().values())
        if singles is not None:
            own += sum(sum(e.game.parts().values()) for e in singles.envs)
            own += sum(sum(e.parts().values()) for e in singles.envs if hasattr(e, "parts"))
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
    return (held[2] - held[1]) / count, (arrays[2] - arrays[1]) / count, float(peak), speed


def main(count: int, steps: int, obs: str) -> None:
    shown = [f"env.obs={obs}"]
    before = [*shown, "memory=baseline"]
    cells = [("the guide's before", before)]
    cells += [(f.name, [*before, f"env.guide.{f.name}=true"]) for f in fields(Guide)]
    if obs in ("state", "graph", "full"):
        cells.append(("half-precision state", [*before, "env.fields.game_state=half"]))
    cells.append(("everything", [*shown, "memory=lossless"]))
    print("| optimisation | held per env | saved | arrays | saved | per step | steps/s | guide |")
    print("|---|---|---|---|---|---|---|---|")
    first = None
    for name, words in cells:
        held, arrays, peak, speed = measure(words, count, steps)
        first = first or (held, arrays)
        print(
            f"| {name} | {held / 1e3:,.0f} kB | {(first[0] - held) / 1e3:,.0f} kB | "
            f"{arrays / 1e3:,.1f} kB | {(first[1] - arrays) / 1e3:,.2f} kB | "
            f"{peak / 1e3:,.0f} kB | {speed:,.0f} | {GUIDE.get(name, '')} |",
            flush=True,
        )


if __name__ == "__main__":
    words = sys.argv[1:]
    main(
        int(words[0]) if words else 10,
        int(words[1]) if len(words) > 1 else 20,
        words[2] if len(words) > 2 else "full",
    )
