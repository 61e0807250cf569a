"""Frames through the whole pipeline: environment, history, rollout, minibatch, network."""

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env as check_with_gymnasium
from numpy.testing import assert_array_equal
from stable_baselines3.common.env_checker import check_env as check_with_sb3

from frugal_rl.errors import ConfigError
from frugal_rl.memory.choices import RolloutLocation, Shuffle
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import FrameStack, Storage
from frugal_rl.observation.decoder import Decoder, to_tensors
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import Padding
from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import no_meter
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.testing.env import check_determinism, check_env, check_raw_fields
from nclone.config import NppConfig
from nclone.observation.observe import SPEED
from nclone.spec import Observation
from nclone.vec_env import NppVecEnv

LEVELS = ("walk", "locked_door", "drone", "mines")
FRAMES = ("player_frame", "global_view")
CPU = torch.device("cpu")


def config(**options) -> NppConfig:
    return NppConfig(levels=LEVELS, **{"obs": Observation.pixels, **options})


def collected(env_config: NppConfig, encoding: Encoding, buffer: RolloutBuffer, num_envs: int):
    """Frames as they were drawn when acting, [T, N, ...] by name; the rollout is filled."""
    env = NppVecEnv(env_config, num_envs, encoding, MemoryProfile(), threads=1)
    history, decoder = History(encoding, num_envs), Decoder(encoding, env.tables)
    rng = np.random.default_rng(0)
    obs, seen = history.reset(env.reset(1)), []
    for _ in range(buffer.buffer_size):
        fields = decoder(to_tensors(obs, CPU))
        seen.append({name: fields[name].numpy().copy() for name in decoder.names})
        zeros = np.zeros(num_envs, np.float32)
        actions = rng.integers(0, 6, num_envs)
        buffer.add(obs, actions, zeros, np.zeros(num_envs, bool), zeros, zeros)
        step = env.step(actions)
        obs, _ = history.push(step.rows, step.done, step.final_index, step.final_rows)
    return {name: np.stack([s[name] for s in seen]) for name in seen[0]}, decoder


@pytest.mark.parametrize("storage", list(Storage))
@pytest.mark.parametrize("stack", [1, 3])
def test_drawn_when_acting_equals_drawn_when_learning(storage, stack):
    shuffle = Shuffle.copy if storage is Storage.dense else Shuffle.gather
    fields = {} if stack == 1 else dict.fromkeys(FRAMES, "derived")
    chosen = config(stack=stack, player_frame=(48, 64), global_view=(50, 88), fields=fields)
    encoding = Encoding.choose(chosen.spec(), storage, fields=chosen.fields)
    steps, num_envs = 120, 3
    buffer = RolloutBuffer(
        steps, encoding.policy_space(), chosen.action_space(), "cpu", n_envs=num_envs,
        encoding=encoding, location=RolloutLocation.ram, shuffle=shuffle, reuse=True,
    )  # fmt: skip

    acting, decoder = collected(chosen, encoding, buffer, num_envs)

    indices = np.random.default_rng(1).permutation(steps * num_envs)
    n, t = np.divmod(indices, steps)
    if shuffle is Shuffle.copy:
        next(iter(buffer.get(7)))
    for part in np.array_split(np.arange(len(indices)), 4):
        learning = decoder(buffer.samples(indices[part]).observations)
        for name in FRAMES:
            assert_array_equal(learning[name].numpy(), acting[name][t[part], n[part]])
    assert len({frame.tobytes() for frame in acting["player_frame"].reshape(360, -1)}) > 100


@pytest.mark.parametrize("padding", list(Padding))
def test_a_stack_begins_with_the_episode(padding):
    chosen = config(stack=4, padding=padding, start_frames=0)
    env = chosen.make()
    observation, _ = env.reset(seed=0)
    frames = observation["player_frame"]

    assert frames.shape == (4, 84, 84, 1)
    assert frames[3].any()
    for k in range(3):
        assert_array_equal(frames[k], frames[3] if padding is Padding.repeat else 0)

    after = env.step(2)[0]["player_frame"]
    assert_array_equal(after[2], frames[3])


