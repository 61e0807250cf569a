"""Graph invariants of levels: sizes do not matter, loops and branches do."""

from nclone.levels.ascii import parse_drawing
from nclone.levels.level import load_level
from nclone.levels.topology import topology


def of(*rows):
    return topology(load_level(parse_drawing("title: t\n" + "\n".join(rows) + "\n")))


def test_a_corridor_is_a_line_of_any_length():
    assert of("@.S.X") == of("@........S.X", "............") == (((1, 2),), 0, 0)


def test_a_block_in_the_middle_makes_a_loop():
    assert of("@....", ".##..", "..S.X").loops == 1
    assert of("@.......", ".##.##..", "..S...X.").loops == 2


def test_a_branch_has_a_run_with_three_neighbours_and_three_ends():
    assert of("@......", "..#####", "....S.X").degrees == ((1, 3), (3, 1))


def test_what_cannot_be_reached_does_not_count():
    assert of("@.S.X#...", "######.#.", "######...") == of("@.S.X")


def test_doors_count():
    assert of("@.S....X", "locked_door 16 6 switch 10 6").doors == 1
