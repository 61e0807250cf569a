"""Pictures show the numbers of the schedule."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.block_model import read_csv
from mine_rl_npv.data.economics import MinePlan, model_instance
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise.pits import penalised_pits
from mine_rl_npv.tools import views
from mine_rl_npv.tools.solid import save_solid
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Method, SolveConfig


@pytest.fixture(scope="module")
def mine():
    return varied_instance(4, 6, 8)


@pytest.fixture(scope="module")
def solution(mine):
    return solve(mine, SolveConfig(method=Method.toposort))


@pytest.fixture(scope="module")
def period(solution):
    return period_of(solution.shares)


def test_figures_per_period_add_up_to_the_checked_value(mine, solution, period):
    table = views.by_period(mine, solution.shares)
    assert_allclose(table["npv"][-1], solution.verdict.value, rtol=1e-9)
    assert (table["share_1"] <= 1 + 1e-9).all()
    assert_allclose(table["tonnes"].sum(), (period >= 0) @ views.block_tonnes(mine))


def test_every_figure_is_written_as_a_picture(tmp_path, mine, solution, period):
    rows = {"toposort": {"value": solution.verdict.value, "seconds": 0.1, "mib": 100.0}}
    figures = {
        "grades": views.grade_tonnage(mine),
        "pits": views.pit_by_pit(penalised_pits(mine, 8)),
        "periods": views.period_figure(mine, solution.shares),
        "sections": views.sections(mine, period),
        "voxels": views.voxels(mine, period),
        "methods": views.method_table(rows, solution.upper),
        "risk": views.risk(np.random.default_rng(0).normal(size=(2, 9)), ["a", "b"]),
    }
    for name, figure in figures.items():
        path = views.save(figure, tmp_path / f"{name}.png")
        assert path.read_bytes()[:4] == b"\x89PNG", name
    assert not list(tmp_path.glob("*.part"))


def test_the_life_of_the_mine_has_one_frame_per_period(tmp_path, mine, period):
    pictures = views.frames(mine, period)[:3]
    path = views.save_gif(pictures, tmp_path / "life.gif")
    assert path.read_bytes()[:3] == b"GIF"
    assert not np.array_equal(pictures[0], pictures[2])


def test_pieces_are_counted_per_period(mine, period):
    pieces = views.coherence(mine, period)
    mined = np.bincount(period[period >= 0], minlength=mine.periods)
    assert ((pieces > 0) == (mined > 0)).all()
    assert (pieces <= mined).all()


def test_without_pyvista_the_solid_view_says_what_to_install(tmp_path, monkeypatch, mine, period):
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(ConfigError, match=r"pip install .*\[viz\]"):
        save_solid(mine, period, tmp_path / "mine.png")


def test_pyvista_writes_the_mined_blocks(tmp_path, mine, period):
    pyvista = pytest.importorskip("pyvista")
    path = save_solid(mine, period, tmp_path / "mine.vtu")
    assert pyvista.read(path).n_cells == int((period >= 0).sum())


def test_methods_are_compared_in_one_table(tmp_path, mine):
    config = SolveConfig(method=Method.compare, pictures=str(tmp_path))
    found = solve(mine, config)
    assert found.verdict.feasible
    assert len(found.notes) == 1 + 10 * 3
    assert (tmp_path / "methods.png").is_file()
    gaps = [float(line.split()[-2]) for line in found.notes[1:]]
    assert gaps == sorted(gaps)
    assert found.gap_percent == pytest.approx(gaps[0], abs=1e-3)


def test_air_weighs_nothing_in_any_figure(tmp_path):
    """Blocks of air had the mean tonnage of the rest: 12.9 Mt in a period that moved 2.8."""
    cells = np.argwhere(np.ones((5, 5, 4))) * [20.0, 20.0, 15.0] + [0.0, 0.0, 600.0]
    tonnes = np.where(cells[:, 2] > 640, 0.0, 15_000.0)
    lines = [f"{x},{y},{z},{t},1.0" for (x, y, z), t in zip(cells, tonnes, strict=True)]
    (tmp_path / "m.csv").write_text("\n".join(["x,y,elevation,ton,cu", *lines]))
    instance = model_instance(read_csv(tmp_path / "m.csv"), None, MinePlan(periods=3))
    found = solve(instance, SolveConfig(method=Method.toposort))
    table = views.by_period(instance, found.shares)
    assert_allclose(table["tonnes"], table["resource_0"])
    grid = views.period_grid(instance, period_of(found.shares))
    assert np.array_equal(np.isnan(grid), views.period_grid(instance, tonnes) != 15_000)
    pits = penalised_pits(instance, 8)
    assert pits.tonnes[-1] == instance.fields["ton"][pits.first < len(pits.tonnes)].sum()


def test_unequal_blocks_fill_what_they_cover(tmp_path):
    """Large blocks were drawn as one cell of the smallest, with holes all around them."""
    parents = np.argwhere(np.ones((3, 3, 2))) * 20.0 + [0.0, 0.0, 600.0]
    children = parents[4] + np.argwhere(np.ones((2, 2, 2))) * 10.0 - 5.0
    rows = [(*c, 20, 20, 20, 2e4, 1.0) for c in np.delete(parents, 4, axis=0)]
    rows += [(*c, 10, 10, 10, 2500, 1.0) for c in children]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "m.csv").write_text("x,y,elevation,dx,dy,dz,ton,cu\n" + text)
    instance = model_instance(read_csv(tmp_path / "m.csv"))
    grid = views.period_grid(instance, np.arange(len(rows)))
    assert grid.shape == (6, 6, 4)
    _, cells = np.unique(grid, return_counts=True)
    assert cells.tolist() == [8] * 17 + [1] * 8
