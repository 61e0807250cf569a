"""Windows hold the rows of the running episode, nothing older, in the right order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Padding, Stored

STEPS = 6


def encoding_of(window, padding):
    fields = (
        Stored("x", (2,), np.int32, 0, 10**6, window=window, padding=padding),
        Stored("y", (), np.float32, 0, 10**6),
    )
    return Encoding.choose(ObservationSpec(fields), Storage.dense)


def slow_window(rows, window, padding):
    """The window of an episode whose rows so far are given, by its definition."""
    if window == EPISODE:
        return np.array(rows + [np.zeros(2, np.int32)] * (STEPS + 1 - len(rows)))
    missing = window - len(rows)
    pad = rows[0] if padding is Padding.repeat else np.zeros(2, np.int32)
    return np.array([pad] * max(0, missing) + rows[-window:])


@given(
    window=st.sampled_from([2, 3, 5, EPISODE]),
    padding=st.sampled_from(Padding),
    ends=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=25),
    resume_at=st.integers(0, 25),
)
def test_windows_equal_their_definition(window, padding, ends, resume_at):
    encoding = encoding_of(window, padding)
    history = History(encoding, 2, STEPS)
    counter = iter(range(1, 10**6))
    make = lambda n: np.array([[next(counter), 5] for _ in range(n)], np.int32)  # noqa: E731
    first = make(2)
    episodes = [[first[0]], [first[1]]]
    obs = history.reset({"x": first, "y": np.zeros(2, np.float32)})

    for step, end in enumerate(ends):
        rows, done = make(2), np.array(end) | (np.array([len(e) for e in episodes]) > STEPS)
        index = np.flatnonzero(done)
        finals = make(len(index))
        fits = [i for i, n in enumerate(index) if len(episodes[n]) <= STEPS]
        index, finals = index[fits], finals[fits]
        obs, final = history.push(
            {"x": rows, "y": np.zeros(2, np.float32)},
            done,
            index,
            {"x": finals, "y": np.zeros(len(index), np.float32)},
        )
        for i, n in enumerate(index):
            expected = slow_window([*episodes[n], finals[i]], window, padding)
            assert_array_equal(final["x"][i], expected)
            assert final["age"][i] == len(episodes[n])
        for n in range(2):
            episodes[n] = [rows[n]] if done[n] else [*episodes[n], rows[n]]
            assert_array_equal(obs["x"][n], slow_window(episodes[n], window, padding))
            assert obs["age"][n] == len(episodes[n]) - 1
        if step == resume_at:
            state = history.state()
            history = History(encoding, 2, STEPS)
            history.load(state)
    assert obs["x"].shape[1:] == encoding.policy_space(STEPS)["x"].shape


def test_without_windows_rows_pass_through_and_nothing_is_kept():
    encoding = encoding_of(1, Padding.zero)
    history = History(encoding, 3)
    rows = {"x": np.ones((3, 2), np.int32), "y": np.ones(3, np.float32)}

    obs = history.reset(rows)

    assert obs["x"] is rows["x"]
    assert "age" not in obs
    assert history.nbytes == 0


def test_final_rows_without_windows_pass_through():
    history = History(encoding_of(1, Padding.zero), 3)
    rows = {"x": np.ones((3, 2), np.int32), "y": np.ones(3, np.float32)}
    final_rows = {k: v[:1] for k, v in rows.items()}
    _, final = history.push(rows, np.array([True, False, False]), np.array([0]), final_rows)
    assert final["x"] is final_rows["x"]


@pytest.mark.parametrize("window", [4, EPISODE])
def test_history_counts_its_bytes(window):
    history = History(encoding_of(window, Padding.zero), 3, STEPS)
    rows = 2 * window if window > 1 else STEPS + 1
    assert history.nbytes == 3 * rows * 8 + 3 * 4
