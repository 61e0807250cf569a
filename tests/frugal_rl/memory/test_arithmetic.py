"""The plan by arithmetic alone: every part, phase and number by hand, with no tiny run to make up.

Each number here is worked out from the toy's declaration and the sizes of the run, not read from
the code: 6 environments of 20 steps at most, 10 steps per rollout, minibatches of 20 samples.
"""

import functools
import importlib
import math
import re
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from frugal_rl.memory.advice import fits_with_margin, shrunk_sizes
from frugal_rl.memory.base import Base
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.part import Confidence, Kind, Phase
from frugal_rl.memory.plan import assemble
from frugal_rl.memory.probe import Probe
from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.run.compose import compose_run
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.layout import columns_of

NOTHING = Base.everywhere(0, Confidence.calibrated)
PROBE = Probe(1000, 50.0, 400, 404, 808, 10.0)
SIZES = ["env=toy", "tracking=disabled", "hardware.device=cpu", "algo.num_envs=6",
         "algo.n_steps=10", "algo.batch_size=20", "evaluation.num_envs=3"]  # fmt: skip
EPISODE = 20


@pytest.fixture(scope="module", autouse=True)
def anew():
    """What a process before this one found is not asked again (tools that break code fork)."""
    plan_of.cache_clear()


@cache
def plan_of(*words: str):
    return assemble(compose_run([*SIZES, *words]), NOTHING, PROBE)


def bytes_by_name(*words: str) -> dict[str, int]:
    return {p.name: p.ram_bytes for p in plan_of(*words).parts}


def phases_by_name(*words: str) -> dict[str, set[str]]:
    return {p.name: {phase.value for phase in p.phases} for p in plan_of(*words).parts}


LOSSLESS_ROW = {"action_mask": 1, "position": 2, "speed": 8, "map_id": 4, "age": 4}
"""Bytes of a row that is stored without a window: 4 bits, 2 x uint8, 2 x float32, an id, an age."""


@pytest.mark.parametrize("name", LOSSLESS_ROW)
def test_a_plain_column_is_rows_times_its_row(name):
    assert bytes_by_name()[f"rollout: {name}"] == 10 * 6 * LOSSLESS_ROW[name]


def test_a_column_with_a_window_keeps_the_rows_before_the_rollout():
    found = bytes_by_name()

    assert found["rollout: trail"] == (2 + 10) * 6 * 25  # cells of a byte
    assert found["rollout: moves"] == (EPISODE + 10) * 6 * 1  # a whole episode before it


def test_windows_are_rows_twice_over_or_a_whole_episode_in_training_and_evaluation():
    per_env = 2 * 3 * 25 + (EPISODE + 1) * 1 + 4

    assert bytes_by_name()["windows"] == 6 * per_env
    assert bytes_by_name()["evaluation: windows"] == 3 * per_env


def test_scalars_are_an_action_five_floats_and_a_flag():
    assert bytes_by_name()["rollout: scalars"] == 10 * 6 * (1 + 5 * 4 + 1)


def test_a_minibatch_holds_windows_scalars_and_the_samples_order():
    shown = 1 + 2 + 8 + 4 + 4 + 3 * 25 + (EPISODE + 1)

    assert bytes_by_name()["minibatch"] == 20 * (shown + 4 * (1 + 4) + 16)
    assert bytes_by_name("algo.batch_size=60")["minibatch"] == 3 * bytes_by_name()["minibatch"]


def test_whole_trajectories_are_learned_from_in_minibatches_of_the_same_bytes():
    assert bytes_by_name("vec=episodes")["minibatch"] == bytes_by_name()["minibatch"]


def test_a_minibatch_is_kept_where_buffers_are_reused_and_made_anew_elsewhere():
    assert phases_by_name()["minibatch"] == {p.value for p in Phase}
    assert phases_by_name("memory.buffers=new")["minibatch"] == {"update"}


