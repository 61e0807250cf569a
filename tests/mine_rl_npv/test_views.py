"""Pictures show the numbers of the schedule."""

import numpy as np
from numpy.testing import assert_allclose

from mine_rl_npv import views
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise.pits import penalised_pits
from mine_rl_npv.solve import Method, SolveConfig, solve

INSTANCE = varied_instance(4, 6, 8)
SOLUTION = solve(INSTANCE, SolveConfig(method=Method.toposort))
PERIOD = period_of(SOLUTION.shares)


def test_figures_per_period_add_up_to_the_checked_value():
    table = views.by_period(INSTANCE, SOLUTION.shares)
    assert_allclose(table["npv"][-1], SOLUTION.verdict.value, rtol=1e-9)
    assert (table["share_1"] <= 1 + 1e-9).all()
    assert_allclose(table["tonnes"].sum(), (PERIOD >= 0) @ views.block_tonnes(INSTANCE))


def test_every_figure_is_written_as_a_picture(tmp_path):
    rows = {"toposort": {"value": SOLUTION.verdict.value, "seconds": 0.1, "mib": 100.0}}
    figures = {
        "grades": views.grade_tonnage(INSTANCE),
        "pits": views.pit_by_pit(penalised_pits(INSTANCE, 8)),
        "periods": views.period_figure(INSTANCE, SOLUTION.shares),
        "sections": views.sections(INSTANCE, PERIOD),
        "voxels": views.voxels(INSTANCE, PERIOD),
        "methods": views.method_table(rows, SOLUTION.upper),
        "risk": views.risk(np.random.default_rng(0).normal(size=(2, 9)), ["a", "b"]),
    }
    for name, figure in figures.items():
        path = views.save(figure, tmp_path / f"{name}.png")
        assert path.read_bytes()[:4] == b"\x89PNG", name
    assert not list(tmp_path.glob("*.part"))


def test_the_life_of_the_mine_has_one_frame_per_period(tmp_path):
    pictures = views.frames(INSTANCE, PERIOD)[:3]
    path = views.save_gif(pictures, tmp_path / "life.gif")
    assert path.read_bytes()[:3] == b"GIF"
    assert not np.array_equal(pictures[0], pictures[2])


def test_pieces_are_counted_per_period():
    pieces = views.coherence(INSTANCE, PERIOD)
    mined = np.bincount(PERIOD[PERIOD >= 0], minlength=INSTANCE.periods)
    assert ((pieces > 0) == (mined > 0)).all()
    assert (pieces <= mined).all()
