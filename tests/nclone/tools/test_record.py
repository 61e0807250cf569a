"""The record command: verify, film, draw, convert, collect; each mistake is one clear error."""

import os
import subprocess
import sys

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, DiskError, FrugalError
from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.compose import compose_run
from frugal_rl.run.disk import finished_or_absent
from nclone.errors import LevelError, LevelWarning
from nclone.levels.bundled import FOLDER, bundled_level, winning_inputs
from nclone.levels.format import pack_level
from nclone.replay import Replay, inputs_of_actions
from nclone.replay.dataset import load_dataset
from nclone.replay.files import read_replay, write_replays
from nclone.replay.outcome import verify_all
from nclone.tools.record import record


def ask(words=(), **options):
    run = compose_run(["env=nclone", *words])
    return record(run, RecordOptions(**{k: str(v) for k, v in options.items()}))


@pytest.fixture
def folder(tmp_path):
    for name in ("walk", "jump"):
        replay = Replay(inputs_of_actions(winning_inputs(name)), bundled_level(name).map_data, True)
        write_replays(tmp_path / f"{name}.replay", [replay])
    return tmp_path


def test_verify_counts_and_tells_by_its_status(folder, capsys):
    assert ask(verify=folder) == 0
    assert "2 of 2 replays reproduce their outcome (100.0%)" in capsys.readouterr().out
    data = (folder / "walk.replay").read_bytes()
    (folder / "walk.replay").write_bytes(data[:-10] + bytes(10))
    assert ask(verify=folder) == 1
    assert "1 of 2" in capsys.readouterr().out


def test_a_replay_becomes_a_film_and_a_picture(folder):
    run = compose_run(["env=nclone"])
    options = RecordOptions(
        replay=str(folder / "walk.replay"), video=str(folder / "o.gif"),
        picture=str(folder / "o.png"), scale=0.25, every=8,
    )  # fmt: skip
    assert record(run, options) == 0
    assert (folder / "o.gif").read_bytes()[:4] == b"GIF8"
    assert (folder / "o.png").read_bytes()[1:4] == b"PNG"


def test_conversions_go_round(folder):
    ask(convert=folder / "jump.replay", to=folder / "jump.attract")
    ask(convert=folder / "jump.attract", to=folder / "jump.inputs")
    ask(convert=folder / "jump.attract", to=folder / "level.txt")
    ask(convert=folder / "level.txt", to=folder / "level.map")
    assert read_replay(folder / "jump.inputs").inputs == inputs_of_actions(winning_inputs("jump"))
    assert (folder / "level.map").read_bytes()[8:] == bundled_level("jump").map_data[8:]
    ask(convert=FOLDER / "jump.inputs", to=folder / "again.replay")
    assert read_replay(folder / "again.replay").map_data == bundled_level("jump").map_data


def test_a_dataset_comes_from_replays_or_from_stored_solutions(folder):
    ask(["env.frame_skip=1"], dataset=folder / "a.npz", source=folder)
    replays = load_dataset(folder / "a.npz")
    assert len(replays) == sum(len(winning_inputs(n)) for n in ("walk", "jump"))
    ask(["env.levels=[simplest]"], dataset=folder / "b.npz")
    assert load_dataset(folder / "b.npz").arrays["won"].all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Nothing was asked for"),
        ({"verify": "none"}, "no folder or file none"),
        ({"convert": "a.replay"}, "needs both"),
        ({"convert": "README.md", "to": "x.replay"}, "README.md is no replay"),
        ({"video": "x.mp4"}, "needs replay="),
        ({"replay": "README.md", "video": "x.mp4"}, "README.md ends in"),
        ({"replay": str(FOLDER / "walk.inputs"), "video": "x.avi"}, "ends in '.avi'"),
        ({"replay": str(FOLDER / "walk.inputs"), "video": "docs"}, "ends in ''"),
        ({"picture": "x.png", "level": "simplest"}, "names 320 levels"),
        ({"picture": "x.png", "level": "wlak"}, "did you mean 'walk'"),
    ],
)
def test_a_mistake_is_one_clear_error(options, words):
    with pytest.raises(FrugalError, match=words):
        ask(**options)
    assert not any(os.path.exists(p) for p in ("x.mp4", "x.replay", "x.png", "x.npz", "x.avi"))


