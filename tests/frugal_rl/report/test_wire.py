"""What the network carries, against a ring that is played out message by message."""

from dataclasses import replace

import pytest

from frugal_rl.learn.ranks import STATISTICS_BYTES
from frugal_rl.report.wire import Wire, scales_table, show_wire, wire_of
from frugal_rl.run.compose import compose_run

WORDS = ["env=toy", "launch=torchrun", "algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=64"]

ENDS = 1 + 2
"""Messages in a row of two processes: flags, and metrics after their sizes."""


def ring(size, parts):
    """Parts that one of P processes sends while all of them sum P parts and hand them round."""
    sent = 0
    for _ in range(size - 1):  # sums travel on
        sent += parts // size
    for _ in range(size - 1):  # results travel on
        sent += parts // size
    return sent


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_each_process_sends_what_a_ring_sends(size):
    wire = Wire(size, 800 - STATISTICS_BYTES, 1, 1, 10, 0.0)

    assert wire.update_bytes == ring(size, 800)


def test_time_is_bytes_over_bandwidth_and_messages_in_a_row():
    wire = Wire(2, 125_000_000 - STATISTICS_BYTES, 1, 1, 1.0, 10.0)

    assert wire.update_seconds == pytest.approx(1.0 + (2 + 1 + ENDS) * 0.010)
    assert Wire(1, 1000, 5, 1, 1.0, 10.0).update_seconds == 0
    longer = replace(wire, minibatches=6, epochs=2)  # the statistics of three go together
    assert longer.update_seconds == pytest.approx(6 * 1.0 + (2 * 6 + 2 + ENDS) * 0.010)


def test_two_processes_exchange_small_gradients_in_one_message():
    small = Wire(2, 1000, minibatches=6, epochs=2, bandwidth_gbit=1e9, latency_ms=10.0)

    assert small.update_seconds == pytest.approx((8 + ENDS) * 0.010)
    assert replace(small, size=4).update_seconds == pytest.approx((8 * 6 + 6 + 2 * 3) * 0.010)
    assert replace(small, size=1).update_seconds == 0


def test_an_update_has_its_minibatches_on_any_number_of_processes():
    run = compose_run([*WORDS, "algo.n_epochs=3"])

    assert (wire_of(run, 1000).minibatches, wire_of(run, 1000).epochs) == (6, 3)
    assert wire_of(run, 1000, 64).minibatches == 6
    assert wire_of(run, 1000, 64).size == 64


def test_the_plan_tells_memory_per_machine_and_the_network(capsys):
    run = compose_run([*WORDS, "launch.nodes=2", "launch.processes=4"])
    gradients = {"name": "gradients", "ram_bytes": 1 << 20, "vram_bytes": 0}

    show_wire(run, {"ram_bytes": 1 << 29, "parts": [gradients]})

    said = capsys.readouterr().out
    assert "2 machines x 4 processes: 512.0 MiB per process, 2.0 GiB per machine" in said
    assert "1.0 MiB of gradients x" in said
    assert "1,000" in said


@pytest.mark.parametrize(("own", "said"), [(False, "known once the run fits"),
                                          (True, "no gradients; this algorithm")])  # fmt: skip
def test_a_run_without_a_measured_gradient_is_told_why(own, said, capsys, monkeypatch):
    """It advised `probe=true`, which is no word of a run."""
    run = compose_run([*WORDS, "launch.nodes=2"])
    if own:
        monkeypatch.setattr(type(run.algo), "learner_parts", lambda self, run: [], raising=False)

    show_wire(run, {"ram_bytes": 1 << 29, "parts": []})

    assert said in capsys.readouterr().out


def test_speed_up_is_told_where_the_speed_of_one_process_is_known():
    run = compose_run([*WORDS, "launch.steps_per_second=1000"])

    known = [str(column.header) for column in scales_table(run, 1 << 20).columns]
    unknown = [str(column.header) for column in scales_table(compose_run(WORDS), 1).columns]

    assert known[-1] == "speed-up"
    assert "speed-up" not in unknown