def test_evaluation_environments_are_as_many_as_play_and_come_when_they_are_asked_for():
    world = 4 + 2 + 8 + 25 + 1 + 8 + 8
    found = bytes_by_name()

    assert found["simulators"] == 6 * world
    assert found["evaluation: simulators"] == 3 * world
    assert bytes_by_name("evaluation.episodes=2")["evaluation: simulators"] == 2 * world
    assert phases_by_name()["evaluation: simulators"] == {"evaluation", "checkpoint"}
    between = phases_by_name("evaluation.every_steps=60")["evaluation: simulators"]
    assert between == {p.value for p in Phase} - {"start"}
    assert "evaluation: static tables" not in found  # one copy, shared


def test_the_learner_is_counted_once_and_its_activations_in_pieces():
    found = bytes_by_name()

    assert (found["parameters"], found["gradients"], found["optimiser"]) == (400, 404, 808)
    assert found["activations"] == 20 * 50
    assert found["acting"] == 6 * 10
    assert bytes_by_name("memory.micro_batch=5")["activations"] == 5 * 50
    assert phases_by_name()["activations"] == {"update"}
    assert phases_by_name()["acting"] == {"rollout", "evaluation"}


@pytest.mark.parametrize("traced", [True, False])
def test_of_a_learner_weights_are_exact_and_the_rest_is_traced_or_probed(traced):
    plan = assemble(compose_run(SIZES), NOTHING, replace(PROBE, traced=traced))
    sure = {p.name: p.confidence.value for p in plan.parts}

    assert sure["parameters"] == sure["gradients"] == sure["optimiser"] == "exact"
    assert sure["activations"] == sure["acting"] == ("traced" if traced else "probed")


def test_a_checkpoint_copies_weights_moments_and_newest_observations():
    shown = 1 + 2 + 8 + 4 + 4 + 3 * 25 + (EPISODE + 1)

    assert bytes_by_name()["checkpoint"] == 400 + 808 + 6 * shown
    assert phases_by_name()["checkpoint"] == {"checkpoint"}


def test_the_order_of_the_samples_and_the_flattened_copy_live_in_the_update():
    found = bytes_by_name("memory.shuffle=copy")

    assert found["order and ratios"] == 12 * 60
    assert found["flattened copy"] == 10 * 6 * 8  # `speed`, the largest column without a window
    assert phases_by_name("memory.shuffle=copy")["flattened copy"] == {"update"}
    assert phases_by_name()["order and ratios"] == {"update"}


def test_the_plan_has_these_parts_and_no_others():
    assert set(bytes_by_name("memory.shuffle=copy")) == {
        "interpreter and libraries", "simulators", "static tables", "evaluation: simulators",
        "windows", "evaluation: windows", "rollout: action_mask", "rollout: position",
        "rollout: speed", "rollout: trail", "rollout: moves", "rollout: map_id", "rollout: age",
        "rollout: scalars", "flattened copy", "order and ratios", "minibatch", "parameters",
        "gradients", "optimiser", "activations", "acting", "checkpoint",
    }  # fmt: skip


def test_the_peak_is_the_sum_of_what_is_alive_in_the_worst_phase():
    found, plan = bytes_by_name(), plan_of()
    always = sum(n for name, n in found.items() if phases_by_name()[name] == {*map(_name, Phase)})
    update = always + found["activations"] + found["order and ratios"]
    rollout = always + found["acting"]

    assert plan.peak(Phase.update).ram_bytes == update
    assert plan.peak(Phase.rollout).ram_bytes == rollout
    assert plan.ram_bytes == max(plan.peak(phase).ram_bytes for phase in Phase)


def _name(phase: Phase) -> str:
    return phase.value


def code_of(source: str) -> object:
    """What 'module:name.name' names."""
    module, _, names = source.partition(":")
    return functools.reduce(getattr, names.split("."), importlib.import_module(module))


