"""The arithmetic of the plan: environments, rollout, minibatch, learner, checkpoint."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from frugal_rl.memory.choices import Buffers, RolloutLocation, Shuffle, Trajectories
from frugal_rl.memory.found_rows import is_found, planned_columns, waiting_parts
from frugal_rl.memory.learner_rows import UPDATE, learner_rows
from frugal_rl.memory.machine import has_accelerator
from frugal_rl.memory.part import ALL_PHASES, ONCE_STARTED, Confidence, Kind, Part, Phase, human
from frugal_rl.memory.weight import (
    expected_shares,
    kept_bytes,
    kept_workers,
)
from frugal_rl.observation.fields import EPISODE
from frugal_rl.store.layout import action_layout, columns_of, flatten_bytes, scalar_bytes
from frugal_rl.vec_env.trajectory_items import learner_layout

if TYPE_CHECKING:
    from frugal_rl.learn.ppo_config import PpoConfig
    from frugal_rl.memory.probe import Probe
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.run.config import RunConfig
    from frugal_rl.store.column_spec import ColumnSpec
    from frugal_rl.vec_env.backend import Backend, Processes
    from frugal_rl.vec_env.episodes import Episodes

AT_THE_END = frozenset({Phase.evaluation, Phase.checkpoint})
"""Evaluation environments stay once they are made."""
CHECKPOINT = frozenset({Phase.checkpoint})
FILM_BYTES = 32 << 20
"""Pictures of one film of an evaluation; what would not fit is not filmed."""
WEIGHTS = frozenset({Kind.parameters, Kind.gradients, Kind.optimiser})
BUFFER = "frugal_rl.store.rollout:RolloutBuffer"
TRAJECTORIES = "frugal_rl.store.trajectories:TrajectoryBuffer"
MERGED = "frugal_rl.store.merged:MergedRollout"


def environment_parts(run: RunConfig, encoding: Encoding) -> list[Part]:
    """Simulators, workers, tables and windows, for training and for evaluation."""
    training = parts_of(run, run.algo.num_envs, encoding)
    players = min(run.evaluation.num_envs, max(1, run.evaluation.episodes))
    phases = ONCE_STARTED if run.evaluation.every_steps else AT_THE_END
    evaluating = [
        replace(p, name=f"evaluation: {p.name}", phases=phases, kind=Kind.evaluation)
        for p in parts_of(run, players, encoding)
        if not p.shared
    ]
    windows = [
        *_window_parts("windows", run.algo.num_envs, run, encoding),
        *(
            replace(p, phases=phases)
            for p in _window_parts("evaluation: windows", players, run, encoding)
        ),
    ]
    processes = 0 if getattr(type(run.env), "evaluates_natively", False) else players
    workers = [
        *_worker_parts("worker processes", run.vec, run.algo.num_envs, run),
        *(
            replace(p, name="evaluation: workers", phases=phases, kind=Kind.evaluation)
            for p in _worker_parts("", run.vec.stepping(), processes, run)
        ),
    ]
    weights = [
        *_weight_parts("environments", run.algo.num_envs, run),
        *(
            replace(p, phases=phases, kind=Kind.evaluation)
            for p in _weight_parts("evaluation: environments", players, run)
        ),
    ]
    return [*training, *evaluating, *windows, *workers, *weights, *_film_parts(run)]


def _film_parts(run: RunConfig) -> list[Part]:
    """Pictures of the one film that is made at a time, a byte for each pixel."""
    if not run.evaluation.film:
        return []
    words, source = "its pictures, at most", "frugal_rl.report.film:small"
    at, how = frozenset({Phase.evaluation}), Confidence.calibrated
    film = Part("film", words, FILM_BYTES, confidence=how, phases=at, source=source)
    return [replace(film, kind=Kind.evaluation)]


def _worker_parts(name: str, backend: Backend, num_envs: int, run: RunConfig) -> list[Part]:
    """Processes that step environments; what they share counts where they have a name."""
    found = workers_of(backend, num_envs, run)
    once = found.once_bytes if name else 0
    count = found.count * found.each_bytes + once
    formula = f"{found.count} x {human(found.each_bytes)}" + (once > 0) * f" + {human(once)} once"
    source = f"{type(backend).__module__}:{type(backend).__name__}.processes"
    part = Part(name, formula, count, confidence=Confidence.calibrated, source=source)
    return [part] if count else []


def workers_of(backend: Backend, num_envs: int, run: RunConfig) -> Processes:
    """How many processes step environments and what each holds, weighed where no constant tells.

    Until it is weighed, one that opens an environment of its own holds what others share.
    """
    own, alone = getattr(type(run.env), "libraries_bytes", 0), backend.stepping().weighed
    weighed = kept_workers(run) if alone else None
    if weighed:
        found = backend.processes(num_envs, own)
        return replace(found, each_bytes=weighed["each"], once_bytes=weighed["once"])
    if alone:
        own += sum(p.ram_bytes for p in parts_of(run, 1, run.encoding()) if p.shared)
    return backend.processes(num_envs, own)


@lru_cache(maxsize=256)
def _remembered(key: str) -> list[Part]:
    """One list per key, filled by `parts_of`."""
    return []


def parts_of(run: RunConfig, num_envs: int, encoding: Encoding) -> list[Part]:
    """What the environment says of itself; asked once per size, as some build a small one."""
    kept = _remembered(repr((run.env, num_envs, encoding.choice, run.memory, run.vec)))
    if not kept:
        found = run.env.parts(num_envs, encoding, run.memory, run.vec)
        source = f"{type(run.env).__module__}:{type(run.env).__name__}.parts"
        kept += [replace(part, source=part.source or source) for part in found]
    return list(kept)


def counted_bytes(run: RunConfig, num_envs: int) -> int:
    """What the plan counts of training environments apart from the processes that step them."""
    encoding = run.encoding()
    parts = [
        *parts_of(run, num_envs, encoding),
        *_window_parts("", num_envs, run, encoding),
        *_weight_parts("", num_envs, run),
    ]
    return sum(p.ram_bytes for p in parts)


def _weight_parts(name: str, num_envs: int, run: RunConfig) -> list[Part]:
    """Environments that say nothing of their size, as they were weighed."""
    each = (kept_bytes(run.env) or 0) if getattr(type(run.env), "weighed", False) else 0
    formula, source = f"{num_envs} envs x {each:,} B, measured", "frugal_rl.run.weigh:weigh"
    part = Part(name, formula, num_envs * each, confidence=Confidence.probed, source=source)
    return [part] if each else []


def _window_parts(name: str, num_envs: int, run: RunConfig, encoding: Encoding) -> list[Part]:
    """Past rows that `observation.history` keeps: twice k rows, or a whole episode."""
    episode = run.env.episode_steps + 1
    rows = [(episode if r.window == EPISODE else 2 * r.window, r) for r in encoding.windowed]
    if not rows:
        return []
    per_env = sum(k * r.nbytes for k, r in rows) + 4
    formula = f"{num_envs} envs x {per_env:,} B of past rows"
    source = "frugal_rl.observation.history:History"
    return [Part(name, formula, num_envs * per_env, kind=Kind.windows, source=source)]


def rollout_parts(run: RunConfig, encoding: Encoding) -> list[Part]:
    """The rollout's columns, the copy that `shuffle=copy` makes, and a minibatch."""
    steps, envs = run.algo.n_steps, run.algo.num_envs
    columns = columns_of(encoding, run.env.episode_steps)
    if any(map(is_found, columns)):
        columns = planned_columns(run, columns, expected_shares(run))
    if getattr(run.vec, "whole_episodes", False):
        return [
            *_trajectory_parts(run, cast("Episodes", run.vec), encoding),
            _minibatch_part(run, columns),
        ]
    location = run.memory.rollout_location
    parts = [_column_part(c, steps, envs, location) for c in columns]
    parts += waiting_parts(run, columns)
    size, dtype = action_layout(run.env.action_space())
    scalars = scalar_bytes(steps, envs, run.env.action_space())
    parts.append(
        Part(
            "rollout: scalars",
            f"{steps} x {envs} x ({size} {dtype} action + 5 float32 + 1 bool)",
            scalars,
            kind=Kind.rollout,
            source=BUFFER,
        )
    )
    labels = getattr(run.agent, "label_bytes", 0)
    if labels:
        formula = f"{steps} x {envs} x {labels} B for auxiliary losses"
        count = steps * envs * labels
        parts.append(Part("rollout: labels", formula, count, kind=Kind.rollout, source=BUFFER))
    if run.memory.shuffle is Shuffle.copy and location is not RolloutLocation.device:
        copied = flatten_bytes(encoding, steps, envs, run.env.episode_steps)
        parts.append(
            Part(
                "flattened copy",
                "the largest column once more",
                copied,
                phases=UPDATE,
                kind=Kind.copy,
                source="frugal_rl.store.columns:ArrayColumn.flatten",
            )
        )
    if getattr(run.algo, "overlap", False):
        parts += _overlap_parts(run, parts)
    samples = steps * envs
    order = f"{samples:,} samples x 12 B: their order, and the ratios of the last epoch"
    parts.append(
        Part(
            "order and ratios",
            order,
            12 * samples,
            phases=UPDATE,
            kind=Kind.learner,
            source="frugal_rl.store.rollout:RolloutBuffer.get",
        )
    )
    return [*parts, _minibatch_part(run, columns)]


