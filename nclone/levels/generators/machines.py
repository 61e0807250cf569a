"""What moves, kills, throws and pays: entities put into an area where they do something.

Every function puts one group of entities and leaves out what has no room. Floor guards, chaser
drones and turrets are missing because the simulator has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nclone.levels.entity_types import EntityType
from nclone.levels.generators.areas import Area, Cell, ceilings, floors, inner, walls
from nclone.levels.generators.canvas import AT_CEILING, CENTRE, ON_FLOOR

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas

RIGHT, DOWN, LEFT, UP = 0, 2, 4, 6
"""Orientations."""


def gold(canvas: Canvas, area: Area) -> None:
    """A row of gold above a floor, or gold spread in the air."""
    dice = canvas.dice
    if dice.chance(0.5):
        for column, row in _run(canvas, floors(canvas, area), dice.between(3, 8)):
            _put(canvas, EntityType.GOLD, (column, row - dice.between(0, 1)))
        return
    for cell in _some(canvas, inner(canvas, area), dice.between(2, 6)):
        _put(canvas, EntityType.GOLD, cell)


def floor_mines(canvas: Canvas, area: Area) -> None:
    """Mines on floors, some cells apart."""
    for column, row in _apart(canvas, floors(canvas, area), canvas.dice.between(1, 4), 4):
        canvas.mine(column, row, canvas.dice.between(1, 3), ON_FLOOR)


def mine_row(canvas: Canvas, area: Area) -> None:
    """Mines side by side on a floor, to be jumped over."""
    for column, row in _run(canvas, floors(canvas, area), canvas.dice.between(2, 4)):
        _mine(canvas, column, row, y=ON_FLOOR)


def ceiling_mines(canvas: Canvas, area: Area) -> None:
    """A row of mines at a ceiling."""
    for column, row in _run(canvas, ceilings(canvas, area), canvas.dice.between(2, 7)):
        _mine(canvas, column, row, y=AT_CEILING)


def wall_mines(canvas: Canvas, area: Area) -> None:
    """Mines on walls."""
    spots = {(c, r): side for c, r, side in walls(canvas, area)}
    for cell in _apart(canvas, sorted(spots), canvas.dice.between(1, 4), 3):
        _mine(canvas, *cell, x=CENTRE + spots[cell])


def mine_cloud(canvas: Canvas, area: Area) -> None:
    """Mines in the air."""
    for cell in _apart(canvas, inner(canvas, area), canvas.dice.between(2, 5), 3):
        _mine(canvas, *cell)


def toggle_mines(canvas: Canvas, area: Area) -> None:
    """Toggle mines side by side: harmless until they were touched."""
    for cell in _run(canvas, floors(canvas, area), canvas.dice.between(1, 4)):
        _put(canvas, EntityType.TOGGLE_MINE, cell, y=ON_FLOOR)


def launch_pad(canvas: Canvas, area: Area) -> None:
    """A pad on a floor or a wall, straight or oblique."""
    dice = canvas.dice
    if dice.chance(0.75):
        for column, row in _some(canvas, floors(canvas, area), 1):
            facing = dice.pick((UP, UP, UP - 1, UP + 1))
            _put(canvas, EntityType.LAUNCH_PAD, (column, row), y=4, facing=facing)
        return
    sides = {(c, r): side for c, r, side in walls(canvas, area)}
    for cell in _some(canvas, sorted(sides), 1):
        side = sides[cell]
        x, facing = (0, RIGHT) if side < 0 else (4, LEFT)
        _put(canvas, EntityType.LAUNCH_PAD, cell, x=x, facing=facing)


def bounce_blocks(canvas: Canvas, area: Area) -> None:
    """A row of blocks on springs in the air."""
    for cell in _run(canvas, inner(canvas, area), canvas.dice.between(1, 4)):
        _put(canvas, EntityType.BOUNCE_BLOCK, cell)


def thwump(canvas: Canvas, area: Area) -> None:
    """One at a ceiling that falls on who passes, or one that shoots from a wall."""
    if canvas.dice.chance(0.6):
        for cell in _some(canvas, ceilings(canvas, area), canvas.dice.between(1, 2)):
            _put(canvas, EntityType.THWUMP, cell, facing=DOWN)
        return
    sides = {(c, r): side for c, r, side in walls(canvas, area)}
    for cell in _some(canvas, sorted(sides), 1):
        _put(canvas, EntityType.THWUMP, cell, facing=RIGHT if sides[cell] < 0 else LEFT)


def shove_thwump(canvas: Canvas, area: Area) -> None:
    """A block in the air that is pushed away by whom it touches."""
    for cell in _some(canvas, inner(canvas, area), 1):
        _put(canvas, EntityType.SHOVE_THWUMP, cell)


def drone(canvas: Canvas, area: Area) -> None:
    """A drone that follows the walls."""
    _drones(canvas, area, EntityType.ZAP_DRONE, canvas.dice.between(1, 2))


def mini_drones(canvas: Canvas, area: Area) -> None:
    """Small drones that follow the walls."""
    _drones(canvas, area, EntityType.MINI_DRONE, canvas.dice.between(1, 3))


def death_ball(canvas: Canvas, area: Area) -> None:
    """A ball that chases."""
    spots = [c for c in inner(canvas, area) if canvas.is_clear(*c, reach=6)]
    for cell in _some(canvas, spots, 1):
        _put(canvas, EntityType.DEATH_BALL, cell)


def boost_pad(canvas: Canvas, area: Area) -> None:
    """Pads in the air that make who passes faster."""
    for cell in _some(canvas, inner(canvas, area), canvas.dice.between(1, 3)):
        _put(canvas, EntityType.BOOST_PAD, cell)


def one_ways(canvas: Canvas, area: Area) -> None:
    """A platform in the air that lets through from below."""
    for cell in _run(canvas, inner(canvas, area), canvas.dice.between(2, 4)):
        _put(canvas, EntityType.ONE_WAY, cell, facing=UP)


MACHINES: dict[str, Callable[[Canvas, Area], None]] = {
    machine.__name__: machine
    for machine in (
        gold,
        floor_mines,
        mine_row,
        ceiling_mines,
        wall_mines,
        mine_cloud,
        toggle_mines,
        launch_pad,
        bounce_blocks,
        thwump,
        shove_thwump,
        drone,
        mini_drones,
        death_ball,
        boost_pad,
        one_ways,
    )
}
"""By the names that presets use."""


def equip(canvas: Canvas, areas: Sequence[Area], names: tuple[str, ...], count: int) -> None:
    """Put `count` groups of machines, each of a drawn kind into a drawn area."""
    for _ in range(count):
        MACHINES[canvas.dice.pick(names)](canvas, canvas.dice.pick(areas))


def _put(
    canvas: Canvas, kind: EntityType, cell: Cell, x: int = CENTRE, y: int = CENTRE, facing: int = 0
) -> None:
    """Put an entity into a cell unless something is there already."""
    if canvas.is_free(*cell):
        canvas.record(kind, 4 * cell[0] + x, 4 * cell[1] + y, facing, 0)
        canvas.take(*cell)


def _mine(canvas: Canvas, column: int, row: int, x: int = CENTRE, y: int = CENTRE) -> None:
    if canvas.mine(column, row, x, y):
        canvas.take(column, row)


def _drones(canvas: Canvas, area: Area, kind: EntityType, count: int) -> None:
    dice = canvas.dice
    sides = sorted({(c, r) for c, r, _ in walls(canvas, area)} | set(floors(canvas, area)))
    clear = [c for c in sides if canvas.is_clear(*c, reach=4)]
    for column, row in _some(canvas, clear, count):
        x, y = 4 * column + CENTRE, 4 * row + CENTRE
        canvas.record(kind, x, y, dice.pick((RIGHT, DOWN, LEFT, UP)), dice.between(0, 3))
        canvas.take(column, row)


def _some(canvas: Canvas, cells: Sequence[Cell], count: int) -> list[Cell]:
    """Up to `count` clear cells."""
    clear = [c for c in cells if canvas.is_clear(*c)]
    canvas.dice.shuffle(clear)
    return clear[:count]


def _apart(canvas: Canvas, cells: Sequence[Cell], count: int, least: int) -> list[Cell]:
    """Up to `count` clear cells, each some columns or rows away from the others."""
    found: list[Cell] = []
    for c in _some(canvas, cells, len(cells)):
        if len(found) == count:
            break
        if all(max(abs(c[0] - d[0]), abs(c[1] - d[1])) >= least for d in found):
            found.append(c)
    return found


def _run(canvas: Canvas, cells: Sequence[Cell], length: int) -> list[Cell]:
    """Up to `length` clear cells side by side."""
    clear = {c for c in cells if canvas.is_clear(*c)}
    if not clear:
        return []
    column, row = canvas.dice.pick(sorted(clear))
    found = []
    while (column, row) in clear and len(found) < length:
        found.append((column, row))
        column += 1
    return found