def test_every_part_says_what_it_is_and_who_allocates_it():
    parts = plan_of("memory.shuffle=copy").parts
    silent = [p.name for p in parts if not p.source and p.kind is not Kind.process]
    silent += [p.name for p in parts if not p.formula]

    assert silent == []
    assert all(code_of(p.source) for p in parts if p.source)
    assert {p.kind for p in parts} == set(Kind)


FORMULAS = [
    ("memory=lossless", "env=toy"), ("memory=baseline", "env=toy"), ("memory=sparse", "env=toy"),
    ("env.fields.doors=ragged", "env=toy"), ("env.obs=gray", "env=fighting"),
    ("env.obs=gray", "env=fighting", "env.fields.frame=delta"), ("env.obs=graph", "env=nclone"),
]  # fmt: skip


@pytest.mark.parametrize("words", FORMULAS, ids=" ".join)
def test_a_columns_formula_is_worth_its_bytes(words):
    run = compose_run([*words, "algo.num_envs=6", "algo.n_steps=10", "algo.batch_size=20"])

    for column in columns_of(run.encoding(), run.env.episode_steps):
        assert worth(column.formula(10, 6)) == column.nbytes(10, 6), column.formula(10, 6)


def test_the_formula_of_what_is_found_is_worth_its_bytes():
    column = ColumnSpec("frame", (84, 84), np.dtype(np.uint8), codec=FoundCodec(expected_share=0.1))

    assert worth(column.formula(10, 6)) == column.nbytes(10, 6) == math.ceil(60 * 84 * 84 * 0.1)


SAID = """
interpreter and libraries | this installation | cersu | calibrated |
simulators | 6 worlds x 56 B | cersu | exact | testing.toy:Toy.parts
static tables | 4 maps x 57 B | cersu | exact | testing.toy:Toy.parts
evaluation: simulators | 3 worlds x 56 B | ce | exact | testing.toy:Toy.parts
windows | 6 envs x 175 B of past rows | cersu | exact | observation.history:History
evaluation: windows | 3 envs x 175 B of past rows | ce | exact | observation.history:History
rollout: map_id | 10 steps x 6 envs x 1 x int32 | cersu | exact | store.columns:ArrayColumn
rollout: trail | (2 + 10) steps x 6 envs x 5 x 5 x uint8 | cersu | exact | store.columns:ArrayColumn
rollout: scalars | 10 x 6 x (1 uint8 action + 5 float32 + 1 bool) | cersu | exact | store.rollout:RolloutBuffer
flattened copy | the largest column once more | u | exact | store.columns:ArrayColumn.flatten
order and ratios | 60 samples x 12 B: their order, and the ratios of the last epoch | u | exact | store.rollout:RolloutBuffer.get
minibatch | 20 samples x 151 B | cersu | exact | store.rollout:RolloutBuffer.samples
parameters | all weights, float32 | cersu | exact | learn.agents:MlpAgent.build
gradients | one per weight | cersu | exact | learn.agents:MlpAgent.build
optimiser | two moments per weight | cersu | exact | learn.agents:MlpAgent.build
activations | 20 samples x 50 B | u | probed | learn.agents:MlpAgent.build
acting | 6 envs x 10 B | er | probed | learn.agents:MlpAgent.build
checkpoint | copies of weights, moments and newest observations | c | exact | run.checkpoints:save_checkpoint
"""  # noqa: E501 - a table
"""What `plan.py why=...` prints of a part: formula, first letters of its phases (checkpoint,
evaluation, rollout, start, update), how sure it is, and where in `frugal_rl` it is allocated."""


@pytest.mark.parametrize("line", SAID.strip().splitlines(), ids=lambda line: line.split(" |")[0])
def test_a_part_says_its_formula_its_phases_how_sure_it_is_and_who_allocates_it(line):
    name, formula, letters, confidence, place = (word.strip() for word in line.split("|"))
    part = next(p for p in plan_of("memory.shuffle=copy").parts if p.name == name)

    assert part.formula == formula
    assert "".join(sorted(phase.value[0] for phase in part.phases)) == letters
    assert part.confidence.value == confidence
    assert part.source == (f"frugal_rl.{place}" if place else "")
    assert part.shared == (name == "static tables")


