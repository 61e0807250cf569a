"""Frames per second of the N++ simulator on a CUDA device, beside a `World` in the same run.

python benchmarks/nclone_cuda.py [--worlds 65536] [--steps 50]

Steps of four frames with automatic restart on the maps of `simulator.py`; actions are kept from
step to step with probability 0.9, and are copied to the device within the time. At the end all
fields of all worlds are compared: whole numbers by value, floats by their largest deviation.
Where numba's CUDA simulator plays (NUMBA_ENABLE_CUDASIM=1), its frames per second say nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
from numba import config
from simulator import load_maps, sticky_actions

from frugal_rl.errors import ConfigError
from nclone.sim import state as st
from nclone.sim.cuda import DeviceWorld, cuda
from nclone.sim.world import World

FRAMES_A_STEP = 4


def seconds(step: Callable[[np.ndarray], object], actions: np.ndarray) -> float:
    """Wall seconds of all steps but the first, which compiles."""
    step(actions[0])
    cuda.synchronize()
    begun = time.perf_counter()
    for row in actions[1:]:
        step(row)
    cuda.synchronize()
    return time.perf_counter() - begun


def deviations(here: World, there: DeviceWorld) -> tuple[int, float]:
    """Whole numbers that differ, and the largest deviation of a float."""
    different, furthest = 0, 0.0
    for one, other in zip(here.arrays, there.snapshot(), strict=True):
        for name in one.dtype.names:
            if one.dtype[name].base.kind == "f":
                apart = np.abs(one[name] - other[name])
                furthest = max(furthest, float(apart.max(initial=0.0)))
            else:
                different += int((one[name] != other[name]).sum())
    return different, furthest


def main() -> None:
    """Print both rates, their ratio and how far apart the worlds end."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worlds", type=int, default=65536)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    levels = list(load_maps().values())
    world = World(levels, np.arange(args.worlds) % len(levels))
    try:
        device = DeviceWorld(world)
    except ConfigError as refusal:
        sys.exit(f"nothing measured: {refusal}")
    actions = sticky_actions(args.steps + 1, args.worlds)
    frames = args.worlds * args.steps * FRAMES_A_STEP
    there = seconds(lambda row: device.step(row, FRAMES_A_STEP, st.RESTART), actions)
    here = seconds(lambda row: world.step(row, FRAMES_A_STEP, st.RESTART), actions)
    different, furthest = deviations(world, device)
    name = "numba's simulator" if config.ENABLE_CUDASIM else cuda.get_current_device().name
    print(f"{name}: {args.worlds} worlds, {frames:,} frames")
    print(f"device {frames / there:,.0f} frames/s, World on {world.pace.threads} threads "
          f"{frames / here:,.0f} frames/s, ratio {here / there:.2f}")  # fmt: skip
    print(f"{different} whole numbers differ; largest deviation of a float {furthest:g}")
    sys.exit(0 if different == 0 and furthest <= 1e-9 else 1)


if __name__ == "__main__":
    main()
