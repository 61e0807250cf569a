"""What a plan says of its parts: peaks, verdicts, the largest part, plain values, and refusals."""

from dataclasses import replace

import pytest

from frugal_rl.errors import ConfigError, MemoryBudgetError
from frugal_rl.memory import plan as planning
from frugal_rl.memory import refusal as refusing
from frugal_rl.memory.base import Base
from frugal_rl.memory.finding import Finding, Severity
from frugal_rl.memory.machine import Limit
from frugal_rl.memory.part import ALL_PHASES, Confidence, Kind, Part, Phase
from frugal_rl.memory.plan import Peak, Plan, assemble, draw_up, margin_of, own_parts, residual
from frugal_rl.memory.probe import Planning, Probe
from frugal_rl.memory.refusal import plan_memory, refusal, stop_on_errors
from frugal_rl.run.compose import compose_run

UPDATE = frozenset({Phase.update})
PARTS = (
    Part("rollout", "6 x 10 B", 60, kind=Kind.rollout),
    Part("pool", "1 x 4 B", 4, 30, kind=Kind.rollout, confidence=Confidence.calibrated),
    Part("activations", "2 x 25 B", 50, 9, kind=Kind.activations, phases=UPDATE),
    Part("games", "80 B", 55, shared=True, phases=frozenset({Phase.evaluation})),
)
NOTHING = Base.everywhere(0, Confidence.calibrated)
PROBE = Probe(1000, 50.0, 400, 404, 808, 10.0)


def plan_of(ram: int, vram: int = 1000, parts=PARTS, **more) -> Plan:
    return Plan(parts, Limit(ram, "memory.budget_gib=1", vram, "accelerator 0"), **more)


def test_a_phase_peaks_at_the_sum_of_what_is_alive_in_it():
    plan = plan_of(1000)

    assert plan.peak(Phase.update) == Peak(114, 39)
    assert plan.peak(Phase.rollout) == plan.peak(Phase.checkpoint) == Peak(64, 30)
    assert plan.peak(Phase.evaluation) == Peak(119, 30)
    assert (plan.peak_phase, plan.ram_bytes) == (Phase.evaluation, 119)
    assert plan.vram_bytes == 39  # of another phase than the worst in memory


def test_bytes_of_kinds_count_both_sides():
    plan = plan_of(1000, transitions=4)

    assert plan.bytes_of(Kind.rollout) == plan.rollout_bytes == 60 + 4 + 30
    assert plan.bytes_of(Kind.activations, Kind.environment) == 50 + 9 + 55
    assert plan.bytes_per_transition == 94 / 4


@pytest.mark.parametrize(
    ("ram", "vram", "verdict"),
    [
        (1000, 1000, "fits"),
        (119, 39, "tight"),
        (118, 39, "does not fit"),
        (119, 38, "does not fit"),
        (133, 1000, "fits"),  # 0.9 x 133 is 119.7
        (132, 1000, "tight"),
        (1000, 44, "fits"),
        (1000, 43, "tight"),
        (1000, 0, "does not fit"),
    ],
)
def test_a_plan_fits_is_tight_or_does_not_fit_by_the_side_that_is_worse(ram, vram, verdict):
    plan = plan_of(ram, vram)

    assert plan.verdict == verdict
    assert plan.fits == (verdict != "does not fit")


def test_without_a_device_nothing_is_asked_of_one():
    parts = tuple(replace(part, vram_bytes=0) for part in PARTS)

    assert plan_of(1000, 0, parts).fits


def test_the_largest_part_is_one_of_the_worst_phase_on_the_side_that_is_too_small():
    assert plan_of(1000).largest.name == "rollout"
    assert plan_of(1000, 38).largest.name == "pool"
    assert plan_of(1000, 39).largest.name == "rollout"
    big = (*PARTS[1:], replace(PARTS[2], name="update", ram_bytes=54))
    assert plan_of(1000, parts=big).largest.name == "update"  # 108 beside 59 of the games


