"""What an update holds is counted on tensors without content, of the run's own shapes."""

import itertools

import numpy as np
import pytest
import torch

from frugal_rl.learn import timing, trace
from frugal_rl.learn.held import Held
from frugal_rl.learn.optimizer import padded
from frugal_rl.learn.trace import CPU, META, Shown, Traced
from frugal_rl.memory.duration import Line
from frugal_rl.observation.spec import EPISODE
from frugal_rl.run.compose import compose_run

SIZES = ["algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16"]
AGENT = "agent.shared=[24]"


def run_of(*words):
    return compose_run(["env=toy", "agent=mlp", AGENT, *SIZES, *words])


@pytest.mark.parametrize("device", [META, CPU])
def test_what_is_shown_has_the_shapes_of_the_declaration_and_is_made_once(device):
    run = run_of()
    shown = Shown(run, 5, device)

    assert list(shown) == [f.name for f in run.env.spec().fields]
    assert len(shown) == len(run.env.spec().fields)
    for name in shown:
        field = run.env.spec().by_name[name]
        if getattr(field, "window", 1) == EPISODE:  # as long as what was seen
            with pytest.raises(RuntimeError, match="negative"):
                shown[name]
            continue
        value = shown[name]
        assert tuple(value.shape) == (5, *getattr(field, "observed_shape", field.shape))
        assert value.dtype == getattr(torch, str(np.dtype(field.dtype)))
        assert value.device.type == device.type
        assert shown[name] is value


def test_a_table_gives_rows_for_ids_and_refuses_ragged_ones():
    run = run_of()
    shown = Shown(run, 5, CPU)
    (table_id,) = shown.rows
    ids = shown[table_id]
    assert (ids.dtype, ids.tolist()) == (torch.int64, [0, 1, 2, 3, 0])
    table = shown.tables[shown.rows[table_id]]
    field = run.env.spec().by_name["walls"]
    rows = table.rows("walls", ids)
    assert (tuple(rows.shape), rows.device.type) == ((5, *field.shape), "cpu")
    assert not rows.any()
    with pytest.raises(NotImplementedError, match="the rows of 'walls' differ in length"):
        table.ragged("walls", ids)


def test_a_trace_counts_weights_and_a_minibatch_of_samples():
    found = trace.trace(run_of())
    weights = sum(4 * padded(p) for p in Traced(run_of()).parameters())

    assert found.traced
    assert found.fixed_bytes == 0
    assert (found.parameter_bytes, found.gradient_bytes) == (weights, weights)
    assert (found.optimizer_bytes, found.step_bytes) == (2 * weights, 2 * weights)
    assert 4 * 24 < found.bytes_per_sample < 1 << 16
    assert 4 * 24 < found.forward_bytes_per_sample < 1 << 14
    assert 0 < found.heap_bytes_per_sample <= found.bytes_per_sample


def test_a_trace_is_of_the_samples_that_are_learned_at_once():
    one = trace.trace(run_of())
    same = trace.trace(run_of("memory.micro_batch=16"))
    more = trace.trace(run_of("algo.n_steps=16"))
    fewer = trace.trace(run_of("memory.micro_batch=2"))

    assert one.bytes_per_sample == same.bytes_per_sample == more.bytes_per_sample
    assert fewer.bytes_per_sample > one.bytes_per_sample  # gradients are shared by two samples


def test_holes_in_the_heap_are_traced_where_the_peak_itself_is_measured():
    words = ["env=fighting", "env.obs=gray", "agent=nature_cnn", "algo.num_envs=8"]
    few = compose_run([*words, "algo.n_steps=2", "algo.batch_size=16"])
    many = compose_run([*words, "algo.n_steps=32", "algo.batch_size=256"])

    assert trace.trace(few) is None
    assert trace.heap_bytes_of(few) > 4 * trace.heap_bytes_of(many) > 0
    assert trace.heap_bytes_of(run_of()) == trace.trace(run_of()).heap_bytes_per_sample


