"""A saved policy is filmed frame by frame, and what it played is kept exactly."""

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from PIL import Image, ImageSequence

from frugal_rl.errors import ConfigError
from frugal_rl.report.film import WIDEST
from frugal_rl.run.compose import compose_run
from frugal_rl.run.play import PlayOptions
from frugal_rl.run.saved import open_saved
from frugal_rl.run.session import train_planned
from frugal_rl.run.watch import open_watch
from frugal_rl.vec_env.serial import Serial
from nclone.replay.outcome import verify_all
from nclone.tools.film import film
from nclone.tools.films import check_options
from nclone.tools.watch import HOLD_FRAMES, Spectator, watch

SMALL = [
    "algo.num_envs=2", "algo.n_steps=8", "algo.batch_size=8", "algo.total_steps=16",
    "algo.n_epochs=1", "evaluation.episodes=1", "evaluation.num_envs=1", "tracking=disabled",
]  # fmt: skip


def trained(folder, words):
    from frugal_rl.memory.plan import draw_up

    run = replace(compose_run([*words, *SMALL]), run_dir=str(folder))
    train_planned(run, draw_up(run))
    return str(folder)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("agent"), ["env=nclone", "env.levels=[mines,walk]"])


def test_the_second_world_is_always_where_the_first_is(checkpoint):
    with open_watch(checkpoint, compose_run(["env=nclone"])) as watch:
        spectator = Spectator(watch, 0.25)
        game = spectator.game
        for k, _ in enumerate(islice(spectator.one_episode(), 40)):
            if k % 4 == 0 and k:
                np.testing.assert_array_equal(spectator.world.position, game.world.position)


def test_a_policy_is_filmed_without_a_window_and_its_runs_verify(checkpoint, tmp_path):
    run = compose_run(["env=nclone"])
    options = PlayOptions(
        checkpoint=checkpoint, video=str(tmp_path / "a.gif"), record=str(tmp_path / "runs"),
        episodes=2, scale=0.25, every=8,
    )  # fmt: skip
    said = list(watch(run, options))
    with Image.open(tmp_path / "a.gif") as gif:  # equal frames are kept once, with their time
        shown_ms = sum(frame.info["duration"] for frame in ImageSequence.Iterator(gif))
    assert said[0].startswith("Film:")
    assert shown_ms >= 1000 * 2 * HOLD_FRAMES / 60
    assert said[-1].endswith("lost.")
    verdicts = verify_all(tmp_path / "runs")
    assert len(verdicts) == 2
    assert all(v.reproduced for v in verdicts)


def test_a_policy_is_filmed_while_it_is_trained_whatever_steps_it(checkpoint, tmp_path):
    with open_saved(checkpoint, compose_run(["env=nclone"])) as saved:
        run = replace(saved.run, vec=Serial())
        path = film(run, saved.policy, tmp_path / "1.gif")
    with Image.open(path) as gif:
        assert max(gif.size) <= WIDEST
        assert gif.n_frames > 1


def test_a_report_has_a_line_a_film_and_a_replay_for_every_level(checkpoint, tmp_path):
    (tmp_path / "levels").mkdir()
    for name in "ab":
        text = f"title: <{name}>\n@.S.X\n"
        (tmp_path / "levels" / f"{name}.txt").write_text(text)
    run = compose_run(["env=nclone", f"env.levels=[{tmp_path / 'levels'}]"])
    folder = tmp_path / "report"
    options = PlayOptions(checkpoint=checkpoint, report=str(folder), scale=0.25, every=30)

    said = list(watch(run, options))

    lines = json.loads((folder / "levels.json").read_text())
    assert [line["level"] for line in lines] == ["<a>", "<b>"]
    assert all((folder / line["film"]).stat().st_size > 0 for line in lines)
    verdicts = {v.path.name: v for v in verify_all(folder)}
    assert all(verdicts[line["replay"]].reproduced for line in lines)
    won = sum(line["won"] for line in lines)
    html = (folder / "index.html").read_text()
    assert f"{won} of 2 levels won" in html
    assert "&lt;a&gt;" in html
    assert said[-1] == f"{won} won, {2 - won} lost."


def test_a_report_needs_a_policy(tmp_path):
    with pytest.raises(ConfigError, match="checkpoint=RUN"):
        check_options(PlayOptions(report=str(tmp_path)))


def test_typed_words_change_what_is_played(checkpoint):
    words = ["env=nclone", "env.levels=[jump]"]
    with open_watch(checkpoint, compose_run(words)) as watch:
        assert watch.vec_env.game.level_table.level[0].name == "Jump"
        assert watch.vec_env.num_envs == 1


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    path = trained(tmp_path, ["env=toy"])
    run = compose_run([])
    with pytest.raises(ConfigError, match=r"not trained on N.*env=toy"):
        list(watch(run, PlayOptions(checkpoint=path, video="x.gif")))
