"""Pictures of a player's routes, and the order in which evaluation levels are played."""

import numpy as np
from matplotlib.image import imread

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from nclone.config import NppConfig
from nclone.tools.draw import draw, routes_of
from nclone.vec_env import NppVecEnv, interleaved


def env_of(levels, num_envs=3):
    config = NppConfig(levels=levels, start_frames=0)
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    return NppVecEnv(config, num_envs, encoding, MemoryProfile(), "eval")


def right(rows):
    return np.full(len(rows["action_mask"]), 2)


def test_an_evaluation_takes_one_level_of_each_group_in_turn():
    assert interleaved(["a", "a", "b", "a", "c", "c"]) == [0, 2, 4, 1, 5, 3]
    env = env_of(("simplest", "simple", "walk"))
    env.reset(0)

    assert [env.level_names[k] for k in env.game.world.level] == ["simplest", "simple", "Walk"]
    assert sorted(set(env.level_names)) == ["Walk", "simple", "simplest"]
    assert env.level_names.count("simple") == 64


def test_every_level_has_its_turn_and_routes_begin_at_the_spawn():
    env = env_of(("walk", "jump", "fall", "switch_first"))
    routes = routes_of(env, right)

    assert {route.level for route in routes} == {0, 1, 2, 3}
    for route in routes:
        spawn = env.game.level_table.level[route.level].spawn
        np.testing.assert_allclose(route.places[0], spawn, atol=4.0)
    assert {env.level_names[w.level]: w.won for w in routes}["Walk"]


def test_won_and_lost_routes_are_drawn_apart(tmp_path):
    written = draw(None, env_of(("walk", "jump")), right, tmp_path / "pictures")

    assert {path.name for path in written} == {"Walk_won.png", "Jump_not_won.png"}
    for path in written:
        image = imread(path)
        assert image.ndim == 3
        assert image.std() > 0.05