def test_inputs_that_do_not_fit_the_frame_skip_are_refused(tmp_path):
    moves = Replay(inputs_of_actions([2, 0, 2, 0]), bundled_level("walk").map_data, False)
    write_replays(tmp_path / "m.replay", [moves])
    with pytest.raises(FrugalError, match=r"m change at frame 1.*env\.frame_skip=1"):
        ask(dataset=tmp_path / "x.npz", source=tmp_path)
    assert not (tmp_path / "x.npz").exists()


def test_a_level_without_stored_inputs_gives_no_dataset(tmp_path):
    with pytest.raises(FrugalError, match="no stored solution"):
        ask([f"env.levels=[{FOLDER / 'walk.map'}]"], dataset=tmp_path / "x.npz")


FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from frugal_rl.errors import DiskError
from nclone.files import write_whole
from frugal_rl.report.film import save_film
from nclone.render.export import save_picture
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
noise = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), np.uint8)
for write in (
    lambda: write_whole(Path("level.map"), bytes(5000)),
    lambda: save_picture(Path("picture.png"), noise[0]),
    lambda: save_film(Path("film.gif"), noise, 60),
    lambda: save_film(Path("film.mp4"), np.repeat(noise, 40, 0), 60),
):
    try:
        write()
    except DiskError as error:
        print(error)
"""


def test_where_the_space_ends_every_writer_says_so_and_leaves_nothing(tmp_path):
    said = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    lines = [
        line for line in said.stdout.splitlines() if "cannot be written" in line or "film" in line
    ]
    assert len(lines) >= 4, said
    assert [p.name for p in tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(DiskError, match="cannot be written"),
        finished_or_absent(tmp_path / "file" / "x.png"),
    ):
        pytest.fail("nothing can be written here")


def test_options_that_cannot_be_are_refused():
    run = compose_run(["env=nclone"])
    with pytest.raises((ConfigError, ValueError)):
        record(run, RecordOptions(picture="x.png", level="walk", scale=99.0))
    assert np.array(winning_inputs("walk")).size


@pytest.fixture
def levels(tmp_path):
    """A folder of two levels that can be won, one that cannot, and a file that is no level."""
    folder = tmp_path / "levels"
    folder.mkdir()
    for name in ("walk", "fall"):
        (folder / f"{name}.map").write_bytes(bundled_level(name).map_data)
    tiles = np.ones((25, 44), int)
    tiles[11, 3:8] = 0
    shut = [[0, 14, 46, 0, 0], [3, 74, 46, 0, 0], [4, 64, 46, 0, 0]]
    (folder / "shut.map").write_bytes(pack_level(tiles, shut, "Shut"))
    (folder / "wrong.map").write_bytes(b"no level")
    return folder


def solving(levels, tmp_path, **more):
    options = RecordOptions(
        solve=str(levels), solved=str(tmp_path / "won"), budget_frames=8_000, **more
    )
    return record(compose_run(["env=nclone"]), options)


def test_a_folder_is_solved_and_the_replays_verify(levels, tmp_path, capsys):
    with pytest.warns(LevelWarning, match=r"1 of 4 files left out(.|\n)*wrong\.map"):
        assert solving(levels, tmp_path, skip_unreadable=True) == 1
    assert "2 of 3 levels won" in capsys.readouterr().out
    verdicts = verify_all(tmp_path / "won")
    assert len(verdicts) == 2
    assert all(v.reproduced for v in verdicts)


def test_a_folder_with_a_file_that_is_no_level_is_refused_in_words(levels, tmp_path):
    with pytest.raises(LevelError, match=r"1 of 4 files(.|\n)*wrong\.map(.|\n)*skip_unreadable=t"):
        solving(levels, tmp_path)
    assert not (tmp_path / "won").exists()


def test_any_folder_is_a_set_of_levels_for_training(levels):
    words = ["env=nclone", f"env.levels=[{levels}]"]
    with pytest.raises(LevelError, match=r"env\.skip_unreadable=true"):
        compose_run(words).env.open_levels("train")
    env = compose_run([*words, "env.skip_unreadable=true"]).env
    with pytest.warns(LevelWarning):
        assert [level.name for level in env.open_levels("eval")] == ["Fall", "Shut", "Walk"]


def test_a_budget_of_no_frames_is_refused():
    with pytest.raises(ConfigError, match="budget_frames is 0"):
        record(compose_run(["env=nclone"]), RecordOptions(solve="walk", budget_frames=0))