def _overlap_parts(run: RunConfig, rollout: list[Part]) -> list[Part]:
    """The rollout that is learned from while another one is filled, and its drawn minibatches."""
    config = cast("PpoConfig", run.algo)
    held = [p for p in rollout if p.kind is Kind.rollout]
    samples, source = config.n_steps * config.num_envs, "frugal_rl.learn.overlap:Drawn"
    formula = f"{config.n_epochs} epochs x {samples:,} samples x 8 B: minibatches, drawn ahead"
    drawn = Part("drawn ahead", formula, config.n_epochs * samples * 8, source=source)
    return [
        *(replace(p, name=f"second {p.name}") for p in held),
        replace(drawn, kind=Kind.learner, phases=UPDATE),
    ]


def side_by_side(parts: list[Part]) -> list[Part]:
    """What collecting holds is held while learning, too, where both go on at once.

    Not the other way round: the first rollout is collected alone.
    """
    acting = Phase.rollout
    return [replace(p, phases=p.phases | UPDATE) if acting in p.phases else p for p in parts]


def _trajectory_parts(run: RunConfig, vec: Episodes, encoding: Encoding) -> list[Part]:
    """Merged trajectories, what is computed for each step, and the sources that `list` keeps."""
    steps = vec.slot_steps(run.algo.n_steps, run.env.episode_steps)
    slots = run.algo.num_envs * steps
    room, at = max(vec.max_buffer_size, slots), f"{run.algo.num_envs} envs x {steps} steps"
    each = run.memory.trajectories is Trajectories.list
    on_device = has_accelerator(run.hardware.device)
    parts = []
    for name, (shape, dtype) in learner_layout(run.env.action_space(), encoding).items():
        width = math.prod(shape) * dtype.itemsize
        count = (slots if each else room) * width
        formula = f"{at} x {width} B"
        parts.append(
            Part(
                f"rollout: {name}",
                formula,
                0 if on_device else count,
                count * on_device,
                kind=Kind.rollout,
                source=TRAJECTORIES,
            )
        )
    total = sum(p.ram_bytes + p.vram_bytes for p in parts)
    if each or on_device:  # pinned slots beside a device, new tensors with `list`
        written = "what the workers write into"
        parts.append(
            Part("trajectory sources", written, total, kind=Kind.learner, source=TRAJECTORIES)
        )
    formula = f"{at} x 21 B: advantages, returns, ages, starts"
    sums = Part("trajectory sums", formula, slots * 21, kind=Kind.learner, source=MERGED)
    return [*parts, sums]