def test_whole_trajectories_are_as_long_as_they_were_collected():
    found = bytes_by_name("vec=episodes", "memory.trajectories=list")
    parts = {p.name: p for p in plan_of("vec=episodes", "memory.trajectories=list").parts}
    row = 8 + 4 + 1 + 4 + 1 + 2 + 8 + 25 + 1 + 4 + 4  # action to log_prob, an int64 and floats

    assert found["rollout: action"] == 60 * 8
    assert found["rollout: trail"] == 60 * 25
    assert sum(n for name, n in found.items() if name.startswith("rollout: ")) == 60 * row
    assert found["trajectory sources"] == 60 * row
    assert found["trajectory sums"] == 60 * 21
    assert parts["rollout: reward"].formula == "6 envs x 10 steps x 4 B"
    assert parts["trajectory sources"].formula == "what the workers write into"
    assert parts["trajectory sums"].formula == (
        "6 envs x 10 steps x 21 B: advantages, returns, ages, starts"
    )
    sources = {p.name: p.source for p in parts.values()}
    assert sources["rollout: reward"] == "frugal_rl.store.trajectories:TrajectoryBuffer"
    assert sources["trajectory sources"] == "frugal_rl.store.trajectories:TrajectoryBuffer"
    assert sources["trajectory sums"] == "frugal_rl.store.merged:MergedRollout"
    assert {parts[n].kind for n in ("trajectory sources", "trajectory sums")} == {Kind.learner}


def test_trajectories_lie_once_in_what_was_allocated_or_on_the_device():
    roomy = bytes_by_name("vec=episodes", "vec.max_buffer_size=100")
    device = plan_of("vec=episodes", "hardware.device=cuda", "memory.trajectories=views")
    parts = {p.name: p for p in device.parts}

    assert roomy["rollout: trail"] == 100 * 25
    assert "trajectory sources" not in roomy
    assert roomy["trajectory sums"] == 60 * 21
    assert (parts["rollout: trail"].ram_bytes, parts["rollout: trail"].vram_bytes) == (0, 60 * 25)
    assert parts["trajectory sources"].ram_bytes == 60 * 62  # pinned slots
    assert parts["trajectory sources"].vram_bytes == 0


def test_trajectories_end_with_an_episode_that_is_shorter_than_a_rollout():
    words = ("vec=episodes", "algo.n_steps=50", "env.episode_steps=7")

    assert bytes_by_name(*words)["rollout: reward"] == 6 * 7 * 4


def test_on_a_device_the_learner_lies_there_and_a_checkpoint_copies_through_memory():
    plan = plan_of("hardware.device=cuda", "memory.rollout_location=device", "memory.micro_batch=5")
    held = {p.name: (p.ram_bytes, p.vram_bytes) for p in plan.parts}
    shown = 1 + 2 + 8 + 4 + 4 + 3 * 25 + (EPISODE + 1)

    assert held["workspace"] == (0, 1000)
    assert held["activations"] == (0, 250)
    assert held["parameters"] == (0, 400)
    assert held["minibatch"] == (3020, 3020)
    assert held["checkpoint"] == (2 * 400 + 808 + 6 * shown, 0)
    assert held["rollout: trail"] == (0, 1800)
    assert held["rollout: scalars"] == (1320, 0)
    assert "flattened copy" not in bytes_by_name("hardware.device=cuda")
    workspace = next(p for p in plan.parts if p.name == "workspace")
    assert (workspace.formula, workspace.kind) == ("a first small update", Kind.learner)


def test_the_step_counts_where_it_needs_more_than_the_activations():
    run = compose_run(SIZES)
    heavy = replace(PROBE, step_bytes=5000, traced=True)
    parts = {p.name: p for p in assemble(run, NOTHING, heavy).parts}

    assert parts["activations"].ram_bytes == 5000
    assert parts["activations"].confidence is Confidence.traced
    assert parts["parameters"].confidence is Confidence.exact


