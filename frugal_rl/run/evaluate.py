"""Trying a policy out: fixed seeds, a fixed number of episodes per environment, no bias.

Counting the first episodes that end, whoever plays them, would favour short ones; here every
environment plays the same number, and all of them count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from frugal_rl.doing import Work, doing
from frugal_rl.errors import ConfigError
from frugal_rl.learn.actions import mask_logits
from frugal_rl.observation.decoder import Decoder, to_tensors
from frugal_rl.observation.history import History
from frugal_rl.report.terminal import say
from frugal_rl.run.tools import NO_FILM, needed, tool
from frugal_rl.vec_env.episodes import bounded

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables
    from frugal_rl.run.config import EnvConfig, RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

Rows = Mapping[str, np.ndarray]


class Player(Protocol):
    """Anything that plays: a policy, random play, a script.

    One that thinks long may offer `only(wanted)`: it is told [N] bool which environments still
    count, and may do anything in the others.
    """

    def __call__(self, rows: Rows) -> np.ndarray:
        """Rows in policy form [N, ...] -> actions [N, ...]."""


class PolicyPlayer:
    """Plays with a policy; the critic is not run.

    `tables` are those of the environments that are played: ids count in the order in which their
    own levels came, so a policy that learned elsewhere must not look them up in its own tables.
    """

    name = "the policy"

    def __init__(
        self, policy: FrugalPolicy, deterministic: bool = True, tables: Tables | None = None
    ) -> None:
        self.policy = policy
        self.deterministic = deterministic
        self.decoder = policy.decoder if tables is None else policy.decoder.reading(tables)

    @torch.no_grad()
    def output(self, rows: Rows) -> Tensor:
        """Rows in policy form [N, ...] -> masked logits, or means, [N, size]."""
        own, self.policy.decoder = self.policy.decoder, self.decoder
        try:
            return self.policy.actor_output(to_tensors(rows, self.policy.device))
        finally:
            self.policy.decoder = own

    @torch.no_grad()
    def __call__(self, rows: Rows) -> np.ndarray:
        """Rows in policy form [N, ...] -> actions [N, ...]."""
        actions, _ = self.policy.head.act(self.output(rows), self.deterministic)
        space = self.policy.action_space
        shaped = actions.reshape((-1, *(space.shape or ()))).numpy(force=True)
        return bounded(shaped, space)


def policy_player(
    run: RunConfig, policy: FrugalPolicy, vec_env: VectorEnv, deterministic: bool
) -> Player:
    """Who plays these environments with a policy: the agent's own player, where it has one."""
    own = tool(run.agent, "player")
    player: Player | None = own(run, policy, vec_env, deterministic) if own else None
    return player or PolicyPlayer(policy, deterministic, vec_env.tables)


class RandomPlayer:
    """Plays uniformly among the allowed actions: the baseline of every result."""

    name = "random play"

    def __init__(
        self, encoding: Encoding, tables: Tables, space: spaces.Space[Any], seed: int
    ) -> None:
        self.decoder = Decoder(encoding, tables)
        self.mask_name = encoding.spec.action_mask
        self.space = space
        self.generator = torch.Generator().manual_seed(seed)
        self.rng = np.random.default_rng(seed)

    def __call__(self, rows: Rows) -> np.ndarray:
        """Rows in policy form [N, ...] -> actions [N, ...]."""
        count = len(next(iter(rows.values())))
        if isinstance(self.space, spaces.Discrete):
            mask = self._mask(rows)
            logits = mask_logits(torch.zeros(count, int(self.space.n)), mask)
            drawn = torch.multinomial(logits.softmax(-1), 1, generator=self.generator)
            return drawn.reshape(-1).numpy()
        if isinstance(self.space, spaces.Box):
            low, high = self.space.low, self.space.high
            return self.rng.uniform(low, high, (count, *low.shape)).astype(self.space.dtype)
        self.space.seed(int(self.rng.integers(2**31)))
        return np.stack([self.space.sample() for _ in range(count)])

    def _mask(self, rows: Rows) -> Tensor | None:
        fields = self.decoder(to_tensors(rows, torch.device("cpu")))
        return fields[self.mask_name] if self.mask_name else None


@dataclass(frozen=True)
class Score:
    """Outcomes of some episodes: their number, mean statistics, and how sure the success is."""

    episodes: int
    means: dict[str, float]
    success_low: float
    success_high: float

    @classmethod
    def of(cls, stats: Mapping[str, np.ndarray]) -> Score:
        """From statistics by name, each [episodes]."""
        count = len(stats["success"])
        low, high = wilson(float(stats["success"].sum()), count)
        return cls(count, {name: float(v.mean()) for name, v in stats.items()}, low, high)


@dataclass(frozen=True)
class Result:
    """An evaluation: all episodes, and by level (or group of levels) where they are reported."""

    score: Score
    levels: dict[str, Score] = field(default_factory=dict)

    def metrics(self, prefix: str = "eval") -> dict[str, float]:
        """Numbers for the log: `<prefix>/return`, `<prefix>/success`, its interval, per level."""
        score = self.score
        numbers = {f"{prefix}/{name}": mean for name, mean in score.means.items()}
        numbers[f"{prefix}/success_low"] = score.success_low
        numbers[f"{prefix}/success_high"] = score.success_high
        numbers[f"{prefix}/episodes"] = float(score.episodes)
        for level, part in self.levels.items():
            numbers[f"{prefix}/level/{level}/success"] = part.means["success"]
        return numbers


