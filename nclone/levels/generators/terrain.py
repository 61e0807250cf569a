"""Open terrain: rolling hills of slope tiles, and islands in open space."""

from __future__ import annotations

from dataclasses import dataclass

from nclone.levels.generators.canvas import Canvas, Range

# Tiles of a ramp by columns from left to right, each from its foot upwards; a ramp of `rise`
# cells over `run` columns that goes up to the right, and its mirror image that goes down.
_RAMPS_UP = {"straight": ((8,),), "mild": ((20,), (24,)), "steep": ((32, 28),)}
_RAMPS_DOWN = {"straight": ((9,),), "mild": ((25,), (21,)), "steep": ((33, 29),)}
_RISE = {"straight": 1, "mild": 1, "steep": 2}


@dataclass(frozen=True)
class Hills:
    """A valley whose floor rolls up and down on mild, straight and steep slopes."""

    width: Range = (20, 38)
    height: Range = (8, 19)
    hills: Range = (1, 4)
    flat: Range = (2, 5)
    """Cells of level ground between two slopes."""
    change: Range = (1, 3)
    """Cells that a hill rises."""
    slopes: tuple[str, ...] = ("mild", "straight")

    def build(self, canvas: Canvas) -> None:
        """Carve the sky, then lay the ground from left to right."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height)
        bottom, right = top + height - 1, left + width - 1
        canvas.carve(left, top, width, height)
        ground, column = bottom, left  # `ground` is the highest solid row
        starts: list[int] = [left + 1]
        for _ in range(dice.between(*self.hills)):
            column = self._flat(canvas, column, right, ground, bottom)
            climb = min(dice.between(*self.change), ground - top - 4)
            column, ground = self._slope(canvas, column, right, ground, bottom, climb)
            column = self._flat(canvas, column, right, ground, bottom)
            starts.append(min(column, right - 1))
            back = min(dice.between(*self.change), bottom - ground)
            column, ground = self._slope(canvas, column, right, ground, bottom, -back)
        canvas.fill(column, ground, right - column + 1, bottom - ground + 1)
        spawn = (left + 1, canvas.floor_below(left + 1, top))
        middle = starts[len(starts) // 2] - 1
        canvas.spawn(*spawn)
        goal = (right - 1, canvas.floor_below(right - 1, top))
        switch = (middle, canvas.floor_below(middle, top))
        canvas.exit(switch if switch not in (spawn, goal) else (goal[0] - 2, goal[1]), goal)

    def _flat(self, canvas: Canvas, column: int, right: int, ground: int, bottom: int) -> int:
        size = max(0, min(canvas.dice.between(*self.flat), right - column + 1))
        canvas.fill(column, ground, size, bottom - ground + 1)
        return column + size

    def _slope(
        self, canvas: Canvas, column: int, right: int, ground: int, bottom: int, climb: int
    ) -> tuple[int, int]:
        """Lay a slope of `climb` cells (negative: downwards); returns where it ended."""
        left_over = abs(climb)
        while left_over > 0:
            fitting = [s for s in self.slopes if _RISE[s] <= left_over]
            if not fitting:
                break
            kind = canvas.dice.pick(fitting)
            ramp, rise = (_RAMPS_UP if climb > 0 else _RAMPS_DOWN)[kind], _RISE[kind]
            if column + len(ramp) > right - 1:
                break
            foot = ground - 1 if climb > 0 else ground - 1 + rise
            for tiles in ramp:
                for k, tile in enumerate(tiles):
                    canvas.fill(column, foot - k, 1, 1, tile)
                canvas.fill(column, foot + 1, 1, bottom - foot)
                column += 1
            ground += -rise if climb > 0 else rise
            left_over -= rise
        return column, ground


@dataclass(frozen=True)
class Islands:
    """Blocks of up to 4 x 4 tiles in open space."""

    width: Range = (36, 38)
    height: Range = (12, 19)
    size: Range = (1, 4)
    spacing: int = 1
    crowd: float = 0.6
    """Probability that a place gets its island."""

    def build(self, canvas: Canvas) -> None:
        """Lay the islands on a grid whose places are as large as the largest island."""
        dice = canvas.dice
        width, height = dice.between(*self.width), dice.between(*self.height)
        left, top = canvas.place_box(width, height)
        canvas.carve(left, top, width, height)
        pitch = self.size[1] + self.spacing
        tops: list[tuple[int, int]] = []
        for x in range(left + 1, left + width - pitch + 1, pitch):
            for y in range(top + 3, top + height - 1, pitch):
                if dice.chance(self.crowd):
                    wide, tall = dice.between(*self.size), dice.between(*self.size)
                    tall = min(tall, top + height - y - 1)
                    canvas.fill(x, y, wide, tall)
                    tops.append((x, y - 1))
        free = [cell for cell in tops if canvas.is_empty(*cell)]
        free += [(left + 1, top + height - 1), (left + width - 2, top + height - 1)]
        free = sorted({cell for cell in free if canvas.is_empty(*cell)})
        spawn, goal = free[0], free[-1]
        between = [cell for cell in free if cell not in (spawn, goal)] or [(left + width // 2, top)]
        canvas.spawn(*spawn)
        canvas.exit(dice.pick(between), goal)
