"""Charts stay readable with many variants: none is hidden by its own legend."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from frugal_rl.report import plots
from frugal_rl.report.results import Row, RunResult

STEPS = [1000.0, 50_000.0, 1_500_000.0]


@pytest.fixture(autouse=True)
def no_warnings():
    """Matplotlib warns where a legend leaves the axes no room."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def run(name: str, values=(0.1, 0.5, 0.9), seed=0) -> RunResult:
    words = (*name.split(" "), f"seed={seed}")
    known = RunResult(Path("x"), {"env": {"name": "toy"}}, words, {}, {})
    lines = [{"step": s, "eval/success": v} for s, v in zip(STEPS, values, strict=True)]
    known.__dict__["metrics"] = lines
    return known


def drawn(path: Path) -> np.ndarray:
    """[height, width, 3]"""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


@pytest.mark.parametrize(("count", "pictures"), [(1, 1), (8, 1), (9, 2), (23, 3)])
def test_more_variants_than_colours_take_more_pictures(tmp_path, count, pictures):
    runs = [run(f"algo.learning_rate={n} memory.internal_observations=false") for n in range(count)]
    paths = plots.curves(runs, "eval/success", tmp_path / "a.png")

    assert [p.name for p in paths] == ["a.png", "a_2.png", "a_3.png"][:pictures]


def coloured(path: Path, colour: str, rows: slice) -> int:
    """Pixels of a colour in some rows."""
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return int((np.abs(drawn(path)[rows].astype(int) - wanted) < 8).all(-1).sum())


def test_each_curve_is_seen_above_the_legend(tmp_path):
    """Eight long names, three lines each, once covered the axes."""
    long = " ".join(f"memory.some_long_option_{n}=a_long_value" for n in range(4))
    values = np.linspace(0.1, 0.9, 8)
    runs = [run(f"algo.n_steps={n} {long}", (v, v, v)) for n, v in enumerate(values)]
    (path,) = plots.curves(runs, "eval/success", tmp_path / "a.png")
    axes = slice(0, int(plots.PLOT_HEIGHT * 130))

    assert all(coloured(path, colour, axes) > 300 for colour in plots.COLOURS)


def test_a_variant_keeps_its_colour_where_another_has_no_point(tmp_path):
    silent = run("a=1")
    silent.__dict__["metrics"] = []
    (path,) = plots.curves([silent, run("b=1")], "eval/success", tmp_path / "a.png")

    whole = slice(None)
    assert coloured(path, plots.COLOURS[1], whole) > 100
    assert coloured(path, plots.COLOURS[0], whole) == 0


def test_nothing_is_drawn_without_a_point(tmp_path):
    assert plots.curves([run("a=1")], "eval/return", tmp_path / "a.png") == []


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("memory.internal_observations=false", ["memory.internal_observations=false"]),
        (
            "memory=baseline memory.gradient_checkpointing=true",
            ["memory=baseline", "memory.gradient_checkpointing=true"],
        ),
        ("a" * 50, ["a" * 36, "a" * 14]),
    ],
)
def test_names_beside_bars_break_between_words(name, lines):
    assert plots._wrapped(name).split("\n") == lines


def test_bars_of_many_variants_have_room(tmp_path):
    row = Row("toy", "", "lossless", "lossless", 1, 1.0, 5e8, 4e8, 1.0, 1.0, 1.0)
    names = [f"algo.n_steps={n} memory.internal_observations=false" for n in range(30)]
    few, many = (
        plots.memory_bars([row.__class__(**{**row.__dict__, "variant": n}) for n in some], path)
        for some, path in ((names[:2], tmp_path / "few.png"), (names, tmp_path / "many.png"))
    )

    assert drawn(many).shape[0] > 5 * drawn(few).shape[0]


def test_a_single_evaluation_is_no_curve(tmp_path):
    class Once:
        variant = "a"

        def curve(self, metric):
            return ([32768], [0.5]) if metric == "eval/success" else ([1, 2], [0.5, 0.6])

    assert plots.curves([Once(), Once()], "eval/success", tmp_path / "a.png") == []
    assert plots.curves([Once()], "train/loss", tmp_path / "b.png")


class Played:
    """A run of some rollouts, the first of which ended short episodes only."""

    variant = "a"

    def __init__(self, rollouts):
        self.values = [40.0, *(3.0 for _ in range(rollouts - 1))]

    def curve(self, metric):
        return [float(s) for s in range(len(self.values))], self.values


@pytest.fixture
def axes(monkeypatch):
    """The axes of each picture that is drawn."""
    kept, plain = [], plots._axes

    def keeping(height):
        figure, axes = plain(height)
        kept.append(axes)
        return figure, axes

    monkeypatch.setattr(plots, "_axes", keeping)
    return kept


def test_the_episodes_of_training_are_averaged_over_a_stated_window(tmp_path, axes):
    plots.curves([Played(12)], "episode/return", tmp_path / "a.png")
    (line,) = axes[0].get_lines()

    assert axes[0].get_ylabel() == "episode/return, over 5 rollouts"
    assert line.get_xdata().tolist() == list(range(4, 12))
    assert line.get_ydata().tolist() == [(40 + 4 * 3) / 5, *[3.0] * 7]


@pytest.mark.parametrize(("metric", "rollouts"), [("episode/return", 9), ("eval/return", 12)])
def test_short_runs_and_evaluations_are_drawn_as_they_are(tmp_path, axes, metric, rollouts):
    plots.curves([Played(12), Played(rollouts)], metric, tmp_path / "a.png")

    assert axes[0].get_ylabel() == metric
    assert 40.0 in axes[0].get_lines()[0].get_ydata()


def test_a_success_is_drawn_between_none_and_all(tmp_path, axes):
    plots.curves([run("a=1", (1.0, 1.0, 1.0))], "eval/success", tmp_path / "a.png")

    assert axes[0].get_ylim() == (-0.02, 1.02)
