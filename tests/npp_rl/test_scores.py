"""Scores by category: every test level once, for whatever an agent sees."""

import pytest

from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import RandomPlayer
from npp_rl.evaluation import score_categories


@pytest.mark.parametrize("obs", ["state", "pixels"])
def test_a_category_is_played_by_rows_as_wide_as_all_categories_need(obs):
    """Of pictures, rows of things that move are as wide as the level that has most."""
    run = compose_run(
        [
            "env=nclone", f"env.obs={obs}", "env.levels=[simplest,mine_heavy]",
            "env.player_frame=[24,24]", "env.global_view=[]", "tracking=disabled",
        ]
    )  # fmt: skip
    found = score_categories(
        run.env,
        run.encoding(),
        lambda env: RandomPlayer(env.encoding, env.tables, env.action_space, 0),
        ["simplest"],
    )

    assert [row.category for row in found] == ["simplest"]
    assert found[0].score.episodes == 64
    assert 0 < found[0].score.means["success"] < 1
