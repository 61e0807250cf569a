"""TensorBoard's own reader finds every number at its step."""

import pytest

from frugal_rl.report.tensorboard_sink import TensorBoard

reading = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="the extra profile is not installed",
)


def test_numbers_are_read_back_at_their_steps(tmp_path):
    sink = TensorBoard(tmp_path)
    for step, value in ((8, 0.5), (16, 0.75)):
        sink.metrics(step, {"episode/return": value})
    sink.close()

    found = reading.EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()

    told = [(event.step, event.value) for event in found.Scalars("episode/return")]
    assert told == [(8, 0.5), (16, 0.75)]
