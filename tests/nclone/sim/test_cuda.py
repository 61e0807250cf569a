"""Kernels for a CUDA device, checked without one: in numba's simulator, and as PTX."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from frugal_rl.invocation import installing

ROOT = Path(__file__).resolve().parents[3]
REFUSED = """
import sys
from nclone.levels.bundled import bundled_level
from nclone.sim.world import World
assert "numba.cuda" not in sys.modules
world = World([bundled_level("walk")], begun=False)
if "missing" in sys.argv:
    sys.modules["numba.cuda"] = None
from nclone.sim.cuda import DeviceWorld
DeviceWorld(world)
"""
PLAYED = """
import sys
import numpy as np
from nclone.levels.bundled import bundled_level
from nclone.sim import state as st
from nclone.sim.cuda import BLOCK, DeviceWorld
from nclone.sim.world import World

random = np.random.default_rng(0)

def same(world, device):
    for here, there in zip(world.arrays, device.snapshot()):
        assert here.shape == there.shape
        for name in here.dtype.names:
            assert here[name].tobytes() == there[name].tobytes(), name

def play(names):
    levels, count = [bundled_level(name) for name in names.split(",")], BLOCK + 5
    world = World(levels, random.integers(0, len(levels), count), threads=1)
    device, untouched = DeviceWorld(world), world.snapshot()
    for on_end in (st.RUN_ON, st.STOP, st.RESTART):
        for _ in range(int(sys.argv[1])):
            actions = np.repeat(random.integers(0, 6, (30, count)), 3, axis=0)
            device.step(actions, 4, on_end)
            executed = world.step(actions, 4, on_end)
            assert (device.executed.copy_to_host() == executed).all()
            same(world, device)
            ended, some = world.ended.copy(), random.permutation(count)[:7]
            ids = random.integers(0, len(levels), len(some))
            for either in (world, device):
                either.reset(ended)
                either.reset(some, ids)
            same(world, device)
    for name in ("x", "head"):
        assert (device.read(name) == world.worlds[name]).all(), name
    for name in ("frame", "restarts", "gold"):
        print(name, int(device.read(name).max()), int(untouched.worlds[name].max()))
    for refused in (lambda: device.reset(levels=len(levels)), lambda: device.step(np.zeros(3))):
        try:
            refused()
        except (IndexError, ValueError) as refusal:
            print(refusal)

for names in sys.argv[2:]:
    play(names)
"""
LIVELY = "drone,thwump,trap_door,bounce_block,death_ball"
STILL = "walk,mines,locked_door,launch_pad"
EVERY_PLAYED = [
    "jump,fall,switch_first,slope,wall_jump,long_maze",
    "one_way,walk,drone,mines,bounce_block,thwump,death_ball,trap_door,locked_door,launch_pad",
]


def python(*words, **environment):
    """A new process: which CUDA target Numba has is settled when it is imported."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, *words], env=given, capture_output=True, text=True)


@pytest.mark.parametrize("word", ["missing", ""])
def test_where_kernels_cannot_be_played_the_refusal_names_the_way_out(word):
    installed = not word and find_spec("numba_cuda")
    said = "NUMBA_ENABLE_CUDASIM=1" if installed else installing("cuda")
    done = python("-c", REFUSED, word, NUMBA_ENABLE_CUDASIM="0", CUDA_VISIBLE_DEVICES="-1")
    last = done.stderr.splitlines()[-1]

    assert last.startswith("frugal_rl.errors.ConfigError: ")
    assert said in last
    assert "nclone.sim.world.World plays the same frames" in last


def played(calls, *levels):
    done = python("-c", PLAYED, str(calls), *levels, NUMBA_ENABLE_CUDASIM="1")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_device_plays_resets_and_reads_as_a_world_in_numbas_simulator():
    said = played(1, LIVELY, STILL)

    for count in (5, 4):
        assert f"Level ids {count}..{count} do not fit a table of {count}." in said
    assert said.count("pass [37] or [T, 37]") == 2
    assert re.findall(r"restarts (\d+) 0", said)[0] != "0"


@pytest.mark.slow
def test_all_bundled_levels_play_in_numbas_simulator():
    played(8, *EVERY_PLAYED)


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")
@pytest.mark.skipif(not find_spec("nvidia"), reason="libNVVM (nvidia-nvvm) is not installed")
@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc to run PTX with")
def test_what_the_kernels_compile_to_plays_as_a_world_to_the_bit():
    done = python("benchmarks/nclone_ptx.py", "--frames", "40", NUMBA_ENABLE_CUDASIM="0")

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("| 0 |") == 4  # products and sums that are one instruction
    assert done.stdout.count(": 0 of ") == 2


@pytest.mark.gpu
@pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")
def test_a_device_that_is_there_plays_as_a_world():
    done = python("benchmarks/nclone_cuda.py", "--worlds", "1000", "--steps", "100")
    if done.stderr.startswith("nothing measured"):
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("0 whole numbers differ")
