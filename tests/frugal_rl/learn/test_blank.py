"""What convolutions hold is measured on observations without content, without an environment."""

from dataclasses import replace

import pytest
import torch

from frugal_rl.learn import blank, trace
from frugal_rl.learn.blank import Blank, cost_of_rows, measure_blank
from frugal_rl.learn.gauge import Line
from frugal_rl.learn.trace import Shown, Traced, distinct_rows
from frugal_rl.memory.child import ask_child
from frugal_rl.memory.probe import Probe
from frugal_rl.memory.sizes import learner_parts
from frugal_rl.run.compose import compose_run

SIZES = ["algo.num_envs=4", "algo.n_steps=32", "algo.batch_size=128", "hardware.threads=1"]
PICTURES = ["env=fighting", "env.obs=gray", "agent=nature_cnn", *SIZES]


def test_a_probe_is_made_of_the_chords_of_updates_and_of_acting(monkeypatch):
    asked = []

    class Told:
        def __init__(self, device):
            assert device.type == "cpu"

        def line(self, call, few, largest):
            asked.append((few, largest, torch.get_num_threads()))
            call(2)()
            return Line(7.0, 10.0 * len(asked))

    monkeypatch.setattr(blank, "Gauge", Told)
    monkeypatch.setattr(blank, "heap_bytes_of", lambda run: 5.0)
    found = measure_blank(compose_run(["env=toy", *SIZES]))

    assert asked == [(8, 128, 1), (4, 4, 1)]
    assert (found.bytes_per_sample, found.forward_bytes_per_sample) == (10.0, 20.0)
    assert (found.heap_bytes_per_sample, found.fixed_bytes, found.traced) == (2.5, 0, False)


def test_static_rows_add_to_a_cost_what_three_more_of_them_add():
    costs = {1: 10.0, 4: 16.0}

    def cost(prepared):
        return costs[prepared]

    def call(samples, rows):
        return rows

    assert cost_of_rows(call, cost, 1.0) == 0.0
    assert cost_of_rows(call, cost, 7.5) == 2.0 * 6.5
    costs[4] = 9.0  # noise
    assert cost_of_rows(call, cost, 7.5) == 0.0


@pytest.mark.slow
def test_of_pictures_what_is_kept_for_the_backward_pass_is_found():
    run = compose_run(PICTURES)
    found, least = measure_blank(run), first_layer_bytes(run)

    assert least < found.bytes_per_sample < 20 * least
    assert not found.traced
    assert found.parameter_bytes == found.gradient_bytes == Traced(run).weight_bytes
    assert found.optimizer_bytes == 2 * found.parameter_bytes
    assert found.heap_bytes_per_sample == trace.heap_bytes_of(run) / 2


