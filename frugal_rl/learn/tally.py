"""What is kept of episodes that ended, and of what happened in a rollout's steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    from frugal_rl.learn.networks import Network
    from frugal_rl.vec_env.interface import EndedEpisodes, Step


class EpisodeTally:
    """Statistics of the episodes that ended since it was last read."""

    def __init__(self) -> None:
        self._stats: dict[str, list[np.ndarray]] = {}
        self.count = 0

    def add(self, ended: EndedEpisodes | None) -> None:
        """Take in the episodes that ended in one step."""
        if ended is None:
            return
        self.count += len(ended.index)
        for name, values in ended.stats.items():
            self._stats.setdefault(name, []).append(np.array(values))

    def read(self) -> dict[str, float]:
        """Means over the ended episodes as `episode/<name>`, and their number; then begin anew."""
        means = {f"episode/{n}": float(np.concatenate(v).mean()) for n, v in self._stats.items()}
        means["episode/count"] = float(self.count)
        self._stats, self.count = {}, 0
        return means


class EventLog:
    """What happened in each step of a rollout, where the network asks for it."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._events: dict[str, list[np.ndarray]] = {}
        self._done: list[np.ndarray] = []

    def begin(self, names: tuple[str, ...]) -> None:
        """Forget the last rollout; nothing is kept without `names`."""
        self.names, self._events, self._done = names, {name: [] for name in names}, []

    def add(self, step: Step) -> None:
        """Keep the events of one step."""
        if not self.names:
            return
        self._done.append(step.done.copy())
        for name in self.names:
            if name not in step.events:
                raise ConfigError(
                    f"agent.auxiliary needs the event '{name}', which these environments do not "
                    "report; set its weights to 0, or use vec=batch with memory.level_data=shared."
                )
            self._events[name].append(step.events[name].copy())

    def labels(self, network: Network) -> dict[str, np.ndarray]:
        """The network's labels [T, N] of the steps that were added; then all else is forgotten."""
        if not self.names:
            return {}
        events = {name: np.stack(kept) for name, kept in self._events.items()}
        made = network.labels(events, np.stack(self._done))
        self.begin(self.names)
        return made
