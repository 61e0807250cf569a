"""Bests: replays that win, no slower than the stored inputs; the reward pays for time."""

from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from nclone.config import NppConfig, RewardPreset
from nclone.levels.bests import FOLDER, best_actions, best_frames
from nclone.levels.bundled import bundled_level, bundled_names, winning_inputs
from nclone.levels.pool import Split, load_pool
from nclone.levels.sources import open_levels, winning_actions
from nclone.replay.outcome import verify_all
from nclone.rewards.kernels import BONUS

CONFIG = NppConfig(levels=("walk",), reward=RewardPreset.speedrun, start_frames=0, frame_skip=1)


def test_every_bundled_level_has_a_best_that_wins_when_it_is_played_again():
    verdicts = verify_all(FOLDER)
    assert sorted(v.path.stem for v in verdicts) == sorted(bundled_names())
    assert all(v.reproduced for v in verdicts)
    for name in bundled_names():
        assert len(best_actions(name)) <= len(winning_inputs(name))


def test_best_frames_know_pools_of_both_splits_and_take_the_faster_of_two():
    members = load_pool().of(["simplest"], Split.test).members[:3]
    levels = open_levels(["simplest"], "eval")[:3]
    found = best_frames([*levels, bundled_level("jump")], [("simplest", "eval"), ("jump", "train")])
    assert found.tolist() == [*(m.inputs.frames for m in members), len(best_actions("jump"))]


def test_a_win_is_paid_by_its_time_and_nothing_else_changes():
    actions = best_actions("walk")
    paid = {}
    for reward, late in ((CONFIG.reward, 0), (CONFIG.reward, 112), (RewardPreset.guide, 0)):
        config = replace(CONFIG, reward=reward)
        encoding = Encoding.choose(config.spec(), Storage.lossless)
        env = config.make_vec(1, encoding, MemoryProfile(), None, "train")
        env.reset(0)
        for action in [*np.zeros(late, np.uint8), *actions]:
            step = env.step(np.array([action]))
            if step.ended is not None:  # after a wait it is on the floor and faster
                break
        assert step.ended.stats["success"][0] == 1
        stats = step.ended.stats
        paid[reward, late] = (stats["reward_completion_bonus"][0], stats["frames"][0])
        assert env.game.tracker.components[0, BONUS] == pytest.approx(paid[reward, late][0])
    slow, frames = paid[CONFIG.reward, 112]
    assert paid[CONFIG.reward, 0] == (pytest.approx(10.0), len(actions))
    assert frames > len(actions) + 100
    assert slow == pytest.approx(10.0 * len(actions) / frames)
    assert paid[RewardPreset.guide, 0][0] < 2.0


def test_levels_without_a_known_win_are_refused_and_replays_of_wins_are_taken(tmp_path):
    (tmp_path / "a.txt").write_text("title: mine\n@.S.X\n")
    config = replace(CONFIG, levels=(str(tmp_path),))
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    with pytest.raises(ConfigError, match=r"1 levels have none \(mine\)"):
        config.make_vec(1, encoding, MemoryProfile(), None, "train")
    assert [len(a) for a in winning_actions(str(FOLDER))] == [
        len(best_actions(name)) for name in sorted(bundled_names())
    ]