def first_layer_bytes(run):
    """Four frames as float32, and 32 planes of every fourth pixel."""
    height, width = run.env.spec().by_name["frame"].shape
    return 4 * (4 * height * width + 32 * ((height - 8) // 4 + 1) * ((width - 8) // 4 + 1))


def test_no_environment_is_made_for_it(monkeypatch):
    run = compose_run(PICTURES)
    for name in ("make", "make_vec"):
        monkeypatch.setattr(type(run.env), name, None)  # calling it would fail
    blanked = Blank(run)
    blanked.learns()
    blanked.update(3)()
    blanked.acts()
    blanked.acting(3)()


@pytest.mark.parametrize("why", ["content", "accelerator"])
def test_what_depends_on_content_or_lies_on_an_accelerator_is_left_alone(monkeypatch, why):
    def asks(*_):
        raise NotImplementedError("the rows differ in length")

    if why == "content":
        monkeypatch.setattr(trace, "learn", asks)
    else:
        monkeypatch.setattr(blank, "has_accelerator", lambda device: True)
    assert measure_blank(compose_run(PICTURES)) is None


def test_a_minibatch_shows_as_many_levels_as_there_are_environments_at_most():
    run = compose_run(["env=toy", *SIZES])
    few = compose_run(["env=mine_daily_small", *SIZES])
    shown = Shown(run, 6, torch.device("cpu"))

    assert distinct_rows(run) == 4
    assert distinct_rows(few) == min(4, few.env.static_rows)
    assert shown["map_id"].tolist() == [0, 1, 2, 3, 0, 1]


@pytest.mark.slow
def test_a_mine_is_measured_without_compiling_or_opening_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    run = compose_run(["env=mine", "algo.num_envs=2", "algo.n_steps=4", "algo.batch_size=8"])
    found = ask_child("frugal_rl.run.trace_process", run, "Tracing")

    assert found["bytes_per_sample"] > 0
    assert not list(tmp_path.rglob("*.nbi"))


GRAPHS = ["env=nclone", *SIZES]


@pytest.mark.parametrize("storage", ["lossless", "attention"])
@pytest.mark.parametrize("agent", ["attention_small", "attention_fast"])
def test_networks_over_graphs_learn_and_act_without_an_environment(monkeypatch, agent, storage):
    run = compose_run([*GRAPHS, f"agent={agent}", f"memory={storage}"])
    for name in ("make", "make_vec"):
        monkeypatch.setattr(type(run.env), name, None)
    blanked = Blank(run)
    blanked.learns()
    blanked.update(6, 2)()
    blanked.acts()
    blanked.acting(6, 1)()

    shown = blanked.policy.shown(6)
    assert shown["num_locked_doors"].shape == (6, 1) if "num_locked_doors" in shown else True
    assert all(torch.isfinite(p.grad).all() for p in blanked.policy.parameters())


def test_what_a_graph_costs_grows_with_how_many_a_minibatch_shows(monkeypatch):
    run = compose_run([*GRAPHS, "agent=attention_small"])

    class Told:
        def __init__(self, device):
            pass

        def line(self, call, few, largest):
            call(few)  # prepared for one graph
            return Line(100.0, 1.0)

        def growth(self, call):
            return grown.pop(0)

    monkeypatch.setattr(blank, "Gauge", Told)
    monkeypatch.setattr(blank, "heap_bytes_shown", lambda run: 3.0)
    rows = run.env.content(4, 32).distinct(128)
    of_the_update = [500.0, 600.0, 500.0, 2000.0]  # few samples, where weights hide them, and more
    grown = [*of_the_update, 0.0, 0.0, 0.0, 0.0]
    found = measure_blank(run)

    assert rows > 2
    assert not grown
    assert found.bytes_per_sample == pytest.approx(1.0 + 500.0 * (rows - 1) / 128)
    assert (found.first_bytes, found.heap_bytes_per_sample) == (100, 3.0)


def test_a_network_that_reads_more_than_is_told_is_left_to_real_play(monkeypatch):
    run = compose_run([*GRAPHS, "agent=attention_small"])
    told = run.env.content(4, 32)
    monkeypatch.setattr(type(run.env), "content", lambda *_: replace(told, ragged={}))

    assert measure_blank(run) is None


def test_what_lies_in_the_heap_is_counted_by_a_small_update_as_by_the_whole(monkeypatch):
    words = [*GRAPHS, "agent=attention_small", "algo.n_steps=128", "algo.batch_size=500"]
    run = compose_run([*words, "algo.num_envs=4"])
    monkeypatch.setattr(trace, "MMAP_THRESHOLD_BYTES", 1 << 17)
    found = trace.heap_bytes_shown(run)
    monkeypatch.setattr(trace, "SHOWN_SAMPLES", 500)

    assert trace.heap_bytes_of(run) is None
    assert found == pytest.approx(trace.heap_bytes_shown(run), rel=0.1)


def test_a_first_update_counts_where_the_base_is_of_another_network():
    run = compose_run(["env=toy", *SIZES])
    probe = Probe(0, 1.0, 8, 8, 16, first_bytes=1000)
    device = Probe(500, 1.0, 8, 8, 16, first_bytes=1000)

    def workspace(probe, *first):
        found = learner_parts(run, run.encoding(), probe, *first)
        return [p.ram_bytes for p in found if p.name == "workspace"]

    assert workspace(probe) == workspace(device) == []
    assert workspace(probe, True) == [1000]


def test_holes_in_the_heap_are_planned_beside_activations():
    run = compose_run(["env=toy", *SIZES])
    probe = Probe(0, 100.0, 8, 8, 16, heap_bytes_per_sample=60.0)

    found = {p.name: p.ram_bytes for p in learner_parts(run, run.encoding(), probe)}

    assert found["holes in the heap"] == 128 * 60
    assert found["activations"] == 128 * 100


@pytest.mark.parametrize(
    ("steps", "traced", "allocator", "holes"),
    [
        (128, True, "pinned", None),
        (256, False, "pinned", None),
        (257, True, "pinned", 128 * 30),
        (257, False, "pinned", 128 * 60),
        (128, True, "default", 128 * 60),
    ],
)
def test_holes_come_with_the_third_update_of_a_pinned_heap(steps, traced, allocator, holes):
    words = ["env=toy", "algo.num_envs=8", "algo.n_steps=16", "algo.batch_size=128"]
    run = compose_run([*words, f"algo.total_steps={steps}", f"memory.allocator={allocator}"])
    probe = Probe(0, 100.0, 8, 8, 16, heap_bytes_per_sample=60.0, traced=traced)

    found = {p.name: p.ram_bytes for p in learner_parts(run, run.encoding(), probe)}

    assert found.get("holes in the heap") == holes


@pytest.mark.parametrize(("agent", "more"), [("attention_gat", 1), ("attention_small", 0)])
def test_networks_with_pictures_load_more_than_others(agent, more):
    run = compose_run([*GRAPHS, f"agent={agent}"])

    assert len(run.agent.parts(run)) == more
