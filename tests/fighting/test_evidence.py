"""Evidence of marks against a slow twin, numbers of two bytes, slips, and files of marks."""

import numpy as np
import pytest

from fighting.tools.candidates import WORK_RAM, WORK_RAM_BYTES
from fighting.tools.evidence import (
    HEALTH,
    RIVAL,
    SCORE,
    WANTED,
    WINDOW_FRAMES,
    Evidence,
    is_decimal,
    numbers,
    where,
)
from fighting.tools.marks import Mark, Moment, read_marks, write_marks
from frugal_rl.errors import DataError


def seen(memory, moments):
    """Evidence of a recording (F, 8192) and its marks."""
    evidence = Evidence()
    for frame, row in enumerate(memory):
        evidence.see(row)
        for moment in moments:
            if moment.frame == frame:
                evidence.hear(moment.mark)
    return evidence


def twin(values, moments, wanted):
    """Marks that agree with a number [F], and its changes that marks tell of, by plain loops."""
    step = np.diff(values.astype(np.int64), prepend=int(values[0]))
    right = step > 0 if wanted.rises else step < 0
    agreed, told, last = 0, set(), -1
    for moment in moments:
        window = range(max(0, moment.frame - WINDOW_FRAMES + 1), moment.frame + 1)
        if moment.mark is wanted.mark:
            agreed += any(right[f] for f in window)
            told |= {f for f in window if right[f]}
        if moment.mark is Mark.nothing:
            agreed += not any(step[f] for f in range(last + 1, moment.frame + 1))
        last = moment.frame
    return agreed, len(told), int((step != 0).sum())


def test_evidence_counts_what_its_slow_twin_counts():
    rng = np.random.default_rng(0)
    memory = np.zeros((700, WORK_RAM_BYTES), np.uint8)
    for column, often in enumerate((0.5, 0.1, 0.02, 0.01, 0.004)):
        moves = np.where(rng.random(700) < often, rng.integers(-3, 4, 700), 0)
        memory[:, column] = 128 + np.cumsum(moves)
    kinds = list(Mark)
    moments = [Moment(int(f), kinds[f % 3]) for f in np.sort(rng.choice(700, 24, replace=False))]
    evidence = seen(memory, moments)
    spread = np.array([numbers(row) for row in memory])
    for place in [*range(6), WORK_RAM_BYTES, WORK_RAM_BYTES + 2, 2 * WORK_RAM_BYTES + 1]:
        for wanted in WANTED:
            agreed, told, changes = twin(spread[:, place], moments, wanted)
            assert evidence.met[wanted][place] + evidence.calm[place] == agreed, (place, wanted)
            assert (evidence.told[wanted][place], evidence.changes[place]) == (told, changes)


def counted(gains, form):
    """A number in two bytes at $C010 that rises at `gains`, beside a byte that always moves."""
    memory = np.zeros((gains[-1] + 100, WORK_RAM_BYTES), np.uint8)
    memory[:, 0x20] = np.arange(len(memory)) % 251
    for count, frame in enumerate(gains):
        memory[frame:, 0x10:0x12] = list(form(95 + count))
    memory[: gains[0], 0x10:0x12] = list(form(94))
    return memory


@pytest.mark.parametrize(
    ("form", "kind", "big", "most"),
    [
        (lambda n: (160 + n).to_bytes(2, "little"), "binary", False, 265),
        (lambda n: (160 + n).to_bytes(2, "big"), "binary", True, 265),
        (lambda n: bytes.fromhex(f"{n:04d}"), "bcd", True, 105),
    ],
)
def test_a_score_of_two_bytes_is_found_once_its_low_byte_has_turned_over(form, kind, big, most):
    gains = list(range(60, 60 + 200 * 11, 200))
    memory = counted(gains, form)
    evidence = seen(memory, [Moment(frame + 30, Mark.gained) for frame in gains])
    place = evidence.ranked(SCORE, 1)[0]
    assert (place.addr, place.size, place.big) == (0xC010, 2, big)
    found = place.candidate("score", memory)
    assert (found.kind, found.value) == (kind, most)
    assert "size: 2" in found.yaml()
    assert not evidence.ranked(HEALTH, 1)


def test_a_neighbour_that_once_moves_by_itself_is_another_number():
    memory = np.zeros((400, WORK_RAM_BYTES), np.uint8)
    memory[100:200, 0] = 1
    memory[200:, 1] = 1  # as the other one falls: this much looks like a carry
    moments = [Moment(frame, Mark.gained) for frame in (120, 220, 320)]
    evidence = seen(memory, moments)
    assert (evidence.ranked(SCORE, 1)[0].addr, evidence.ranked(SCORE, 1)[0].size) == (WORK_RAM, 2)
    memory[300:, 1] = 2
    assert all(place.size == 1 for place in seen(memory, moments).ranked(SCORE, 99))


def test_places_are_told_apart_by_address_size_and_order():
    assert where(5) == (WORK_RAM + 5, 1, False)
    assert where(WORK_RAM_BYTES + 5) == (WORK_RAM + 5, 2, False)
    assert where(2 * WORK_RAM_BYTES - 1 + 5) == (WORK_RAM + 5, 2, True)


def test_a_slip_costs_a_place_but_does_not_strike_it_out():
    memory = np.full((1200, WORK_RAM_BYTES), 9, np.uint8)
    for hit in (100, 400, 700):
        memory[hit:, 5] -= 1
    memory[950:, 6] = 8  # what fell before the slip alone
    marks = [Moment(hit + 20, Mark.lost) for hit in (100, 400, 700)]
    evidence = seen(memory, [*marks, Moment(1000, Mark.lost)])
    assert [str(place) for place in evidence.ranked(HEALTH, 2)] == ["$C005 3:1"]
    assert list(evidence.lines()) == [
        "  health or lives: 1 left, $C005 3:1",
        "  the rival's score: 0 left",
    ]
    assert evidence.left(RIVAL) == 0


def test_numbers_below_ten_are_taken_for_plain_ones():
    assert not is_decimal(np.arange(10, dtype=np.uint8)[:, None])
    assert not is_decimal(np.arange(40, dtype=np.uint8)[:, None])
    assert is_decimal(np.array([[8], [9], [0x10], [0x11]], np.uint8))


def test_marks_are_written_and_read_again(tmp_path):
    path = tmp_path / "a.csv"
    moments = [Moment(3, Mark.lost), Moment(5, Mark.nothing), Moment(9, Mark.gained)]
    write_marks(path, moments)
    assert read_marks(path, 10, "a.replay") == moments
    path.write_text("\ufeff\n9; gained # a gap\n\n3 lost\n")
    assert read_marks(path, 10, "a.replay") == [moments[2], moments[0]][::-1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,lost\n2,hit\n", "line 2: there is no mark 'hit'; write one of lost, gained, nothing."),
        (
            "1,lost\n10,lost\n",
            "line 2: frame 10 lies beyond a.replay, which has the frames 0 to 9.",
        ),
        ("-1,lost\n", "line 1: '-1' is no frame; write a frame and lost, gained or nothing"),
        ("1.5 lost\n", "line 1: '1.5' is no frame"),
        ("lost\n", "line 1: 'lost' is no mark; write a frame"),
        ("# nothing yet\n", "line 1: the file has no marks at all; for each mark write a frame"),
        ("4,nothing\n", "line 1: the file marks nothing that was lost or gained; for each mark"),
    ],
)
def test_a_bad_line_is_refused_with_file_line_and_remedy(text, words, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_marks(path, 10, "a.replay")
    assert str(caught.value).startswith(f"{path}, {words}")
    assert "\n" not in str(caught.value)