def _column_part(column: ColumnSpec, steps: int, envs: int, wanted: RolloutLocation) -> Part:
    """A column's own words about itself, as a part."""
    count, place = column.nbytes(steps, envs), column.place(wanted)
    on_device = place is RolloutLocation.device
    mapped = ", in a mapped file" if place is RolloutLocation.memmap else ""
    return Part(
        f"rollout: {column.name}",
        column.formula(steps, envs) + mapped,
        0 if on_device else count,
        count if on_device else 0,
        kind=Kind.rollout,
        confidence=Confidence.exact if column.codec is None else Confidence.calibrated,
        source=column.allocated_by(wanted),
    )


def _minibatch_part(run: RunConfig, columns: list[ColumnSpec]) -> Part:
    """A minibatch in stored form, windows included; kept between draws where buffers are reused."""
    batch = min(run.algo.batch_size, run.algo.n_steps * run.algo.num_envs)
    per_sample = sum(math.prod(c.shown()) * c.dtype.itemsize for c in columns)
    scalars = 4 * (action_layout(run.env.action_space())[0] + 4) + 16
    reused = run.memory.buffers is Buffers.reused
    on_device = has_accelerator(run.hardware.device)
    formula = f"{batch} samples x {per_sample + scalars:,} B"
    return Part(
        "minibatch",
        formula,
        batch * (per_sample + scalars),
        batch * (per_sample + scalars) if on_device else 0,
        phases=ALL_PHASES if reused else UPDATE,
        kind=Kind.minibatch,
        source="frugal_rl.store.rollout:RolloutBuffer.samples",
    )


def learner_parts(
    run: RunConfig, encoding: Encoding, probe: Probe | None, first_update: bool = False
) -> list[Part]:
    """Parameters, gradients, optimiser, activations and the copy that a checkpoint makes.

    `first_update` counts what a first small update held, where the base is of another network.
    """
    if probe is None:
        return []
    steps, weights = run.env.episode_steps, probe.parameter_bytes
    device = has_accelerator(run.hardware.device)
    looked = Confidence.traced if probe.traced else Confidence.probed
    parts = [
        Part(
            name,
            formula,
            0 if device else count,
            count if device else 0,
            kind=kind,
            confidence=Confidence.exact if kind in WEIGHTS else looked,
            phases=phases,
            source=f"{type(run.agent).__module__}:{type(run.agent).__name__}.build",
        )
        for name, formula, count, kind, phases in learner_rows(run, probe, device, first_update)
        if count
    ]
    shown = sum(math.prod(c.shown()) * c.dtype.itemsize for c in columns_of(encoding, steps))
    copied = weights * (1 + device) + probe.optimizer_bytes + run.algo.num_envs * shown
    what = "copies of weights, moments and newest observations"
    saved = "frugal_rl.run.checkpoints:save_checkpoint"
    part = Part("checkpoint", what, copied, phases=CHECKPOINT, kind=Kind.checkpoint, source=saved)
    return [*parts, part]