def test_a_plan_in_plain_values_for_files_and_logs():
    plan = plan_of(119, 1000, PARTS[1:3], profile="small", label="capacity", probed=True)

    assert plan.as_dict() == {
        "profile": "small",
        "label": "capacity",
        "verdict": "fits",
        "probed": True,
        "ram_bytes": 54,
        "vram_bytes": 39,
        "rollout_bytes": 34,
        "bytes_per_transition": 34.0,
        "limit_ram_bytes": 119,
        "limit_vram_bytes": 1000,
        "limit_source": "memory.budget_gib=1",
        "peak_phase": "update",
        "duration": None,
        "phases": {
            "start": {"ram_bytes": 4, "vram_bytes": 30},
            "rollout": {"ram_bytes": 4, "vram_bytes": 30},
            "update": {"ram_bytes": 54, "vram_bytes": 39},
            "evaluation": {"ram_bytes": 4, "vram_bytes": 30},
            "checkpoint": {"ram_bytes": 4, "vram_bytes": 30},
        },
        "parts": [
            {
                "name": "pool",
                "formula": "1 x 4 B",
                "ram_bytes": 4,
                "vram_bytes": 30,
                "shared": False,
                "confidence": "calibrated",
                "phases": ["checkpoint", "evaluation", "rollout", "start", "update"],
            },
            {
                "name": "activations",
                "formula": "2 x 25 B",
                "ram_bytes": 50,
                "vram_bytes": 9,
                "shared": False,
                "confidence": "exact",
                "phases": ["update"],
            },
        ],
    }


@pytest.mark.parametrize(("libraries", "kept"), [(2000 << 20, 62914560), (1000, 14 << 20)])
def test_three_hundredths_of_what_is_not_exact_are_kept_free(libraries, kept):
    parts = (*PARTS, Part("libraries", "", libraries, confidence=Confidence.probed))

    assert margin_of(parts) == Part(
        "margin",
        "3% of what is not exact, at least 14.0 MiB",
        kept,
        kind=Kind.process,
        confidence=Confidence.calibrated,
    )


def test_a_tracker_that_runs_is_a_part_of_its_own(run):
    base = Base.everywhere(1 << 20, Confidence.probed)
    tracked = replace(run, tracking=replace(run.tracking, wandb="offline"))
    names = [
        [part.name for part in assemble(r, base, PROBE).parts if part.ram_bytes == 24 << 20]
        for r in (run, tracked)
    ]

    assert names == [[], ["tracker"]]


def test_what_a_tracker_holds_later_is_not_there_while_a_run_starts(run):
    tracked = replace(run, tracking=replace(run.tracking, wandb="offline"))
    base = Base.everywhere(100, Confidence.probed)
    found = {part.name: part for part in assemble(tracked, base, PROBE).parts}

    assert found["tracker"].phases == set(Phase) - {Phase.start}


@pytest.fixture(scope="module")
def run():
    sizes = ["algo.num_envs=6", "algo.n_steps=10", "algo.batch_size=20"]
    return compose_run(["env=toy", "tracking=disabled", "hardware.device=cpu", *sizes])


def test_a_margin_is_kept_once_the_learner_was_looked_at_beside_a_process(run):
    process = Base.everywhere(100_000, Confidence.calibrated)
    names = [
        [part.name for part in assemble(run, base, probe).parts]
        for base, probe in ((process, PROBE), (NOTHING, PROBE), (process, None))
    ]

    assert [found.count("margin") for found in names] == [1, 0, 0]
    assert [assemble(run, process, probe).probed for probe in (PROBE, None)] == [True, False]


