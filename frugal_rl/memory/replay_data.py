"""What a replay's bytes depend on beside shapes: how often episodes end, how much of a row differs.

A run remembers what its own replay held; before there is one, an environment is played at random
for a moment in a process of its own (`frugal_rl.run.play_replay`). A plan reads both here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered
from frugal_rl.memory.once import find_once

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

CHAIN_SHARE = 0.05
"""Share of a row that its difference takes: 0.9 to 4.4 % were measured on five Atari games."""
PLAY_SECONDS = 300.0
"""An environment that takes longer to be made and played for a moment is planned without that."""
LIMITS_SEEN = 2
"""Time limits that each environment must have gone through before ends are counted as they were."""
REACH = 10
"""A run tells of replays that hold at most so many times as much; else random play does."""
LEAST_STEPS = 256
"""Of all environments: a run that held fewer, as tiny ones do, tells nothing."""
RANDOM_PLAY, LAST_RUN = "as in random play", "as in the last run"


@dataclass(frozen=True)
class RowSeen:
    """How the rows of one entry of the observation were kept."""

    record_bytes: float
    """Of a row that is kept as what differs, with links and rows beside others; 0 of whole rows."""
    anchors: float
    """Whole rows that a chain of differences brings, beyond the first one of each environment."""
    beside: float
    """Rows beside others, for each episode that ended."""


@dataclass(frozen=True)
class Seen:
    """What a replay held."""

    steps: int
    """Of each environment."""
    num_envs: int
    ends: int
    """Steps that ended an episode."""
    limits: int
    """Those of them that a time limit made."""
    rows: Mapping[str, RowSeen]

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> Seen:
        """From `asdict()`."""
        rows = {name: RowSeen(**row) for name, row in values["rows"].items()}
        return cls(**{**values, "rows": rows})


@dataclass(frozen=True)
class Data:
    """What a plan takes the data to be like."""

    ends: float
    """Share of steps that end an episode."""
    differs: float = CHAIN_SHARE
    """Share of a large row that differs from the row before, where `rows` does not tell."""
    limits: float = 0.0
    """Share of the ends that a time limit makes."""
    together: bool = True
    """Whether episodes end at once in all environments, as where nothing but a limit ends them."""
    rows: Mapping[str, RowSeen] = field(default_factory=dict)
    source: str = ""
    """Where it was seen, in words; empty where nobody looked."""


MOST = Data(1.0, 1.0, limits=0.5)
"""Nothing repeats, and every step ends an episode, half of them by a limit: no file is larger."""


def expected(run: RunConfig, episode_steps: int | None, limit_steps: int | None) -> Data:
    """What the run's data will be like, by what was seen of its environment.

    Args:
        run: the run.
        episode_steps: the longest typical episode, where that is known.
        limit_steps: after how many steps one is cut off, if it is.
    """
    seen, source = _seen(run)
    if seen is None:
        ends = 1 / max(1, episode_steps) if episode_steps else 0.0
        return Data(ends, limits=float(bool(ends) and episode_steps == limit_steps))
    ends, limits = shares_of(seen, limit_steps)
    together = seen.ends == seen.limits
    return Data(ends, limits=limits, together=together, rows=seen.rows, source=source)


def shares_of(seen: Seen, limit_steps: int | None) -> tuple[float, float]:
    """The share of steps that end an episode, and of those ends what a limit makes.

    Who looked for less than some episodes of full length has seen too few limits: then episodes
    are taken to end by themselves as often in each step, and at the limit at the latest.
    """
    total = max(1, seen.steps * seen.num_envs)
    if limit_steps and seen.ends == seen.limits:
        return 1 / limit_steps, 1.0
    if not limit_steps or seen.steps >= LIMITS_SEEN * limit_steps:
        return seen.ends / total, seen.limits / max(1, seen.ends)
    by_themselves = (seen.ends - seen.limits) / total
    reaching = (1 - by_themselves) ** limit_steps
    return by_themselves / (1 - reaching), reaching


def _seen(run: RunConfig) -> tuple[Seen | None, str]:
    """What is known of the environment, and where from: its last run's, if that was long enough."""
    for name, source in ((_run_name(run), LAST_RUN), (_play_name(run), RANDOM_PLAY)):
        kept = remembered.read(name)
        seen = Seen.of_json(kept) if kept else None
        if seen and (source == RANDOM_PLAY or REACH * seen.steps * seen.num_envs >= _planned(run)):
            return seen, source
    return None, ""


def rows_seen(run: RunConfig) -> tuple[Mapping[str, RowSeen], str]:
    """How rows were kept, by entry of the observation, and where that was seen."""
    seen, source = _seen(run)
    return (seen.rows, source) if seen else ({}, "")


def _planned(run: RunConfig) -> int:
    """Steps of all environments that the run's replay will hold, all of them where it may."""
    algo: Any = run.algo
    size = getattr(algo, "buffer_size", None)
    return min(algo.total_steps, size) if isinstance(size, int) else int(algo.total_steps)


def keep_run(run: RunConfig, seen: Seen) -> None:
    """Remember what the replay of a run held."""
    if seen.steps * seen.num_envs >= LEAST_STEPS:
        remembered.write(_run_name(run), asdict(seen))


def look_at_play(run: RunConfig) -> None:
    """Play an environment at random, once, of whose replay nothing is known yet."""
    if hasattr(run.algo, "replay_class") and _seen(run)[0] is None:
        name, module = _play_name(run), "frugal_rl.run.play_replay"
        find_once(name, module, run, "Playing at random", PLAY_SECONDS)


def _run_name(run: RunConfig) -> str:
    """Of what was seen in the last run: of one algorithm, whose policy plays as it plays."""
    return f"replay_run_{_fingerprint(run, type(run.algo))}"


def _play_name(run: RunConfig) -> str:
    return f"replay_play_{_fingerprint(run)}"


def _fingerprint(run: RunConfig, *more: object) -> str:
    """What rows and ends depend on: how it is made, its code and rows, how the store keeps them."""
    rows = [(r.name, r.nbytes, r.window) for r in run.encoding().rows]
    own = {type(run.env).__module__.split(".")[0]} - {"frugal_rl", "types"}
    packages = own | {name.split(".")[0] for name in getattr(run.env, "modules", ())}
    code = [remembered.code_digest(p) for p in ("frugal_rl.store", *sorted(packages))]
    form = (*Seen.__annotations__, *RowSeen.__annotations__)  # another version keeps other values
    return remembered.fingerprint(repr(run.env), rows, sys.version, *code, *form, *more)
