"""The contract of environments: they show what they declare, and every storage tells the same."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env as gymnasium_check
from numpy.testing import assert_array_equal

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import FrameStack, Label, Storage
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding, offered
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import ObservationSpec, Static, Stored
from frugal_rl.testing.codec import assert_same_bits
from frugal_rl.vec_env.foreign import as_raw
from frugal_rl.vec_env.serial import Serial


def check_env(config: Any, steps: int = 200, seed: int = 0, gymnasium_checks: bool = True) -> None:
    """Assert that an `EnvConfig` keeps its contract over random rollouts with resets.

    Its plain environment passes Gymnasium's checker and gives equal episodes for equal seeds; its
    raw fields agree with the spec; its lossless rows decode to the same observation as dense ones,
    bit for bit, and derived fields equal what the environment itself computes for them.

    Example:
        >>> from frugal_rl.testing.toy import Toy
        >>> check_env(Toy(), steps=20)
    """
    if gymnasium_checks:
        gymnasium_check(config.make(seed), skip_render_check=True)
    check_determinism(config, min(steps, 50), seed)
    check_raw_fields(config, min(steps, 50), seed)
    check_storages_agree(config, steps, seed)


def check_determinism(config: Any, steps: int, seed: int) -> None:
    """Two environments with one seed give equal observations and rewards."""
    one, other = config.make(), config.make()
    a, b = one.reset(seed=seed)[0], other.reset(seed=seed)[0]
    one.action_space.seed(seed)
    for _ in range(steps):
        assert_observations_equal(a, b)
        action = one.action_space.sample()
        (a, *rest), (b, *others) = one.step(action), other.step(action)
        assert rest[:3] == others[:3]
        if rest[1] or rest[2]:
            a, b = one.reset()[0], other.reset()[0]


def check_raw_fields(config: Any, steps: int, seed: int) -> None:
    """Raw fields have the declared shapes, dtypes and ranges; derived ones equal `derive`."""
    spec: ObservationSpec = config.spec()
    env: gym.Env[Any, Any] = config.make()
    core = as_raw(env, spec)
    core.restart(seed)
    env.action_space.seed(seed)
    for _ in range(steps):
        raw = core.raw()
        for name, table in spec.id_rows().items():
            if name in raw:
                assert 0 <= int(raw[name]) < len(core.tables[table]), name
        for f in spec.fields:
            if f.name in raw:
                value = np.asarray(raw[f.name])
                assert value.shape == f.shape, f"{f.name}: {value.shape}, declared {f.shape}"
                assert value.dtype == np.dtype(f.dtype), f"{f.name}: {value.dtype}"
                assert f.low <= value.min(initial=f.low), f.name
                assert value.max(initial=f.high) <= f.high, f.name
        _, terminated, truncated, _ = core.advance(env.action_space.sample())
        if terminated or truncated:
            core.restart()


def check_storages_agree(config: Any, steps: int, seed: int) -> None:
    """The dense and the lossless encoding decode to equal observations over a rollout."""
    spec: ObservationSpec = config.spec()
    memory = MemoryProfile()
    dense = Encoding.choose(spec, Storage.dense, FrameStack.copies)
    encodings = [dense, *lossless_encodings(spec)]
    envs = [Serial().build(config, 3, e, memory) for e in encodings]
    histories = [History(e, 3, config.episode_steps) for e in encodings]
    shown = [h.reset(e.reset(seed)) for h, e in zip(histories, envs, strict=True)]
    space = envs[0].action_space
    space.seed(seed)
    for _ in range(steps):
        _assert_decoded_equal(encodings, envs, shown)
        actions = np.stack([np.asarray(space.sample()) for _ in range(3)])
        finals = []
        for i, env in enumerate(envs):
            step = env.step(actions)
            shown[i], final = histories[i].push(
                step.rows, step.done, step.final_index, step.final_rows
            )
            finals.append(final)
        if finals[0]:
            _assert_decoded_equal(encodings, envs, finals)


def lossless_encodings(spec: ObservationSpec) -> list[Encoding]:
    """The lossless default, and one encoding for each further lossless form of a field."""
    default = Encoding.choose(spec, Storage.lossless)
    others = [
        {f.name: name}
        for f in spec.fields
        if isinstance(f, Static | Stored)
        for name, codec in offered(f).items()
        if name != default.choice[f.name]
        if codec is None or codec.label is Label.lossless
    ]
    return [default, *(Encoding.choose(spec, Storage.lossless, fields=o) for o in others)]


def _assert_decoded_equal(encodings: list[Encoding], envs: list[Any], shown: list[Any]) -> None:
    decoded = [
        decode(e, rows, env.tables) for e, env, rows in zip(encodings, envs, shown, strict=True)
    ]
    for other in decoded[1:]:
        assert_observations_equal(decoded[0], other)


def assert_observations_equal(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    """Equal keys and equal bits."""
    assert set(a) == set(b)
    for name, value in a.items():
        assert_array_equal(value, b[name], name)
        assert_same_bits(np.asarray(value), np.asarray(b[name]))
