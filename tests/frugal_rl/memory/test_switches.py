"""Every switch of the memory profile has a reader: flipping it changes what a run holds or does."""

from dataclasses import fields

import pytest

from frugal_rl.memory import MemoryProfile, auto
from frugal_rl.memory.base import Base
from frugal_rl.memory.part import Confidence
from frugal_rl.memory.plan import assemble
from frugal_rl.memory.probe import Probe
from frugal_rl.run.compose import compose_run
from nclone.guide import Guide, switches

TOY = [
    "env=toy", "tracking=disabled", "hardware.device=cpu", "algo.num_envs=6", "algo.n_steps=10",
    "algo.batch_size=40",
]  # fmt: skip
NOTHING = Base.everywhere(0, Confidence.calibrated)
PROBE = Probe(1000, 50.0, 400, 400, 800, 10.0)
ABOUT_THE_RUN = {"profile", "label", "budget_gib", "max_hours", "allow", "watchdog_share"}
PLANNED = {
    "storage": "dense",
    "internal_observations": "true",
    "frame_stack": "copies",
    "buffers": "new",
    "rollout_location": "device",
    "shuffle": "copy",
    "trajectories": "list",
    "micro_batch": "5",
}
POLICY = {"precision": "bf16", "gradient_checkpointing": "true"}
RENDERED = {"level_data": "per_env", "graphs": "always", "rendering": "full", "animation": "true"}


def test_every_switch_is_looked_at_here():
    looked_at = {*PLANNED, *POLICY, *RENDERED, "allocator", "library_pages"}

    assert {f.name for f in fields(MemoryProfile)} - ABOUT_THE_RUN == looked_at


@pytest.mark.parametrize("switch", PLANNED)
def test_the_plan_reads_the_switch(switch):
    vec = ["vec=episodes"] if switch == "trajectories" else []
    off, on = (
        assemble(compose_run([*TOY, *vec, *words]), NOTHING, PROBE)
        for words in ([], [f"memory.{switch}={PLANNED[switch]}"])
    )

    assert [(p.name, p.ram_bytes, p.vram_bytes, p.phases) for p in off.parts] != [
        (p.name, p.ram_bytes, p.vram_bytes, p.phases) for p in on.parts
    ]


@pytest.mark.parametrize("switch", POLICY)
def test_the_policy_reads_the_switch(switch):
    found = []
    for words in ([], [f"memory.{switch}={POLICY[switch]}"]):
        run = compose_run([*TOY, *words])
        env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
        policy = run.algo.build_policy(run, env)
        found.append((policy.bf16, policy.network.recompute))

    assert found[0] != found[1]


@pytest.mark.parametrize("switch", RENDERED)
def test_the_guides_renderer_reads_the_switch(switch):
    off, on = (
        compose_run(["env=nclone", *words]).memory
        for words in ([], [f"memory.{switch}={RENDERED[switch]}"])
    )

    assert switches(Guide(), off) != switches(Guide(), on)
    assert switches(Guide(), on).is_before


def test_the_start_of_a_run_settles_its_process(monkeypatch):
    settled = []
    monkeypatch.setattr(auto, "settle_process", settled.append)
    run, _ = auto.prepare(compose_run([*TOY, "memory.allocator=default"]))

    assert settled == [run.memory]
