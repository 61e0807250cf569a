"""The documented quick start runs as it is written."""

import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import nclone
from frugal_rl.errors import ConfigError
from nclone.config import Guide, NppConfig, Observation
from nclone.levels.sources import open_levels

PAGE = Path(__file__).resolve().parents[2] / "docs" / "profile_memory.md"


def test_the_quick_start_of_the_documentation_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 1
    exec(blocks[0], {})
    words = capsys.readouterr().out
    assert 0 < int(words.split(" ")[0]) < 20_000


@pytest.mark.parametrize("memory", ["parallel", "lossless", "baseline", "sparse"])
def test_equal_seeds_give_equal_episodes_whatever_the_profile(memory):
    envs = nclone.make_vec(3, memory=memory, levels=("walk", "jump"))
    lossless = nclone.make_vec(3, levels=("walk", "jump"))
    rng = np.random.default_rng(0)
    envs.reset(1), lossless.reset(1)
    for _ in range(40):
        actions = rng.integers(0, 6, 3)
        ours, theirs = envs.step(actions), lossless.step(actions)
        np.testing.assert_array_equal(ours.done, theirs.done)
        np.testing.assert_allclose(ours.reward, theirs.reward, rtol=1e-6)
    envs.close()


def test_options_are_those_of_the_configuration():
    env = nclone.make(levels=("mirrored:walk",), frame_skip=1, start_frames=0, seed=3)
    env.reset()
    assert env.game.config.frame_skip == 1
    assert env.game.level_table.level[0].key == open_levels(["mirrored:walk"])[0].key
    with pytest.raises(ConfigError, match=r"env\.levles is no option of NppConfig"):
        nclone.make(levles=("walk",))


def test_choices_are_words_or_members():
    frames = {"player_frame": [36, 52], "global_view": ()}
    word, member = (nclone.make(obs=obs, **frames) for obs in ("pixels", Observation.pixels))
    assert word.observation_space == member.observation_space
    assert word.observation_space["player_frame"].shape == (36, 52, 1)
    with pytest.raises(ConfigError, match=r"env.obs=pxels is no choice; did you mean 'pixels'\?"):
        nclone.make_vec(2, obs="pxels")
    guide = Guide(views=True)
    assert nclone.make(guide=guide).game.config.guide is guide


def test_gymnasiums_id_takes_the_same_options():
    env = gym.make("nclone/Npp-v0", obs="pixels", frame_skip=2)
    assert env.unwrapped.game.config.frame_skip == 2
    with pytest.raises(ConfigError, match="either config= or obs=, not both"):
        gym.make("nclone/Npp-v0", config=NppConfig(), obs="pixels")