def test_a_mapped_rollout_says_so_but_for_its_pools():
    words = ("memory.rollout_location=memmap", "env.fields.doors=ragged")
    formulas = {p.name: p.formula for p in plan_of(*words).parts}

    assert formulas["rollout: speed"] == "10 steps x 6 envs x 2 x float32, in a mapped file"
    assert formulas["rollout: doors"] == (
        "10 steps x 6 envs x 12 B of index + a ragged pool of 120 B (12% of 16 B rows expected)"
    )
    assert bytes_by_name(*words)["rollout: doors"] == 60 * 12 + 120


def test_labels_of_auxiliary_losses_are_counted_by_sample():
    run = compose_run(SIZES)
    labelled = replace(run, agent=Labelled(run.agent))
    part = next(p for p in assemble(labelled, NOTHING, None).parts if p.name == "rollout: labels")

    assert part.ram_bytes == 10 * 6 * 7
    assert part.formula == "10 x 6 x 7 B for auxiliary losses"
    assert (part.kind, part.source) == (Kind.rollout, "frugal_rl.store.rollout:RolloutBuffer")


@dataclass
class Labelled:
    """An agent whose auxiliary losses need 7 bytes of labels per step."""

    inner: object
    label_bytes: int = 7


def worth(formula: str) -> int:
    """A formula's value: words dropped, types by their size."""
    said = re.sub(r"\(\d+% of .*? expected\)", "", formula)
    said = re.sub(r" a \w+ pool of ", " ", said).replace(",", "")
    said = re.sub(r"\b(bool|u?int\d+|float\d+)\b", lambda t: str(np.dtype(t[0]).itemsize), said)
    said = re.sub(r"\b(steps|envs|B|of index|that change)\b", "", said).replace("x", "*")
    return math.ceil(eval(said))


def test_a_pool_stays_in_memory_whatever_is_wanted():
    run = compose_run([*SIZES, "env.fields.doors=ragged", "memory.rollout_location=device"])
    parts = {p.name: p for p in assemble(run, NOTHING, PROBE).parts}

    assert (parts["rollout: doors"].vram_bytes, parts["rollout: position"].ram_bytes) == (0, 0)
    assert parts["rollout: doors"].ram_bytes > 0
    assert parts["rollout: position"].vram_bytes == 10 * 6 * 2
    pool = next(c for c in columns_of(run.encoding(), EPISODE) if c.name == "doors")
    assert pool.place(RolloutLocation.device) is RolloutLocation.ram


def test_what_is_shrunk_is_what_was_named_and_by_as_little_as_fits():
    """One number is halved until the run fits, never the other beside it."""
    run = compose_run([*SIZES, "algo.num_envs=64", "algo.n_steps=32768", "memory.budget_gib=0.08"])
    plan = assemble(run, NOTHING, PROBE)
    envs, steps, *_ = shrunk_sizes(run, plan)

    assert not fits_with_margin(plan)
    assert set(envs) == {"num_envs"}
    assert set(steps) == {"n_steps"}
    for sizes in (envs, steps):
        ((key, size),) = sizes.items()
        now = getattr(run.algo, key)
        assert now % size == 0
        assert size < now
        assert _fits(run, {key: size})
        assert not _fits(run, {key: 2 * size})


def _fits(run, sizes) -> bool:
    words = [f"algo.{key}={size}" for key, size in sizes.items()]
    return fits_with_margin(assemble(run.variant(words), NOTHING, PROBE))


def test_a_minibatch_shrinks_only_with_the_rollout_below_it():
    run = compose_run([*SIZES, "algo.num_envs=64", "algo.n_steps=32768", "memory.budget_gib=0.08"])
    big = run.variant(["algo.batch_size=2097152"])
    for sizes in list(shrunk_sizes(big, assemble(big, NOTHING, PROBE)))[:2]:
        left = sizes.get("num_envs", 64) * sizes.get("n_steps", 32768)
        assert sizes["batch_size"] == left
