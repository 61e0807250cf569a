"""The environment: Gymnasium's rules, observation forms, rewards, ends, options, states."""

import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from fighting.choices import Actions, Episode, Rival, Weights
from fighting.config import DuelConfig
from fighting.env import DuelEnv
from fighting.spec import View
from frugal_rl.errors import ConfigError


@pytest.fixture
def make():
    """Environments that are closed at the end."""
    made = []

    def build(**values):
        made.append(DuelEnv(DuelConfig(**{"threads": 1, **values})))
        return made[-1]

    yield build
    for env in made:
        env.close()


def play(env, steps, seed=0):
    """Random actions; yields what `step` returns until `steps` are over."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(steps):
        space = env.action_space
        action = rng.integers(0, 2, 8) if hasattr(space, "shape") and space.shape else None
        if action is None:
            action = int(rng.integers(space.n))
        result = env.step(action)
        yield result
        if result[2] or result[3]:
            env.reset()


@pytest.mark.parametrize("view", list(View))
@pytest.mark.parametrize("actions", list(Actions))
def test_gymnasiums_checker_passes(make, view, actions):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(make(obs=view, actions=actions), skip_render_check=True)


@pytest.mark.parametrize(
    ("values", "name", "shape"),
    [
        ({"obs": View.rgb}, "frame", (4, 144, 160, 3)),
        ({"obs": View.gray}, "frame", (4, 144, 160)),
        ({"obs": View.gray, "crop": True}, "frame", (4, 104, 160)),
        ({"obs": View.half_size}, "frame", (4, 72, 80)),
        ({"obs": View.half_size, "crop": True}, "frame", (4, 52, 80)),
        ({"obs": View.gray, "stack": 1}, "frame", (144, 160)),
        ({"obs": View.ram}, "ram", (48,)),
    ],
)
def test_observations_have_the_declared_shape(make, values, name, shape):
    observation, _ = make(**values).reset(seed=1)
    assert observation[name].shape == shape


def test_gray_frames_are_the_screen_and_half_size_its_means(make):
    gray = make(obs=View.gray, stack=1, mirror=False)
    half = make(obs=View.half_size, stack=1, mirror=False)
    rgb = make(obs=View.rgb, stack=1, mirror=False)
    for (one, *_), (two, *_), (three, *_) in zip(
        play(gray, 40), play(half, 40), play(rgb, 40), strict=True
    ):
        frame = one["frame"]
        assert set(np.unique(frame)) <= {0, 85, 170, 255}
        means = frame.reshape(72, 2, 80, 2).astype(np.int64).sum(axis=(1, 3)) // 4
        np.testing.assert_array_equal(two["frame"], means)
        np.testing.assert_array_equal(three["frame"], np.repeat(frame[..., None], 3, axis=-1))
    assert len(np.unique(frame)) == 4


def test_the_mirrored_picture_puts_the_own_fighter_left(make):
    plain, mirrored = (make(obs=View.gray, stack=1, mirror=m, opponent=Rival.still) for m in (0, 1))
    for env in (plain, mirrored):
        env.reset(seed=3, options={"side": 1})
    one, two = plain.step(0)[0]["frame"], mirrored.step(0)[0]["frame"]
    np.testing.assert_array_equal(one[:, ::-1], two)


def test_rewards_add_up_to_the_differences_of_health(make):
    env = make(reward=Weights(1, 1, 0, 0, 0), levels=(5,), random_gap=False)
    fights, total = 0, 0.0
    for _, reward, terminated, truncated, info in play(env, 1500):
        total += reward
        if terminated or truncated:
            own, his = info["hp"]
            assert total == pytest.approx(((112 - his) - (112 - own)) / 112, abs=1e-5)
            fights, total = fights + 1, 0.0
    assert fights >= 2


def test_a_new_round_gives_no_reward(make):
    env = make(reward=Weights(1, 1, 0, 0, 0), levels=(7,), episode=Episode.match)
    rounds, last = 1, (112, 112)
    for _, reward, terminated, _, info in play(env, 3000):
        own, his = info["hp"]
        if own > last[0] or his > last[1]:
            assert reward == 0
            rounds += 1
        else:
            assert reward == pytest.approx((last[1] - his - last[0] + own) / 112, abs=1e-6)
        last = (112, 112) if terminated else info["hp"]
    assert rounds > 2


def test_knock_out_and_victory_count_as_configured(make):
    env = make(reward=Weights(0, 0, 0.5, 1, 0.001), levels=(0,), random_gap=False)
    env.reset(seed=0, options={"hp": (112, 5), "gap": 24})
    rewards = []
    for action in (9, 0, 9, 0, 9, 0, 9, 0):
        _, reward, terminated, _, info = env.step(action)
        rewards.append(reward)
        if terminated:
            break
    assert terminated
    assert rewards[-1] == pytest.approx(1.5 - 0.001)
    assert rewards[0] == pytest.approx(-0.001)
    assert info["episode_fight"]["win"] == 1
    assert info["success"]


def test_the_clock_terminates_and_the_step_limit_truncates(make):
    env = make(levels=(0,), round_seconds=2)
    env.reset(seed=0)
    steps = 0
    while True:
        *_, terminated, truncated, info = env.step(0)
        steps += 1
        if terminated or truncated:
            break
    assert terminated
    assert info["reason"] == 2
    assert steps == pytest.approx(2 * 60 / 4, abs=1)
    env = make(levels=(0,), max_steps=5)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]


def test_options_choose_level_side_health_and_gap(make):
    env = make(opponent=Rival.still)
    _, info = env.reset(seed=0, options={"level": 6, "side": 1, "hp": (100, 20), "gap": 50})
    assert (info["level"], info["side"], info["hp"]) == (6, 1, (20, 100))
    with pytest.raises(ConfigError, match="no option"):
        env.reset(options={"sides": 1})


def test_a_press_of_two_steps_attacks_twice(make):
    """A and B are let go within the step, so that holding the action presses again."""
    env = make(levels=(0,), random_gap=False)
    env.reset(seed=0, options={"gap": 100})
    moves = []
    for _ in range(10):
        env.step(9)
        ram = env.game.emulators.ram[0]
        moves.append((int(ram[22 + 9]), int(ram[22 + 8])))
    assert sum(move == 1 and time < 4 for move, time in moves) >= 2


def test_macros_run_to_their_end_and_make_the_special_moves(make):
    for action, move in ((16, 7), (17, 8)):
        env = make(actions=Actions.macros, levels=(0,))
        env.reset(seed=0, options={"gap": 100})
        seen, left = set(), []
        for step in range(4):
            *_, info = env.step(action if step == 0 else 0)
            seen.add(int(env.game.emulators.ram[0, 22 + 9]))
            left.append(info["macro_left"])
        assert move in seen
        assert left[:3] == [2, 1, 0]


def test_switches_reach_the_fighter_without_start_and_select(make):
    env = make(actions=Actions.buttons, levels=(0,))
    env.reset(seed=0, options={"gap": 100})
    env.step(np.array([0, 0, 1, 1, 1, 1, 0, 1]))
    assert env.game.emulators.ram[0, 22 + 15] == 0x80


def test_a_saved_state_continues_exactly(make):
    env = make(levels=(4,), obs=View.both)
    steps = list(play(env, 30, seed=5))
    assert steps
    state = env.state()

    def onward():
        rng = np.random.default_rng(1)
        return [env.step(int(rng.integers(16))) for _ in range(25)]

    first = onward()
    env.set_state(state)
    for one, two in zip(first, onward(), strict=True):
        np.testing.assert_array_equal(one[0]["ram"], two[0]["ram"])
        assert one[1:4] == two[1:4]


def test_sticky_actions_repeat_with_their_chance(make):
    env = make(sticky=1.0, levels=(0,))
    env.reset(seed=0)
    env.step(1)
    assert env.game.hands.last[0] == 0


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"frame_skip": 0}, "env.frame_skip is 0"),
        ({"levels": ()}, "env.levels is empty"),
        ({"levels": (8,)}, "levels run from 0 to 7"),
        ({"press_frames": 9}, "env.press_frames is 9"),
        ({"round_seconds": 100}, "env.round_seconds is 100"),
    ],
)
def test_a_wrong_value_is_refused_in_words(values, problem):
    with pytest.raises(ConfigError, match=problem):
        DuelConfig(**values)


def test_negative_reward_weights_are_refused():
    with pytest.raises(ConfigError, match="negative weight"):
        Weights(dealt=-1)
