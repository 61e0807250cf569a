"""Tournaments on any cartridge: at two pads against each other, at one pad by the higher score."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fighting.cartridge.config import GameBoyConfig
from fighting.choices import Rival
from fighting.opponents.scripts import of_any_game
from fighting.rom import VOLLEY
from fighting.spec import View
from fighting.tools.cartridge_bouts import against
from fighting.tools.contest import Contestant
from fighting.tools.tournament import tournament
from frugal_rl.errors import ConfigError
from frugal_rl.run.compose import compose_run

BALL = {"profile": "volley", "obs": View.ram, "threads": 1}
SMALL = [
    "env=fighting_game_boy",
    "experiment=cartridge_features",
    "algo.num_envs=2",
    "hardware.device=cpu",
    "hardware.threads=1",
    "evaluation.episodes=4",
    "evaluation.num_envs=2",
]


def follows(seen, clock, rngs):
    """Moves towards the ball, whose distance below the paddle is the first feature."""
    below = seen[:, 0] * 105
    return np.where(below > 3, 2, np.where(below < -3, 1, 0))


FOLLOWS = Contestant("follows", script=follows)
STILL = Contestant("still", script=of_any_game(3)[Rival.still])
CPU = Contestant("cpu")


def test_who_follows_the_ball_beats_who_stands_still_from_both_sides():
    fight = against(GameBoyConfig(**BALL))
    assert fight(FOLLOWS, STILL, 4, 0) == 4
    assert fight(STILL, FOLLOWS, 4, 0) == 0


def test_the_cartridges_own_player_takes_part():
    fight = against(GameBoyConfig(**BALL))
    against_cpu = fight(FOLLOWS, CPU, 4, 1)
    assert against_cpu >= 3
    assert fight(CPU, FOLLOWS, 4, 1) == 4 - against_cpu
    assert fight(STILL, CPU, 2, 1) == 0


def test_two_pads_rate_policies_and_a_stopped_tournament_goes_on(tmp_path, capsys, untrained):
    words = ["env.profile=volley", "env.max_steps=60"]
    path = untrained(tmp_path, [*SMALL, *words])
    run = replace(compose_run([*SMALL, *words, "evaluation.episodes=2"]), run_dir=str(tmp_path))
    text = tournament(run, [path])
    assert "policy_0 is " in text
    found = json.loads((tmp_path / "tournament.json").read_text())
    assert found["names"] == ["cpu", "still", "random", "policy_0"]
    assert found["ratings"]["random"] == 1000
    assert np.sum(found["fought"]) == 2 * 6 * 2
    assert "6 of 6: random" in capsys.readouterr().out
    again = replace(run, resume=str(tmp_path))
    assert tournament(again, [path]) == text
    assert "6 of 6 pairings are known already" in capsys.readouterr().out


def test_one_pad_lets_players_play_apart_and_the_higher_score_wins(tmp_path, untrained):
    words = ["env.profile=hop", "env.max_steps=80"]
    run = replace(compose_run([*SMALL, *words]), run_dir=str(tmp_path))
    pictures = ["env.obs=half_size", "algo.engine=exact"]
    seen = untrained(tmp_path / "seen", [*SMALL, *words, *pictures])
    tournament(run, [untrained(tmp_path / "ram", [*SMALL, *words]), seen])
    found = json.loads((tmp_path / "tournament.json").read_text())
    names, points = found["names"], np.array(found["points"])
    assert names == ["random", "still", "policy_0", "policy_1"]
    assert points[names.index("random"), names.index("still")] > 2  # who stands scores nothing
    np.testing.assert_allclose(points + points.T, np.array(found["fought"]))


def test_policies_of_other_games_are_refused(tmp_path, untrained):
    stack = untrained(tmp_path, [*SMALL, "env.profile=stack"])
    for profile, words in (("hop", "plays stack"), ("volley", "does not play from the features")):
        run = replace(compose_run([*SMALL, f"env.profile={profile}"]), run_dir=str(tmp_path))
        with pytest.raises(ConfigError, match=words):
            tournament(run, [stack])


def test_a_policy_plays_where_the_image_that_it_learned_on_is_gone(tmp_path, untrained):
    image = tmp_path / "mine.gb"
    image.write_bytes(VOLLEY.image.read_bytes())
    path = untrained(tmp_path, [*SMALL, "env.profile=volley", f"env.rom={image}"])
    image.unlink()
    config = GameBoyConfig(**BALL, opponent=Rival.policy, rival=path, random_side=False)
    env = config.make(seed=0)
    env.reset(seed=0)
    paddles = {env.game.emulators.machines[0].memory[0xC013] for _ in range(30) if env.step(0)}
    env.close()
    assert len(paddles) > 1  # it moves


def test_a_game_that_nobody_can_win_has_no_tournament():
    config = GameBoyConfig(**BALL)
    lost = replace(config.game, goal=replace(config.game.goal, success=None))
    config.__dict__["game"] = lost
    with pytest.raises(ConfigError, match="no success: nobody would win"):
        against(config)
