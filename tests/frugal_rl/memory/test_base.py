"""A bare process, phase by phase: what is always there, and what a tiny phase held beyond that."""

from frugal_rl import remembered
from frugal_rl.memory import base, plan
from frugal_rl.memory.base import Base, tiny
from frugal_rl.memory.part import Confidence, Phase
from frugal_rl.run.compose import compose_run

MIB = 1 << 20
HELD = {Phase.rollout: 300, Phase.update: 310, Phase.evaluation: 400, Phase.checkpoint: 300}


def test_the_parts_of_each_phase_sum_up_to_what_it_held():
    found = Base({p: mib * MIB for p, mib in HELD.items()}, Confidence.probed)

    sums = {p: sum(x.ram_bytes for x in found.parts if p in x.phases) // MIB for p in Phase}

    assert sums == HELD
    assert [p.name for p in found.parts] == [
        "interpreter and libraries", "a tiny update", "a tiny evaluation",
    ]  # fmt: skip


def test_an_evaluation_that_held_much_does_not_raise_the_other_phases(monkeypatch):
    words = ["tracking=disabled", "algo.num_envs=8", "algo.n_steps=16", "plan=probe"]
    run = compose_run(["env=toy", *words])
    planned = plan.assemble(tiny(run), Base.everywhere(0, Confidence.probed), None)
    peaks = {p: planned.peak(p).ram_bytes + mib * MIB for p, mib in HELD.items()}
    monkeypatch.setattr(plan, "measured_peaks", lambda run: peaks)
    monkeypatch.setattr(plan, "keep_base", lambda run, base: None)

    found = plan.measured_base(run, None)

    assert {p: count // MIB for p, count in found.by_phase.items()} == HELD


def test_a_run_that_evaluates_on_its_way_is_measured_so():
    ends = compose_run(["env=toy", "evaluation.every_steps=0"])
    on_its_way = compose_run(["env=toy", "evaluation.every_steps=5000"])

    assert tiny(ends).evaluation.every_steps == 0
    assert 0 < tiny(on_its_way).evaluation.every_steps < tiny(on_its_way).algo.total_steps


def test_tables_that_fill_up_are_small_in_the_tiny_run():
    run = compose_run(["env=nclone", "env.obs=graph"])

    assert tiny(run).env.graphs_mib < 4 < run.env.graphs_mib


def test_an_installation_is_measured_once_and_a_probe_of_a_kind_refines_it(tmp_path, monkeypatch):
    asked = []
    held = {p.value: 200 * MIB for p in Phase}
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    monkeypatch.setattr(base, "ask_child", lambda *a: asked.append(a) or {"bytes": held})
    run = compose_run(["env=toy", "tracking=disabled"])

    first, again = plan.measured_base(run, None), plan.measured_base(run, None)
    base.keep_base(run, Base.everywhere(300 * MIB, Confidence.probed))

    assert len(asked) == 1
    assert first == again
    assert first.process_bytes == 200 * MIB
    assert plan.measured_base(run, None).process_bytes == 300 * MIB
