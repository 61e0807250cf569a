"""A replay of a stranger, whose checksums are right: refused, or drawn from without a crash."""

import copy
import os

import numpy as np
import pytest

from frugal_rl.errors import DataError, FrugalError
from frugal_rl.store.replay_column import ReplayColumn

STEPS = 90
TABLES = ("bases", "links", "starts", "anchor_of", "_anchor")
OUTSIDE = (-1, 255, 12_345, 10**6, 2**30 - 1, 2**31 - 1)


def column(row_bytes=512, ring=64, frames=1):
    shape = (frames, row_bytes)
    return ReplayColumn(shape, np.uint8, ring, 2, frames=frames)


def filled(**how):
    """A column in which episodes ended, so that rows lie beside others."""
    made, rng = column(**how), np.random.default_rng(0)
    row = rng.integers(256, size=(2, *made.shape), dtype=np.uint8)
    for step in range(STEPS):
        after = row.copy()
        after[..., step * 7 % row.shape[-1]] += 1
        told = rng.integers(256, size=row.shape, dtype=np.uint8) if step % 13 == 0 else after
        made.add(row, told)
        row = after
    return made


@pytest.fixture(scope="module")
def state():
    made = filled()
    loaded = column()
    loaded.load(made.state())  # what was not changed is taken
    steps, n = np.arange(STEPS - 60, STEPS), np.zeros(60, np.int64)
    for ours, theirs in zip(loaded.draw(steps, n), made.draw(steps, n), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return made.state()


def used(state):
    """What happens to a process that loads a state, draws from it and adds to it."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            made, rng = column(), np.random.default_rng(1)
            made.load(state)
            for _ in range(10):
                made.draw(rng.integers(STEPS - 60, STEPS, size=32), rng.integers(2, size=32))
            row = np.zeros((2, *made.shape), np.uint8)
            for step in range(70):
                made.add(row, row + step % 2)
            status = 0
        except FrugalError:
            status = 3
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def refused(state):
    status = used(state)
    assert status in (0, 3)  # a number below 0 is the signal that ended it
    return status == 3


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_lead_elsewhere_never_reach_a_kernel(name, state):
    said = []
    for value in OUTSIDE:
        changed = copy.deepcopy(state)
        table = changed["rows"][name]
        table[...] = value if np.can_cast(np.min_scalar_type(value), table.dtype) else 1
        said.append(refused(changed))
    assert any(said)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("value", [-1, 5, 10**9])
def test_counters_that_do_not_fit_are_refused(place, value, state):
    changed = copy.deepcopy(state)
    changed["rows"]["numbers"][place] = value
    assert refused(changed) or place == 3


@pytest.mark.parametrize("back", [1, 8, 60])
def test_an_end_inside_of_the_newest_rows_is_refused(back, state):
    changed = copy.deepcopy(state)
    changed["rows"]["numbers"][1] -= back  # what comes would be written over them
    assert refused(changed)


def test_records_that_lead_elsewhere_never_reach_a_kernel(state):
    rng, said = np.random.default_rng(5), []
    for _ in range(20):
        changed = copy.deepcopy(state)
        raw = changed["rows"]["pool"]["bytes"][0]
        at = int(rng.integers(4000))
        raw[at : at + 32] = 255
        said.append(refused(changed))
    assert any(said)


def test_rows_beside_others_are_all_there(state):
    for change in (lambda s: s["keys"].__iadd__(1), lambda s: s["values"].__iadd__(10**6)):
        changed = copy.deepcopy(state)
        change(changed["rows"]["beside"])
        assert refused(changed)


def test_codes_lead_back_to_frames_of_the_same_observation():
    made = filled(frames=2)
    changed = made.state()
    changed["codes"][:] = 2
    with pytest.raises(DataError, match="leads back behind its observation"):
        column(frames=2).load(changed)


def test_small_rows_that_lack_what_they_say_they_have_are_refused():
    made = filled(row_bytes=16)
    changed = made.state()
    assert len(changed["rows"]["sides"]["keys"])
    changed["rows"]["sides"] = {k: v[:1] for k, v in changed["rows"]["sides"].items()}
    with pytest.raises(DataError, match="lacks what its rows say"):
        column(row_bytes=16).load(changed)
