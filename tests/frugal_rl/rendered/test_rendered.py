"""A policy of a registered environment as a picture: filmed, shown, while it is trained."""

from __future__ import annotations

from contextlib import nullcontext
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from PIL import Image

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.memory.sizes import FILM_BYTES
from frugal_rl.rendered.film import film
from frugal_rl.rendered.play import play
from frugal_rl.rendered.showing import showing
from frugal_rl.report.film import WIDEST, small
from frugal_rl.run import evaluate
from frugal_rl.run.compose import compose_run
from frugal_rl.run.play import Keys, PlayOptions
from frugal_rl.run.preflight import check_chosen
from frugal_rl.run.saved import Saved
from frugal_rl.testing.refusals import text_of

END = 5


class Counting(gym.Env):
    """Ends after five steps; a picture is as bright as its step."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = spaces.Box(0, END, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode, self.steps = render_mode, 0

    def seen(self):
        return np.full(1, self.steps, np.float32)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.seen(), {}

    def step(self, action):
        self.steps += 1
        return self.seen(), 1.0, self.steps == END, False, {}

    def render(self):
        return np.full((6, 8, 3), 10 * self.steps, np.uint8)


class Blind(Counting):
    metadata: ClassVar = {"render_modes": ["human"]}


gym.register("Counting-v0", Counting)
gym.register("Blind-v0", Blind)
SMALL = (
    "env=gymnasium", "algo.num_envs=2", "algo.n_steps=8", "algo.batch_size=8", "agent.actor=[4]",
    "agent.critic=[4]", "tracking=disabled", "evaluation.film=true",
)  # fmt: skip


@pytest.fixture
def run():
    return compose_run([*SMALL, "env.id=Counting-v0"])


@pytest.fixture
def policy(run):
    vec_env = run.env.make_vec(1, run.encoding(), run.memory, run.vec, "train")
    yield run.algo.build(run, vec_env).policy
    vec_env.close()


def brightness(path):
    with Image.open(path) as gif:
        frames = []
        for number in range(gif.n_frames):
            gif.seek(number)
            frames.append(int(np.asarray(gif.convert("L")).mean().round()))
    return frames


def test_a_film_shows_an_episode_from_its_first_observation_to_its_last(run, policy, tmp_path):
    path = film(run, policy, tmp_path / "1.gif")

    assert brightness(path) == [0, 10, 20, 30, 40, 50]


def test_a_film_draws_nothing_from_the_run_s_random_numbers(run, policy, tmp_path):
    state = torch.get_rng_state()
    evaluate.film(run, policy, tmp_path / "1.gif")

    assert torch.equal(torch.get_rng_state(), state)


def test_a_film_of_an_environment_that_has_no_tool_for_it_is_refused_before_a_plan():
    said = text_of(
        ConfigError, lambda: check_chosen(compose_run(["env=toy", "evaluation.film=true"]))
    )

    assert "has no tool 'film'" in said
    assert said.endswith(
        "Leave out evaluation.film=true; env=nclone, env=fighting and env=gymnasium are filmed."
    )


def test_the_next_episode_begins_with_its_own_first_picture(run, policy):
    with showing(run, policy) as episodes:
        first, second = ([int(p[0, 0, 0]) for p in episodes.one()] for _ in range(2))

        assert first == second == [0, 10, 20, 30, 40, 50]
        assert episodes.returns == [5.0, 5.0]
        assert episodes.rate == 20


def test_an_environment_that_draws_nothing_is_named(policy, tmp_path):
    blind = compose_run([*SMALL, "env.id=Blind-v0"])

    assert text_of(ConfigError, lambda: film(blind, policy, tmp_path / "1.gif")) == (
        "env.id=Blind-v0 gives no pictures: it has no render_mode=rgb_array, but ['human']."
    )


def test_a_machine_that_cannot_draw_ends_no_training(run, policy, monkeypatch, tmp_path, capsys):
    def fail(self):
        raise RuntimeError("no display")

    monkeypatch.setattr(Counting, "render", fail)

    assert evaluate.film(run, policy, tmp_path / "1.gif") is None
    assert "There is no film: The environment cannot be drawn here: RuntimeError: no display" in (
        capsys.readouterr().out.replace("\n", " ")
    )


@pytest.fixture
def opened(run, policy, monkeypatch):
    """Any checkpoint that is named holds the policy."""
    saved = Saved(run, policy, None, 0)
    monkeypatch.setattr("frugal_rl.rendered.play.open_saved", lambda *a, **k: nullcontext(saved))


def test_a_checkpoint_is_filmed_for_as_many_episodes_and_thinned(run, opened, tmp_path):
    path = tmp_path / "out.gif"
    options = PlayOptions(checkpoint="RUN", video=str(path), episodes=2, every=4)

    assert list(play(run, options)) == [
        f"Film: {path} (3 pictures)",
        "Episodes: 2, mean return 5.",
    ]
    assert brightness(path) == [0, 40, 20]


def test_a_window_shows_until_it_is_closed(run, opened, monkeypatch):
    shown = []

    class Screen:
        def __init__(self, title, shape, scale):
            assert shape == (6, 8, 3)

        def show(self, picture, rate):
            shown.append((int(picture[0, 0, 0]), rate))
            return Keys(closed=len(shown) == 8)

        def close(self):
            shown.append("closed")

    monkeypatch.setattr("frugal_rl.rendered.play.Window", Screen)
    said = list(play(run, PlayOptions(checkpoint="RUN")))

    assert [value for value, _ in shown[:-1]] == [0, 10, 20, 30, 40, 50, 0, 10]
    assert shown[0][1] == 20
    assert shown[-1] == "closed"
    assert said == ["Episodes: 1, mean return 5."]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ConfigError, "is played by a policy: name it by checkpoint=RUN"),
        ({"checkpoint": "RUN", "solver": True}, ConfigError, "solver=true changes nothing"),
        ({"checkpoint": "RUN", "video": "a.avi"}, DataError, "use one of .mp4, .gif"),
    ],
)
def test_options_that_lead_nowhere_are_refused(run, options, error, words):
    assert words in text_of(error, lambda: list(play(run, PlayOptions(**options))))


def test_a_film_of_an_evaluation_takes_no_more_than_is_planned(run):
    wide = np.zeros((2 * WIDEST, 100, 3), np.uint8)
    frames = list(small(wide for _ in range(FILM_BYTES)))

    assert {frame.shape for frame in frames} == {(WIDEST, 50, 3)}
    assert len(frames) == FILM_BYTES // (WIDEST * 50)
