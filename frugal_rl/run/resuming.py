"""What an exact resume needs, taken from a run and put back into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from frugal_rl.errors import CheckpointError
from frugal_rl.learn.update import ALONE
from frugal_rl.run.finite import ENVIRONMENTS, not_finite
from frugal_rl.run.generators import rng_state, set_rng_state
from frugal_rl.run.identity import check_same_run, identity
from frugal_rl.untrusted.odd import refused
from frugal_rl.untrusted.printing import printable, shown

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.run.config import RunConfig
    from frugal_rl.run.keeping import Found

COLLECTOR = "collector"
NO_STATE = {ENVIRONMENTS: None}


@dataclass(frozen=True)
class Resumed:
    """Where a run goes on: its best evaluation so far, the file, and what there is to say."""

    best: float
    file: Path
    words: str
    as_many: bool = True
    """Whether as many processes go on as saved it."""


def snapshot(run: RunConfig, learner: Learner, best: float) -> dict[str, Any]:
    """The content of a checkpoint.

    Raises:
        CheckpointError: a value that is not finite would be in it.
    """
    state = learner.state()
    bad = next(not_finite(state), None)
    if bad is not None:
        raise CheckpointError(
            f"'{bad}' holds a value that is not finite, so no checkpoint is written over the last."
        )
    return {
        "identity": identity(run),
        "config": dict(run.resolved),
        "overrides": list(run.overrides),
        "num_steps": learner.num_steps,
        "best": best,
        "rng": rng_state(),
        "learner": state,
    }


def own_part(content: Mapping[str, Any]) -> dict[str, Any]:
    """What differs between the ranks of a data-parallel run: where the experience comes from."""
    return {k: v for k, v in content["learner"].items() if k == COLLECTOR}


def as_many(content: Mapping[str, Any], ranks: Ranks) -> bool:
    """Whether a checkpoint was saved by as many processes as go on from it."""
    return len(content.get("ranks", [])) + 1 == ranks.size


def of_rank(content: Mapping[str, Any], ranks: Ranks) -> dict[str, Any]:
    """The checkpoint as one rank continues from it; of another number, without environments."""
    if not as_many(content, ranks):
        learner = content["learner"]
        if COLLECTOR in learner:
            learner = {**learner, COLLECTOR: carried_on(learner[COLLECTOR])}
        return {**content, "learner": learner}
    if ranks.first:
        return dict(content)
    own = content["ranks"][ranks.rank - 1]
    return {**content, "rng": own["rng"], "learner": {**content["learner"], **own["learner"]}}


def carried_on(collector: Any) -> dict[str, Any] | None:
    """Of where experience comes from, what another number of ranks goes on with.

    That is what all ranks have in common: the reward's scale and what the environments share.
    """
    if not isinstance(collector, Mapping) or ENVIRONMENTS not in collector:
        return None
    scale = collector.get("scale")
    moments = {k: v for k, v in scale.items() if k != "returns"} if scale else None
    return {ENVIRONMENTS: None, "scale": moments, "common": collector.get("common")}


def resume(
    run: RunConfig, learner: Learner, found: Found, path: str, ranks: Ranks = ALONE
) -> Resumed:
    """Continue exactly where the checkpoint that was found at `path` ended.

    A data-parallel run does so where the number of processes stays; else weights and optimiser go
    on, and all environments begin new episodes.

    Raises:
        CheckpointError: it belongs to another run, or does not hold what this one needs.
    """
    name = shown(found.file)
    with understood(found.file):
        content = of_rank(found.content, ranks)
        check_same_run(run, content["identity"], path)
        check_form(learner.state(), content["learner"], name)
        learner.load(content["learner"])
        best = float(content["best"])
        set_rng_state(content["rng"])
        exact = (content["learner"].get(COLLECTOR, {}) or NO_STATE).get(ENVIRONMENTS, 0) is not None
    words = [f"Passed over: {why}" for why in found.unsound]
    words.append(f"Resumed {name} at {learner.num_steps:,} steps.")
    if not exact:
        words.append("Without their state the environments begin new episodes.")
    return Resumed(best, found.file, " ".join(words), as_many(found.content, ranks))


def understood(file: Path) -> AbstractContextManager[None]:
    """Whatever else fails while a checkpoint is taken apart is refused in words.

    Raises:
        CheckpointError: naming the file.
    """

    def refusal(error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{shown(file)} does not hold what this run continues from "
            f"({type(error).__name__}: {printable(str(error))}). Use another checkpoint."
        )

    return refused(refusal, RuntimeError)


def check_form(built: Any, saved: Any, name: str) -> None:
    """Refuse a learner's state whose arrays differ in shape or type from those that were built.

    Raises:
        CheckpointError: naming the first place that differs.
    """
    for where, ours, theirs in _pairs(built, saved, "learner"):
        if _form(ours) != _form(theirs):
            raise CheckpointError(
                f"{name} holds {_form(theirs)} as '{printable(where)}', this run builds "
                f"{_form(ours)}. Give the overrides of the saved run."
            )


def _pairs(built: Any, saved: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """Arrays and tensors of `built` beside what the file has in their place."""
    if isinstance(built, Mapping):
        if saved is None and where.endswith(COLLECTOR):
            return  # of another number of processes
        if not isinstance(saved, Mapping):
            if saved is not None:  # environments that could not give their state
                yield where, built, saved
            return
        if f".{ENVIRONMENTS}" in where and saved.keys() != built.keys():
            yield where, sorted(map(str, built)), sorted(map(str, saved))
        for key, value in built.items():
            if key in saved:
                yield from _pairs(value, saved[key], f"{where}.{key}")
    elif isinstance(built, np.ndarray | Tensor) and saved is not None:
        yield where, built, saved


def _form(value: Any) -> str:
    """Kind, type and shape, as an error names them."""
    if isinstance(value, list):
        return f"the names {value}"[:400]
    if not isinstance(value, np.ndarray | Tensor):
        return "a mapping" if isinstance(value, Mapping) else f"a {type(value).__name__}"
    kind = "tensor" if isinstance(value, Tensor) else "array"
    return f"{kind} {str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
