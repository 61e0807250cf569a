"""What one transition takes in the replay buffers that people use: bytes, adding, drawing.

    python benchmarks/replay_peers.py [steps] [source ...]

Sources: an ALE game (Pong, ...; 84 x 84, skip 4, four frames stacked), a Gymnasium id whose
observation has an `image` (MiniGrid-...), `Duel` (72 x 80, four stacked), `N++` (36 x 52, four
stacked) or `camera` (Pendulum as a camera sees it, 3 x 64 x 64, three stacked, actions that are
numbers, as SAC takes them). Each store lies in a process of its own, gets the same transitions of
random play, and has room for all of them. Resident is the growth of the process, file-mapped pages
included, peak the most that it held; times are processor time of one thread, medians. A peer that
is not installed is skipped by name: pip install sb3-extra-buffers cpprb torchrl, best beside this
project, as they pin versions of their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import torch
from gymnasium import spaces
from stable_baselines3.common import buffers as stock

from frugal_rl import ReplayBuffer

CHUNK = 256
DRAWS = 40
CAMERA_STACK, CAMERA_SIDE = 3, 64
NEEDS = {
    "frugal_rl": "frugal_rl",
    "SB3": "stable_baselines3",
    "SB3, optimised": "stable_baselines3",
    "sb3-extra-buffers, lz4": "sb3_extra_buffers",
    "cpprb, compressed stacks": "cpprb",
    "TorchRL, memory-mapped": "torchrl",
    "TorchRL, compressed": "torchrl",
}


class Sb3Like:
    """SB3's buffer, or one with its interface."""

    def __init__(self, name: str, steps: int, space: spaces.Box, stack: int) -> None:
        actions = spaces.Box(-2, 2, (1,)) if stack == CAMERA_STACK else spaces.Discrete(18)
        if name == "frugal_rl":
            self.store = ReplayBuffer(steps, space, actions, "cpu")
        elif name.startswith("sb3-extra"):
            from sb3_extra_buffers.compressed import CompressedReplayBuffer

            self.store = CompressedReplayBuffer(
                steps, space, actions, "cpu", compression_method="lz4-block"
            )
        else:
            one = {"handle_timeout_termination": False, "optimize_memory_usage": True}
            more = one if name.endswith("optimised") else {}
            self.store = stock.ReplayBuffer(steps, space, actions, "cpu", **more)

    def add(self, now, then, action, reward, end) -> None:
        """One transition."""
        self.store.add(now[None], then[None], np.array([action]), np.array([reward]),
                       np.array([end]), [{}])  # fmt: skip

    def draw(self, size: int):
        """A minibatch."""
        return self.store.sample(size)


class Cpprb:
    """cpprb: what came next from the row after, stacks once; their axis must be the last."""

    def __init__(self, name: str, steps: int, space: spaces.Box, stack: int) -> None:
        import cpprb

        shape = (*space.shape[1:], space.shape[0])
        fields = {"obs": {"shape": shape, "dtype": space.dtype}, "act": {}, "rew": {}, "done": {}}
        self.store = cpprb.ReplayBuffer(steps, fields, next_of="obs", stack_compress="obs")

    def add(self, now, then, action, reward, end) -> None:
        """One transition."""
        now, then = (np.moveaxis(x, 0, -1) for x in (now, then))
        self.store.add(obs=now, next_obs=then, act=action, rew=reward, done=end)
        if end:
            self.store.on_episode_end()

    def draw(self, size: int):
        """A minibatch."""
        return self.store.sample(size)


class TorchRl:
    """torchrl's replay over a storage of its own."""

    def __init__(self, name: str, steps: int, space: spaces.Box, stack: int) -> None:
        from torchrl.data import CompressedListStorage, LazyMemmapStorage
        from torchrl.data import ReplayBuffer as Replay

        packed = name.endswith("compressed")
        storage = CompressedListStorage(steps) if packed else LazyMemmapStorage(steps)
        self.store = Replay(storage=storage)

    def add(self, now, then, action, reward, end) -> None:
        """One transition."""
        from tensordict import TensorDict

        rows = {"obs": torch.tensor(now), "next": torch.tensor(then)}
        self.store.add(TensorDict(rows | {"act": action, "rew": reward, "done": end}, []))

    def draw(self, size: int):
        """A minibatch."""
        return self.store.sample(size)


def build(name: str, steps: int, space: spaces.Box, stack: int):
    kind = {"cpprb": Cpprb, "TorchR": TorchRl}.get(name.split(",")[0][:6].rstrip(), Sb3Like)
    return kind(name, steps, space, stack)


def record(source: str, steps: int, file: Path) -> tuple[int, ...]:
    """Random play as raw frames and a few scalars each; returns the shape of a frame."""
    with file.open("wb") as out:
        rows = []
        for frame, row in frames_of(source, steps):
            out.write(np.ascontiguousarray(frame).tobytes())
            rows.append(row)
    np.save(file.with_suffix(".npy"), np.array(rows, np.float32))
    return frame.shape