def test_a_plan_knows_what_it_was_made_of(run):
    plan = assemble(run, NOTHING, PROBE)

    assert (plan.base, plan.probe, plan.transitions) == (NOTHING, PROBE, 60)
    assert (plan.profile, plan.label) == ("lossless", "lossless")


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ([], "lossless"),
        (["memory=baseline"], "none"),
        (["memory=baseline", "memory.shuffle=gather"], "lossless"),
        (["memory=baseline", "env.fields.action_mask=bits"], "lossless"),
        (["memory=baseline", "memory.micro_batch=32"], "precision"),
        (["memory=attention"], "precision"),
        (["memory.storage=half"], "precision"),
        (["env.fields.doors=half"], "precision"),
        (["env.fields.doors=dense"], "lossless"),
        (["memory.precision=bf16"], "precision"),
        (["memory.micro_batch=32"], "precision"),
    ],
)
def test_a_plan_says_what_its_dearest_choice_costs(words, label):
    run = compose_run(["env=toy", *words], check=False)

    assert assemble(run, NOTHING, PROBE).label == label


def test_the_machine_that_a_run_names_limits_its_plan(run):
    machine = replace(run.hardware, ram_gib=2, vram_gib=3, cores=5, device="cuda")
    limit = assemble(replace(run, hardware=machine), NOTHING, PROBE).limit

    assert (limit.ram_bytes, limit.vram_bytes, limit.cores) == (2 << 30, 3 << 30, 5)
    budget = replace(run.memory, budget_gib=1)
    assert assemble(replace(run, memory=budget), NOTHING, PROBE).limit.ram_bytes == 1 << 30


class Telling:
    """A choice that says of itself what it holds."""

    def __init__(self, inner, *parts: Part, learner: bool = False) -> None:
        self.inner, self.own = inner, list(parts)
        if learner:
            self.learner_parts = lambda run: list(parts)
        else:
            self.parts = lambda run: list(parts)

    def __getattr__(self, name: str):
        return getattr(self.inner, name)


def test_what_agent_and_algorithm_say_of_themselves_is_the_learners(run):
    told = (Part("memory of the agent", "", 5), Part("copy", "", 6, kind=Kind.copy))
    varied = replace(run, agent=Telling(run.agent, *told), algo=Telling(run.algo, told[0]))
    own = assemble(varied, NOTHING, PROBE).parts[-3:]

    assert [(p.ram_bytes, p.kind) for p in own] == [
        (5, Kind.learner), (6, Kind.copy), (5, Kind.learner),
    ]  # fmt: skip


def test_a_learner_without_a_rollout_is_what_it_says_and_never_probed(run, monkeypatch):
    replay = Part("replay", "", 7)
    varied = replace(run, algo=Telling(run.algo, replay, learner=True))
    bases = []
    monkeypatch.setattr(
        planning, "measured_base", lambda run, found: bases.append(found) or NOTHING
    )

    plan = draw_up(varied, lambda run: pytest.fail("it must not be probed"))

    assert own_parts(varied) == [replace(replay, kind=Kind.learner)]
    assert own_parts(run) is None
    assert [p.name for p in plan.parts][-1] == "replay"
    assert not any(p.kind is Kind.rollout for p in plan.parts)
    assert (plan.probed, bases) == (True, [None])
    assert draw_up(varied).probed is False  # a typical process, that nobody looked at


def test_a_probe_is_asked_before_the_process_is_measured(run, monkeypatch):
    order = []
    monkeypatch.setattr(
        planning, "measured_base", lambda run, found: order.append(found) or NOTHING
    )

    plan = draw_up(run, lambda given: order.append(given) or PROBE)

    assert order == [run, PROBE]
    assert plan.probe is PROBE


def test_what_is_left_of_a_peak_is_never_below_nothing(run):
    nothing = Base.everywhere(0, Confidence.probed, True)
    planned = assemble(run, nothing, PROBE)
    peaks = {
        p: planned.peak(p).ram_bytes + more for p, more in zip(Phase, (5, -5, 0, 9, 0), strict=True)
    }

    left = residual(run, PROBE, nothing, peaks)

    assert left == replace(nothing, by_phase=dict(zip(Phase, (5, 0, 0, 9, 0), strict=True)))