def wilson(successes: float, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of a success rate (95 % by default); (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    rate = successes / trials
    centre = rate + z * z / (2 * trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


Stopped = Callable[[], bool]


class CutOffError(Exception):
    """Somebody asked to stop while episodes were played; what they were worth is not known."""


def never() -> bool:
    """Nobody asks to stop."""
    return False


def play_episodes(
    vec_env: VectorEnv,
    player: Player,
    episodes: int,
    seed: int,
    episode_steps: int,
    stopped: Stopped = never,
) -> dict[str, np.ndarray]:
    """Statistics of `episodes` episodes, rounded up to the same number for each environment.

    Raises:
        CutOffError: `stopped` says that somebody asked to stop.
    """
    each = -(-episodes // vec_env.num_envs)
    name = getattr(player, "name", "a player")
    with doing(f"evaluating {name}", each * vec_env.num_envs, "episodes") as work:
        return _played_out(vec_env, player, each, seed, episode_steps, work, stopped)


def _played_out(
    vec_env: VectorEnv,
    player: Player,
    each: int,
    seed: int,
    episode_steps: int,
    work: Work,
    stopped: Stopped,
) -> dict[str, np.ndarray]:
    history = History(vec_env.encoding, vec_env.num_envs, episode_steps)
    rows = history.reset(vec_env.reset(seed))
    played = np.zeros(vec_env.num_envs, np.int64)
    found: dict[str, list[np.ndarray]] = {}
    only = getattr(player, "only", None)
    while (played < each).any():
        if stopped():
            raise CutOffError
        if only is not None:
            only(played < each)
        step = vec_env.step(player(rows))
        rows, _ = history.push(step.rows, step.done)
        if step.ended is None:
            continue
        counts = played[step.ended.index] < each
        for name, values in step.ended.stats.items():
            found.setdefault(name, []).append(np.asarray(values, np.float64)[counts])
        played[step.ended.index] += 1
        work.done = int(np.minimum(played, each).sum())
    return {name: np.concatenate(values) for name, values in found.items()}


def evaluate(
    run: RunConfig, vec_env: VectorEnv, player: Player, stopped: Stopped = never
) -> Result:
    """Play `run.evaluation` and score it; draws nothing from the run's own random numbers.

    Raises:
        CutOffError: `stopped` says that somebody asked to stop.
    """
    wanted = run.evaluation
    if wanted.episodes < 1:
        raise ConfigError(f"evaluation.episodes is {wanted.episodes}; use at least 1.")
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(wanted.seed)
        steps = run.env.episode_steps
        stats = play_episodes(vec_env, player, wanted.episodes, wanted.seed, steps, stopped)
    _tell_cut_off(run, stats)
    levels = stats.pop("level", None)
    if levels is None:
        return Result(Score.of(stats))
    names = getattr(vec_env, "level_names", None)
    places: dict[str, list[int]] = {}
    for level in np.unique(levels).astype(int):
        places.setdefault(names[level] if names else str(level), []).append(level)
    parts = {}
    for group, members in places.items():
        chosen = np.isin(levels, members)
        parts[group] = Score.of({name: values[chosen] for name, values in stats.items()})
    return Result(Score.of(stats), parts)


def tried(run: RunConfig) -> EnvConfig:
    """The environment of evaluations: one that states no limit of an episode gets one."""
    limited: Callable[[], EnvConfig] | None = getattr(run.env, "tried", None)
    return limited() if limited else run.env


def _tell_cut_off(run: RunConfig, stats: dict[str, np.ndarray]) -> None:
    limit, lengths = tried(run).episode_steps, stats.get("length")
    if limit == run.env.episode_steps or lengths is None:
        return
    cut = int((lengths >= limit).sum())
    if cut:
        say(
            f"{cut} of {len(lengths)} evaluated episodes had not ended after {limit:,} steps and "
            "were cut off there: the environment states no limit. env.episode_steps=N sets one, "
            "of training too."
        )


def film(run: RunConfig, policy: FrugalPolicy, path: Path) -> Path | None:
    """A film of a policy that is being trained, by the environment's own tool.

    Draws nothing from the run's own random numbers. None where nothing can be drawn on this
    machine, which is told: training goes on.
    """
    shoot = needed(run.env, "film", NO_FILM)
    try:
        with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
            taken: Path = shoot(run, policy, path)
    except ConfigError as error:
        say(f"There is no film: {error}")
        return None
    return taken


def draw(run: RunConfig, vec_env: VectorEnv, player: Player, folder: Path) -> list[Path]:
    """Pictures of what a player does, from the environment and from the agent that offer some."""
    painters = [tool(part, "draw") for part in (run.env, run.agent)]
    return [path for paint in painters if paint for path in paint(run, vec_env, player, folder)]


def evaluation_env(run: RunConfig) -> VectorEnv:
    """The environments that evaluations play in; close them when done."""
    num_envs = max(1, min(run.evaluation.num_envs, run.evaluation.episodes))
    vec = run.vec.stepping() if run.vec is not None else None
    return tried(run).make_vec(num_envs, run.encoding(), run.memory, vec, "eval")