def frames_of(source: str, steps: int):
    """The newest frame [C, ...] after each step, and action, reward, end."""
    if "-" not in source and source not in WORLDS:
        import ale_py
        import gymnasium as gym
        from replay_stores import play

        gym.register_envs(ale_py)
        for _, after, action, reward, end, _ in play(source, steps):
            yield after[0, -1:], (action[0], reward[0], end[0])
        return
    env, shown = WORLDS.get(source, minigrid)(source)
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(steps):
        action = env.action_space.sample()
        seen, reward, ended, cut, _ = env.step(action)
        yield shown(seen), (float(np.ravel(action)[0]), reward, ended or cut)
        if ended or cut:
            env.reset()


def minigrid(source: str):
    """A grid world's picture, and how its frame [3, H, W] is had."""
    import gymnasium as gym
    import minigrid  # noqa: F401 - registers its environments
    from minigrid.wrappers import RGBImgPartialObsWrapper

    env = RGBImgPartialObsWrapper(gym.make(source))
    return env, lambda seen: np.moveaxis(seen["image"], -1, 0)


def duel(source: str):
    """Our fighting game by its half-size picture."""
    import gymnasium as gym

    import fighting  # noqa: F401 - registers its environments

    env = gym.make("fighting/Duel-v0", obs="half_size")
    return env, lambda seen: np.moveaxis(seen["frame"], -1, 0)


def plus(source: str):
    """N++ by its picture of the level, as `replay_curves.py` learns from it."""
    from replay_curves import world

    return world(), lambda seen: np.moveaxis(seen, -1, 0)


def camera(source: str):
    """Pendulum as a camera sees it."""
    import cv2
    import gymnasium as gym

    env = gym.make("Pendulum-v1", render_mode="rgb_array")
    side = (CAMERA_SIDE, CAMERA_SIDE)

    def shown(_):
        small = cv2.resize(env.render(), side, interpolation=cv2.INTER_AREA)
        return np.moveaxis(small, -1, 0)

    return env, shown


WORLDS = {"Duel": duel, "N++": plus, "camera": camera}


def transitions(file: Path, shape: tuple[int, ...], stack: int):
    """Stacks before and after each step; an episode begins with zeros."""
    rows, size = np.load(file.with_suffix(".npy")), int(np.prod(shape))
    now = np.zeros((stack * shape[0], *shape[1:]), np.uint8)
    with file.open("rb") as source:
        for begin in range(0, len(rows), CHUNK):
            frames = np.frombuffer(source.read(CHUNK * size), np.uint8).reshape(-1, *shape)
            for frame, (action, reward, end) in zip(frames, rows[begin:], strict=False):
                then = np.concatenate([now[shape[0] :], frame])
                yield now, then, float(action), float(reward), bool(end)
                now = np.zeros_like(now) if end else then


def one(name: str, file: Path, shape: tuple[int, ...], stack: int, steps: int) -> None:
    """Fill a store and draw from it; prints bytes per transition, us per add, ms per draw."""
    torch.set_num_threads(1)
    space = spaces.Box(0, 255, (stack * shape[0], *shape[1:]), np.uint8)
    warm = build(name, 300, space, stack)
    for step, transition in enumerate(transitions(file, shape, stack)):
        if step == 300:
            break
        warm.add(*transition)
    warm.draw(32)
    before = psutil.Process().memory_info().rss
    store, adds = build(name, steps, space, stack), []
    for transition in transitions(file, shape, stack):
        begin = time.process_time()
        store.add(*transition)
        adds.append(time.process_time() - begin)
    each = (psutil.Process().memory_info().rss - before) / len(adds)
    draws = [timed(store, size) for size in (32, 256)]
    peak = int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) / 1024
    print(each, np.mean(adds) * 1e6, *(1e3 * d for d in draws), peak)


def timed(store, size: int) -> float:
    taken = []
    for _ in range(DRAWS):
        begin = time.process_time()
        store.draw(size)
        taken.append(time.process_time() - begin)
    return float(np.median(taken))


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        name, file, shape, stack, steps = sys.argv[2:]
        return one(name, Path(file), tuple(map(int, shape.split(","))), int(stack), int(steps))
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    sources = sys.argv[2:] or ["Pong", "Seaquest", "MiniGrid-DoorKey-8x8-v0"]
    print(f"{steps:,} transitions of each source\n")
    columns = "resident bytes | add, us (mean) | draw 32, ms | draw 256, ms | peak, MiB"
    print(f"| source | store | {columns} |\n|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            file = Path(folder) / "frames"
            shape = record(source, steps, file)
            for name, package in NEEDS.items():
                print(f"| {source} | {name} |", row(name, package, file, shape, steps), flush=True)
    return None


def row(name: str, package: str, file: Path, shape: tuple[int, ...], steps: int) -> str:
    if find_spec(package) is None:
        return f"skipped: {package} is not installed | | | | |"
    stack = stacked(shape)
    size = ",".join(map(str, shape))
    command = [sys.executable, __file__, "--one", name, str(file), size, str(stack), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1][:90]} | | | | |"
    each, add, small, large, peak = map(float, done.stdout.split()[-5:])
    return f"{each:,.0f} | {add:.0f} | {small:.2f} | {large:.2f} | {peak:,.0f} |"


def stacked(shape: tuple[int, ...]) -> int:
    """Frames that are stacked, by the shape of one."""
    if shape[1:] == (CAMERA_SIDE, CAMERA_SIDE):
        return CAMERA_STACK
    return 4 if shape[0] == 1 else 1


if __name__ == "__main__":
    main()