def test_convolutions_that_are_small_are_left_to_be_measured(monkeypatch):
    pictures = compose_run(["env=toy", "agent=cnn", *SIZES])
    if any(isinstance(m, trace.CONVOLUTIONAL) for m in Traced(pictures).network.modules()):
        assert trace.trace(pictures) is None
        monkeypatch.setattr(trace, "MEASURED_BELOW_BYTES", 0)
        assert trace.trace(pictures).traced


def test_what_depends_on_content_is_no_trace(monkeypatch):
    def asks(*_):
        raise NotImplementedError("the rows differ in length")

    monkeypatch.setattr(trace, "learn", asks)
    assert trace.trace(run_of()) is None


@pytest.mark.parametrize("device", [META, CPU])
def test_an_update_reaches_every_weight_and_acting_none(device):
    policy = Traced(run_of(), device)
    trace.act(policy, run_of(), policy.shown(3))
    assert all(p.grad is None for p in policy.parameters())
    trace.learn(policy, run_of(), 3)
    assert all(p.grad is not None and p.device.type == device.type for p in policy.parameters())


@pytest.mark.parametrize(
    ("took", "expected"),
    [
        ({1: 0.5}, Line(0.0, 0.5)),
        ({1: 0.01, 4: 0.3}, Line(0.01 - 0.29 / 3, 0.29 / 3)),
        ({1: 0.02, 4: 0.05, 16: 0.17}, Line(0.01, 0.01)),
        ({1: 0.03, 4: 0.02, 16: 0.02}, Line(0.02, 0.0)),
    ],
)
def test_a_line_follows_the_last_doubling_and_the_best_of_three(monkeypatch, took, expected):
    now, asked = [0.0], []

    def call(size):
        asked.append(size)
        slow = iter([1.5, 1.0, 2.0])

        def once():
            now[0] += took[size] * next(slow, 9.0)

        return once

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing, "waited_seconds", lambda: 0.0)
    found = timing.line(call, 16)

    assert sorted(set(asked)) == sorted(took)
    assert (found.fixed, found.per_sample) == pytest.approx(
        (max(0.0, expected.fixed), expected.per_sample), abs=1e-9
    )


@pytest.mark.parametrize(("took", "slow"), [(0.001, 4), (0.2, 0)])
def test_a_size_is_repeated_until_it_has_settled(monkeypatch, took, slow):
    """The first calls of a process touch new memory: 13 us a sample were told where 2 are true."""
    now, made = [0.0], []

    def once():
        made.append(took)
        now[0] += 5 * took if len(made) <= slow else took

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing, "waited_seconds", lambda: 0.0)

    assert timing._best(once) == pytest.approx(took)
    assert len(made) == (34 if slow else 3)  # 4 x 5 ms and 30 x 1 ms


def test_waiting_for_a_core_is_no_time_of_an_update(monkeypatch):
    now, waited = itertools.count(step=3.0), itertools.count(step=2.0)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(timing, "waited_seconds", lambda: next(waited))

    assert timing.line(lambda size: lambda: None, 1) == Line(0.0, 1.0)


def test_a_pace_is_of_this_run_and_leaves_one_thread(monkeypatch):
    lines = []

    def line(call, largest):
        call(1)()
        lines.append((largest, torch.get_num_threads()))
        return Line(0.0, float(largest))

    monkeypatch.setattr(timing, "line", line)
    found = timing.pace_of(run_of("hardware.threads=1"))

    assert lines == [(16, 1), (4, 1)]
    assert (found.update, found.acting) == (Line(0.0, 16.0), Line(0.0, 4.0))


def test_blocks_apart_leave_no_holes_and_count_in_the_peak():
    held = Held(mapped_from=1 << 20, apart=frozenset({400}))
    with held:
        kept = [torch.empty(100), torch.empty(50)]

    assert (held.peak, held.heap_peak) == (600, 200)
    del kept