def test_a_probed_base_is_remembered_and_the_installations_taken_where_nobody_asks(
    run, monkeypatch
):
    kept, told = [], Base.everywhere(3, Confidence.probed)
    monkeypatch.setattr(planning, "measured_peaks", lambda run: dict.fromkeys(Phase, 1 << 30))
    monkeypatch.setattr(planning, "keep_base", lambda *given: kept.append(given))
    monkeypatch.setattr(planning, "kept_base", lambda run: None)
    monkeypatch.setattr(planning, "installed_base", lambda run: told)
    asked = replace(run, plan=Planning.probe)

    base = planning.measured_base(asked, PROBE)

    assert kept == [(asked, base)]
    assert (base.confidence, base.device) == (Confidence.probed, False)
    assert planning.measured_base(run, PROBE) is told
    monkeypatch.setattr(planning, "kept_base", lambda run: base)
    assert planning.measured_base(run, PROBE) is base


def test_a_refusal_names_need_limit_largest_part_and_ways(monkeypatch):
    ways = [type("Way", (), {"overrides": w})() for w in (("a=1", "b=2"), ("c=3",))]
    asked = []
    monkeypatch.setattr(refusing, "advise", lambda *a, **k: asked.append((a, k)) or ways)
    plan = plan_of(100)

    error = refusal("run", plan, "probe")

    assert str(error) == (
        "This run needs 119 B, above the 100 B of memory.budget_gib=1. Most of it is 'rollout' "
        "(60 B = 6 x 10 B). It fits with a=1 b=2 or c=3."
    )
    assert error.plan is plan
    assert asked == [(("run", plan), {"probe": "probe"})]


def test_a_refusal_speaks_of_the_device_where_that_is_too_small(monkeypatch):
    monkeypatch.setattr(refusing, "advise", lambda *a, **k: [])

    assert str(refusal("run", plan_of(119, 38))) == (
        "This run needs 39 B, above the 38 B of accelerator 0. Most of it is 'pool' "
        "(30 B = 1 x 4 B). Raise the budget, or choose a smaller problem."
    )


def test_only_a_run_that_fits_is_checked_and_only_one_that_passes_is_probed(monkeypatch):
    calls = []
    plans = {"first": plan_of(1000), "probed": plan_of(1000)}

    def draw(run, probe=None):
        calls.append(("draw", probe))
        return plans["probed" if probe else "first"]

    monkeypatch.setattr(refusing, "draw_up", draw)
    monkeypatch.setattr(refusing, "stop_when_too_long", lambda *given: calls.append(given))
    monkeypatch.setattr(refusing, "check_run", lambda run, plan: calls.append("check") or [])
    monkeypatch.setattr(refusing, "advise", lambda *a, **k: [])

    assert plan_memory("run") is plans["first"]
    assert plan_memory("run", "probe") is plans["probed"]
    assert calls == [
        ("draw", None), "check", ("run", None),
        ("draw", None), "check", ("draw", "probe"), ("run", None),
    ]  # fmt: skip
    plans["probed"] = plan_of(10)
    with pytest.raises(MemoryBudgetError) as error:
        plan_memory("run", "probe")
    assert error.value.plan is plans["probed"]


def test_a_finding_that_stops_a_run_is_told_with_what_mends_it():
    fine = Finding("F01", "size", Severity.warning, "1", "much", "a=1")
    stop = Finding("F09", "minibatch", Severity.error, "2", "too large", "algo.batch_size=3")

    stop_on_errors([fine])
    with pytest.raises(ConfigError) as error:
        stop_on_errors([fine, stop])
    assert str(error.value) == "F09, minibatch: too large. Try algo.batch_size=3."


def test_a_part_is_alive_everywhere_and_exact_where_nobody_says_otherwise():
    part = Part("walls", "5 x 5 B")

    assert (part.ram_bytes, part.vram_bytes, part.shared, part.source) == (0, 0, False, "")
    assert (part.confidence, part.phases, part.kind) == (
        Confidence.exact, ALL_PHASES, Kind.environment,
    )  # fmt: skip