def test_a_stack_shows_the_past_of_state_and_frame():
    env = config(obs=Observation.full, stack=2, start_frames=0).make()
    first, _ = env.reset(seed=0)
    second, *_ = env.step(2)

    assert second["game_state"].shape == (2, 29)
    assert_array_equal(second["game_state"][0], first["game_state"][1])
    assert second["game_state"][1, 19] > 0 or SPEED > 0


@pytest.mark.parametrize(
    ("player_frame", "global_view"),
    [((84, 84), (100, 176)), ((128, 128), (128, 256)), ((42, 42), (25, 44)), ((84, 84), ())],
)
def test_frames_have_the_sizes_that_were_asked_for(player_frame, global_view):
    env = config(player_frame=player_frame, global_view=global_view).make()
    observation, _ = env.reset(seed=3)

    assert env.observation_space.contains(observation)
    assert observation["player_frame"].shape == (*player_frame, 1)
    assert ("global_view" in observation) == bool(global_view)
    if global_view:
        assert observation["global_view"].shape == (*global_view, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"player_frame": (83, 84)}, "no middle"),
        ({"player_frame": (84,)}, "is no frame"),
        ({"global_view": (10, 176)}, "too small for the level"),
        ({"player_frame": (), "global_view": ()}, "shows nothing"),
        ({"stack": 0}, "env.stack is 0"),
        ({"stack": 13}, "env.stack is 13"),
    ],
)
def test_frames_that_cannot_be_are_refused_in_words(options, words):
    with pytest.raises(ConfigError, match=words):
        config(**options)


def test_an_environment_with_frames_keeps_the_contract():
    check_env(config(player_frame=(16, 16), global_view=(25, 44)), steps=20)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stack": 2},
        {"player_frame": (128, 128), "global_view": (128, 256)},
        {"obs": Observation.full, "stack": 2},
        {"obs": Observation.graph},
        {"obs": Observation.routes},
        {"obs": Observation.state},
    ],
)
def test_every_observation_passes_the_checkers(options):
    chosen = config(**options)
    check_with_gymnasium(chosen.make(0), skip_render_check=True)
    check_with_sb3(chosen.make(0), warn=True)
    check_raw_fields(chosen, 20, 0)
    check_determinism(chosen, 3, 0)


def test_a_dense_stack_is_refused_before_the_run():
    chosen = config(stack=2)
    encoding = Encoding.choose(chosen.spec(), Storage.dense, FrameStack.copies)
    with pytest.raises(ConfigError, match=r"player_frame=derived env\.fields\.global_view=derived"):
        chosen.make_vec(2, encoding, MemoryProfile(), None, "train")


def test_the_frames_of_a_step_cost_a_few_bytes():
    chosen = config()
    dense, lossless = (
        Encoding.choose(chosen.spec(), s).row_bytes for s in (Storage.dense, Storage.lossless)
    )
    assert dense == 84 * 84 + 100 * 176 + 6
    assert lossless <= 64


@pytest.mark.parametrize(
    ("observation", "profile"),
    [
        ("pixels", "lossless"),
        ("pixels", "baseline"),
        ("full", "lossless"),
        ("full", "attention"),
        ("full", "sparse"),
    ],
)
def test_a_run_with_frames_allocates_what_is_planned(observation, profile):
    run = compose_run(
        [
            "env=nclone", f"env.obs={observation}", f"memory={profile}", "algo.num_envs=3",
            "algo.n_steps=4", "algo.batch_size=6", "env.levels=[walk]", "agent=cnn",
            "env.player_frame=[48,48]", "env.global_view=[25,44]",
        ]
    )  # fmt: skip
    env = run.env.make_vec(3, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, env)

    metrics = learner.iterate(no_meter)

    assert np.isfinite(metrics["train/loss"])
    assert learner.rollout.nbytes == draw_up(run).rollout_bytes
