"""A policy at play: filmed, in a window, in a tournament, in the trainer's evaluation."""

import json
import re
from dataclasses import replace

import pytest
from PIL import Image

from fighting.config import DuelConfig
from fighting.machine.frames import UNPACKED
from fighting.tools.bouts import known_contestants
from fighting.tools.play import play
from fighting.tools.spectator import DUEL, action_words, fight
from frugal_rl.errors import ConfigError
from frugal_rl.run.compose import compose_run
from frugal_rl.run.play import PlayOptions
from frugal_rl.run.saved import open_saved
from frugal_rl.run.session import contest
from frugal_rl.run.trainer import train

SMALL = [
    "env=fighting",
    "env.threads=1",
    "env.round_seconds=2",
    "algo.num_envs=4",
    "algo.n_steps=8",
    "algo.batch_size=16",
    "algo.n_epochs=1",
    "algo.total_steps=32",
    "hardware.device=cpu",
    "hardware.threads=1",
    "tracking=disabled",
    "evaluation.episodes=2",
    "evaluation.num_envs=2",
]


class Quiet:
    """A log that keeps the files it was told of."""

    def __init__(self):
        self.files = []

    def metrics(self, step, values):
        pass

    def summary(self, values):
        pass

    def file(self, path):
        self.files.append(path)


def trained(folder, *overrides):
    run = replace(compose_run([*SMALL, *overrides]), run_dir=str(folder))
    log = Quiet()
    train(run, log)
    return log.files


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fighter")
    trained(folder)
    return str(folder)


def played(checkpoint, *overrides, **options):
    run = compose_run([*SMALL, *overrides])
    return list(play(run, PlayOptions(checkpoint=checkpoint, **options)))


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_a_checkpoint_is_filmed_to_the_decision_and_beyond(checkpoint, tmp_path, suffix):
    if suffix == "mp4":
        pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / f"fight.{suffix}"
    (line,) = played(checkpoint, video=str(path))
    assert re.fullmatch(rf"Film: {path} \(4[0-9] pictures\)", line)
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_levels_named_now_come_before_those_of_the_evaluation(checkpoint, monkeypatch, tmp_path):
    met = []

    def noted(run, policy, level, seed):
        met.append(level)
        return fight(run, policy, level, seed)

    monkeypatch.setattr("fighting.tools.play.DUEL", replace(DUEL, shots=noted))
    for words in ((), ("env.levels=[7]",)):
        played(checkpoint, "env.eval_levels=[2]", *words, video=str(tmp_path / "fight.gif"))
    assert met == [2, 7]


def test_every_picture_of_a_policy_that_sees_memory_shows_the_fight(checkpoint):
    run = replace(compose_run(SMALL), run_dir="")
    with open_saved(checkpoint, run) as saved:
        shots = list(fight(saved.run, saved.policy, 3, seed=1))
    floor = [int((UNPACKED[shot.packed[128:]] < 255).sum()) for shot in shots]
    assert min(floor) > 500
    assert len({shot.packed.tobytes() for shot in shots}) > len(shots) // 2


def test_a_checkpoint_is_watched_against_a_script(checkpoint, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert played(checkpoint, "env.opponent=masher", frames=3) == []


def test_a_person_meets_the_policy_of_a_checkpoint(checkpoint, monkeypatch, tmp_path):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    lines = played(checkpoint, frames=8, record=str(tmp_path))
    assert lines == [f"Replay: {tmp_path / 'duel_1.replay'}"]


def test_each_evaluation_leaves_a_film_where_it_is_asked_for(tmp_path):
    files = trained(tmp_path, "evaluation.film=true", "env.obs=half_size", "env.crop=true")
    films = [path for path in files if path.suffix == ".gif"]
    assert films == [tmp_path / "films" / "32.gif"]
    with Image.open(films[0]) as gif:
        assert 20 < gif.n_frames < 50


def test_a_tournament_rates_a_checkpoint_among_levels_and_scripts(
    checkpoint, tmp_path, capsys, monkeypatch
):
    few = [c for c in known_contestants() if c.name in ("cpu_3", "cpu_7", "masher", "spammer")]
    monkeypatch.setattr("fighting.tools.bouts.known_contestants", lambda: few)
    run = replace(compose_run(SMALL), run_dir=str(tmp_path))
    contest(checkpoint, run)
    found = json.loads((tmp_path / "tournament.json").read_text())
    assert found["ratings"]["cpu_3"] == 1100
    assert "policy_0" in found["ratings"]
    assert "loses to" in capsys.readouterr().out


def test_an_environment_without_opponents_has_no_tournament():
    with pytest.raises(ConfigError, match=r"no tool .tournament. .*env=fighting has some"):
        contest("none", compose_run(["env=toy"]))


def test_actions_have_words():
    profile = DuelConfig().profile
    assert action_words(profile, 0) == "wait"
    assert action_words(profile, 12) == "down B"
    assert action_words(profile, len(profile.combos)) == "wave"
