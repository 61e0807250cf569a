"""The searcher as a teacher: it shows how to win from where the learner got to (DAgger)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.doing import doing
from frugal_rl.learn.update import ALONE
from frugal_rl.observation.history import History
from frugal_rl.run.evaluate import PolicyPlayer
from nclone.search.proof import Prover
from npp_rl.teaching.demonstrations import Demonstrations, in_order, record

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig
    from npp_rl.teaching.config import Teacher

BEFORE_DEATH = (2, 60)
"""Steps before a death from which the teacher is asked, at least and at most."""


@dataclass(frozen=True)
class Episode:
    """What the learner did on one training level: its number, the actions, how it ended."""

    level: int
    actions: np.ndarray
    won: bool
    died: bool


@dataclass(frozen=True)
class Lesson:
    """Actions that win: the learner's first `own` steps, then the teacher's."""

    level: int
    actions: np.ndarray
    own: int


@dataclass(frozen=True)
class Round:
    """What came of one round: episodes, those that were lost, states that were won from, rows."""

    episodes: int
    lost: int
    shown: int
    samples: int


def played(
    policy: FrugalPolicy,
    config: NppConfig,
    encoding: Encoding,
    memory: MemoryProfile,
    chosen: np.ndarray,
    seed: int,
) -> list[Episode]:
    """One episode of the policy, sampled, on each of the chosen training levels."""
    env = in_order(config, encoding, len(chosen), memory, chosen)
    history = History(encoding, len(chosen), config.episode_steps)
    player, rows = PolicyPlayer(policy, False, env.tables), history.reset(env.reset(0))
    taken: list[np.ndarray] = []
    length, won = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.bool_)
    died, playing = won.copy(), np.ones(len(chosen), np.bool_)
    with torch.random.fork_rng(), doing("playing", len(chosen), "training levels") as work:
        torch.manual_seed(seed)
        while playing.any():
            actions = player(rows)
            taken.append(np.asarray(actions, np.uint8))
            step = env.step(actions)
            length += playing
            if step.ended is not None:
                for n, success in zip(step.ended.index, step.ended.stats["success"], strict=True):
                    if playing[n]:
                        won[n], died[n] = success > 0, not step.truncated[n] and success == 0
                        playing[n] = False
            work.done = int((~playing).sum())
            rows, _ = history.push(step.rows, step.done)
    plan = np.stack(taken)
    return [
        Episode(int(level), plan[: length[n], n].copy(), bool(won[n]), bool(died[n]))
        for n, level in enumerate(chosen)
    ]


def asked_at(episode: Episode, rng: np.random.Generator) -> int:
    """The step from which the teacher takes over: shortly before a death, or at any time."""
    steps = len(episode.actions)
    if episode.died:
        return max(0, steps - int(rng.integers(*BEFORE_DEATH)))
    return int(rng.integers(0, max(1, steps)))


def lessons(
    config: NppConfig, episodes: Sequence[Episode], teacher: Teacher, seed: int
) -> list[Lesson]:
    """Wins from states of lost episodes, as far as the search finds some within its budget."""
    prover = Prover(budget_frames=teacher.budget_frames)
    levels, rng = config.open_levels("train"), np.random.default_rng(seed)
    found = []
    lost = [episode for episode in episodes if not episode.won]
    with doing("searching wins", len(lost), "lost episodes") as work:
        for episode in lost:
            work.done += 1
            own = asked_at(episode, rng)
            past, level = episode.actions[:own], levels[episode.level]
            proof = prover.prove(level, seed, after=past, frame_skip=config.frame_skip)
            if proof.inputs is not None:
                shown = proof.inputs.per_step(config.frame_skip)
                found.append(Lesson(episode.level, np.concatenate([past, shown]), own))
    return found


def taught(
    policy: FrugalPolicy,
    config: NppConfig,
    encoding: Encoding,
    memory: MemoryProfile,
    teacher: Teacher,
    gamma: float,
    number: int,
    ranks: Ranks = ALONE,
) -> tuple[Demonstrations | None, Round]:
    """One round: play, ask the teacher, and see what it does; rows of its steps alone.

    Each rank does so on levels of its own.
    """
    rng = np.random.default_rng([teacher.seed, number])
    count = len(config.open_levels("train"))
    chosen = np.sort(rng.permutation(count)[: teacher.levels])[ranks.rank :: ranks.size]
    if not len(chosen):
        return None, Round(0, 0, 0, 0)
    policy.set_training_mode(False)
    seed = int(rng.integers(1 << 31))
    episodes = played(policy, config, encoding, memory, chosen, seed)
    lost = sum(not episode.won for episode in episodes)
    found = lessons(config, episodes, teacher, seed)
    if not found:
        return None, Round(len(episodes), lost, 0, 0)
    which = np.array([lesson.level for lesson in found])
    demos = record(
        config,
        encoding,
        [lesson.actions for lesson in found],
        gamma,
        memory,
        which,
        [lesson.own for lesson in found],
    )
    demos = replace(demos, level=which[demos.level])
    return demos, Round(len(episodes), lost, len(found), len(demos))


def joined(old: Demonstrations, new: Demonstrations, most: int, first: int) -> Demonstrations:
    """Both together; of what was added behind the first `first` samples at most `most` stay."""
    kept = np.arange(len(old) + len(new))
    late = kept[first:]
    kept = np.concatenate([kept[:first], late[max(0, len(late) - most) :]])
    rows = {name: np.concatenate([row, new.rows[name]])[kept] for name, row in old.rows.items()}
    return replace(
        old,
        rows=rows,
        actions=np.concatenate([old.actions, new.actions])[kept],
        returns=np.concatenate([old.returns, new.returns])[kept],
        level=np.concatenate([old.level, new.level])[kept],
    )
