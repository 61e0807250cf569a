"""The documented quick start runs as it is written."""

import re
from pathlib import Path

import numpy as np
import pytest

import nclone
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
    with pytest.raises(TypeError, match="levles"):
        nclone.make(levles=("walk",))
