"""Odd files of a deposit whose true places are known: right by a cone of our own, refused, or told.

A file may say less than it must (which way is up, which axis is north, which unit one axis has).
Then a schedule may undercut the true deposit only where the program said what it took for granted.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from frugal_rl.errors import FrugalError
from mine_rl_npv.data.economics import Economics, MinePlan
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.data.units import Length, Units
from mine_rl_npv.tools.planner import run
from mine_rl_npv.tools.solve_config import Method, SolveConfig

SIZES = ((20, 20, 15), (10, 10, 10), (25, 12.5, 5), (12.5, 12.5, 10), (5, 10, 5), (20, 20, 12))
FEET = 1 / 0.3048


@dataclass
class Odd:
    """A deposit as it is, and the file that is made of it, change by change."""

    rng: np.random.Generator
    centre: np.ndarray
    """(N, 3) true metres, z upward."""
    edge: np.ndarray
    """(N, 3) metres."""
    tonnes: np.ndarray
    copper: np.ndarray
    degrees: float
    sectors: tuple[str, ...]
    written: np.ndarray
    """(N, 3) the coordinates as the file has them."""
    names: list[str] = field(default_factory=lambda: ["x", "y", "z"])
    with_edges: bool = False
    edge_scale: float = 1.0
    settings: dict = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    """Words of which one must be told if the schedule undercuts the true deposit."""
    must_refuse: bool = False
    style: str = "plain"
    done: list[str] = field(default_factory=list)

    def keep(self, rows):
        """Leaves the other blocks out, or puts them into an order."""
        for name in ("centre", "edge", "tonnes", "copper", "written"):
            setattr(self, name, getattr(self, name)[rows])


def deposit(rng):
    """A few benches with ore in one place, somewhere in the world."""
    size = np.array(SIZES[rng.integers(len(SIZES))], float)
    shape = rng.integers(3, 7, 3)
    cell = np.argwhere(np.ones(shape, bool))
    corner = rng.choice([0.0, 0.5, 1.0]) * size + rng.choice(
        [[0, 0, 0], [512_400, 7_230_150, 2900], [1000, -2000, -100], [88.25, 91.5, 640.75]]
    )
    centre = corner + cell * size
    heart = corner + size * rng.uniform(0, 1, 3) * (shape - 1)
    away = np.linalg.norm((centre - heart) / size, axis=1)
    edge = np.tile(size, (len(cell), 1))
    tonnes = edge.prod(axis=1) * rng.uniform(2.0, 3.0)
    copper = np.round(3.0 * np.exp(-away / 1.5) + rng.uniform(0, 0.2, len(cell)), 3)
    sectors = some_sectors(rng) if rng.random() < 0.4 else ()
    degrees = float(rng.integers(28, 62))
    return Odd(rng, centre, edge, tonnes, copper, degrees, sectors, centre.copy())


def some_sectors(rng):
    first = int(rng.integers(360))
    ends = [(first + step) % 360 for step in (0, 70, 150, 260)]
    return tuple(f"{ends[2 * i]}-{ends[2 * i + 1]}:{rng.integers(28, 62)}" for i in range(2))


def rotated(odd):
    """The whole world turned about a vertical axis; azimuths stay those of the world."""
    angle = np.radians(odd.rng.uniform(1, 89))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle = odd.centre[:, :2].mean(axis=0)
    odd.centre[:, :2] = np.round((odd.centre[:, :2] - middle) @ turn.T + middle, 4)
    odd.written = odd.centre.copy()


def sub_blocked(odd):
    """Some blocks as eight, with columns of edges."""
    some = odd.rng.random(len(odd.centre)) < 0.2
    corners = (np.argwhere(np.ones((2, 2, 2))) - 0.5) / 2
    parts = odd.centre[some][:, None] + corners * odd.edge[some][:, None]
    eight = np.repeat(np.flatnonzero(some), 8)
    odd.keep(np.concatenate((np.flatnonzero(~some), eight)))
    m = len(eight)
    if m:
        odd.centre[-m:] = parts.reshape(-1, 3)
        odd.edge[-m:] /= 2
        odd.tonnes[-m:] /= 8
    odd.written, odd.with_edges = odd.centre.copy(), True


def voids(odd):
    odd.keep(np.flatnonzero(odd.rng.random(len(odd.centre)) > odd.rng.choice([0.05, 0.3])))


def missing_bench(odd):
    levels = np.unique(odd.centre[:, 2])
    odd.keep(np.flatnonzero(odd.centre[:, 2] != odd.rng.choice(levels)))


def hillside(odd):
    """The ground falls to one side; what lies above it is absent."""
    east = odd.centre[:, 0] - odd.centre[:, 0].min()
    fall = odd.rng.uniform(0.2, 0.8) * np.ptp(odd.centre[:, 2]) / max(np.ptp(east), 1)
    odd.keep(np.flatnonzero(odd.centre[:, 2] <= odd.centre[:, 2].max() - fall * east + 1e-6))


def any_order(odd):
    odd.keep(odd.rng.permutation(len(odd.centre)))


def rounded(odd):
    odd.written = np.round(odd.written, int(odd.rng.integers(2, 4)))


def twice(odd):
    odd.keep(np.append(np.arange(len(odd.centre)), odd.rng.integers(len(odd.centre))))
    odd.must_refuse = True


def in_feet(odd):
    """All of the file in feet, as the setting says."""
    odd.written, odd.edge_scale = odd.written * FEET, FEET
    odd.settings["units"] = Units(Length.ft)


def one_axis_in_feet(odd):
    some = ([2], [0, 1])[odd.rng.integers(2)]
    odd.written[:, some] *= FEET
    odd.taken.append("cubic metre of the usual block weighs")


def heights_of_depths(odd):
    """Depths, or elevations with the other sign, in a column whose name says nothing."""
    z = odd.written[:, 2]
    below = odd.rng.choice([0.0, float(z.max()), float(z.max()) + odd.edge[0, 2] / 2])
    odd.written[:, 2] = below - z
    if odd.rng.random() < 0.4:
        odd.settings["columns"] = {"z_direction": "down"}
    else:
        odd.taken.append("ASSUMED")


def named_depth(odd):
    z = odd.written[:, 2]
    odd.written[:, 2] = z.max() + odd.edge[0, 2] / 2 - z
    odd.names[2] = str(odd.rng.choice(["depth", "DEPTH", "z_down"]))


def depths_below_zero(odd):
    odd.written[:, 2] -= odd.written[:, 2].max() + odd.edge[0, 2] / 2
    odd.names[2] = str(odd.rng.choice(["depth", "z", "elevation"]))


def other_names(odd):
    odd.names = [["EASTING", "XC", "x_centre"][odd.rng.integers(3)], "NORTHING", "RL"]
    odd.names[1] = {"EASTING": "NORTHING", "XC": "YC"}.get(odd.names[0], "y_centre")


def east_and_north_swapped(odd):
    odd.written = odd.written[:, [1, 0, 2]]
    if odd.sectors:
        odd.taken.append("is taken as east")


def height_in_y(odd):
    odd.written = odd.written[:, [0, 2, 1]]
    odd.taken.append("ASSUMED")


def counted(odd):
    """Whole numbers of blocks, with the size stated or not."""
    size = odd.edge[0]
    odd.written = np.round((odd.written - odd.written.min(axis=0)) / size)
    if odd.rng.random() < 0.6:
        odd.settings["block_size"] = tuple(size.tolist())
    else:
        odd.taken.append("cubic metre of the usual block weighs")


PLACES = (sub_blocked, voids, missing_bench, hillside, rotated)
"""In the order in which they are made."""
HEIGHTS = (heights_of_depths, named_depth, depths_below_zero, other_names, height_in_y)
LENGTHS = (in_feet, one_axis_in_feet, counted)
ROWS = (any_order, rounded, twice)
STYLES = (
    "plain",
    "quoted",
    "semicolons",
    "decimal commas",
    "tabs",
    "blanks",
    "thousands",
    "points and commas",
    "points for thousands",
    "mark",
    "utf-16",
    "crlf",
)


def odd_model(seed):
    """Up to two changes of places, one of each kind of the file at times, and a way to write it."""
    rng = np.random.default_rng([seed, 4242])
    odd = deposit(rng)
    changes = [PLACES[i] for i in sorted(rng.choice(len(PLACES), rng.integers(3), replace=False))]
    for kind, often in ((HEIGHTS, 0.5), (LENGTHS, 0.3), (ROWS, 0.3)):
        changes += [kind[rng.integers(len(kind))]] * int(rng.random() < often)
    changes += [east_and_north_swapped] * int(rng.random() < 0.1 and height_in_y not in changes)
    if {rotated, sub_blocked} & set(changes):
        changes = [change for change in changes if change is not counted]
    for change in changes:
        change(odd)
        odd.done.append(change.__name__)
    odd.style = str(rng.choice(STYLES))
    if not set(HEIGHTS) & set(changes) and rng.random() < 0.7:  # else refused where z begins at 0
        odd.settings["columns"] = {"z_direction": "up"}
    return odd


def write(odd, path):
    """The file in its style, with a column of words and one of other numbers."""
    head = [*odd.names, "ton", "cu", "rock", "sample"]
    numbers = [*odd.written.T, odd.tonnes, odd.copper]
    words = ["ore" if cu > 1 else "waste" for cu in odd.copper]
    extra = odd.rng.integers(0, 90, len(words)).tolist()
    if odd.with_edges:
        head, numbers = [*head, "dx", "dy", "dz"], [*numbers, *(odd.edge * odd.edge_scale).T]
    columns = [[number(v, odd.style) for v in column] for column in numbers]
    columns[5:5] = [words, list(map(str, extra))]
    divide = {"semicolons": ";", "decimal commas": ";", "tabs": "\t", "blanks": " "}
    between = divide.get(odd.style, ";" if "points" in odd.style else ",")
    quote = '"' if odd.style in ("quoted", "thousands") else ""
    rows = [
        between.join(f"{quote}{w}{quote}" for w in row)
        for row in [head, *zip(*columns, strict=True)]
    ]
    text = ("\r\n" if odd.style == "crlf" else "\n").join(rows)
    coding = {"mark": "utf-8-sig", "utf-16": "utf-16"}.get(odd.style, "utf-8")
    path.write_bytes(text.encode(coding))


def number(value, style):
    if style == "thousands":
        return f"{value:,.3f}"
    if style == "points and commas":
        return f"{value:,.3f}".translate(str.maketrans(",.", ".,"))
    if style == "points for thousands":
        return f"{round(value):,}".replace(",", ".") if value == round(value) else repr(value)
    word = repr(float(value))
    return word.replace(".", ",") if style == "decimal commas" else word


def undercuts(odd, period):
    """Pairs (lower, upper) of true blocks where the upper one leaves after what it rests on."""
    step = odd.centre[None] - odd.centre[:, None]  # [lower, upper]
    across, up = np.hypot(step[..., 0], step[..., 1]), step[..., 2]
    wall = np.degrees(np.arctan2(up, across))
    azimuth = np.degrees(np.arctan2(step[..., 0], step[..., 1]))
    steep = np.max([allowed(odd, azimuth + side) for side in (-0.05, 0.05)], axis=0)
    over = np.all(np.abs(step[..., :2]) < 0.48 * (odd.edge[None] + odd.edge[:, None])[..., :2], -1)
    over &= up > 0.48 * (odd.edge[None, :, 2] + odd.edge[:, None, 2])
    over &= "rotated" not in odd.done
    inside = (up > 1e-3) & ((wall > steep + 0.05) | over)
    mined = period >= 0
    later = np.where(mined, period, 10**6)
    return np.argwhere(inside & mined[:, None] & (later[None] > later[:, None]))


def allowed(odd, azimuth):
    """Degrees of the wall seen at each azimuth."""
    steep = np.full(azimuth.shape, odd.degrees)
    for sector in odd.sectors:
        span, slope = sector.split(":")
        start, end = map(int, span.split("-"))
        steep[(azimuth - start) % 360 < (end - start) % 360] = float(slope)
    return steep


def verdict(seed, tmp_path, capsys):
    """right, told or refused; anything else is an assertion."""
    odd = odd_model(seed)
    if len(odd.centre) < 2:
        return "refused"
    path = tmp_path / f"{seed}.csv"
    write(odd, path)
    plan = MinePlan(periods=3, slope_degrees=odd.degrees, slope_sectors=odd.sectors, slope_levels=0)
    config = SolveConfig(
        model=str(path),
        plan=plan,
        method=Method.toposort,
        economics=Economics(copper_price=6.0),
        **odd.settings,
    )
    what = (seed, odd.done, odd.style, odd.names, odd.sectors)
    capsys.readouterr()
    solution, refusal = solved(config)
    if solution is None:
        assert str(path) in refusal, what
        assert "\n" not in refusal, what
        return "refused"
    told = "".join(capsys.readouterr())
    assert not odd.must_refuse, what
    assert solution.verdict.feasible, what
    broken = undercuts(odd, period_of(solution.shares))
    if not len(broken):
        return "right" if (solution.shares > 0).any() else "empty"
    assert any(words in told for words in odd.taken), (*what, len(broken), told)
    return "told"


def solved(config):
    """A solution and no words, or none and the words of the refusal."""
    try:
        return run(config), ""
    except FrugalError as error:
        return None, str(error)


@pytest.mark.parametrize("seed", [*range(16), 1185, 1464, 1878])
def test_an_odd_file_is_right_refused_or_told(seed, tmp_path, capsys):
    verdict(seed, tmp_path, capsys)


@pytest.mark.slow
def test_thousand_odd_files_are_right_refused_or_told(tmp_path, capsys):
    found = [verdict(seed, tmp_path, capsys) for seed in range(1000, 2000)]
    counts = {word: found.count(word) for word in ("right", "empty", "told", "refused")}
    with capsys.disabled():
        print(f"\n{counts}")
    assert counts["right"] > 300
    assert counts["told"] > 10
    assert counts["refused"] > 100
