"""Learning from one rollout while the next one is collected: each update comes one late.

The policy that acts is a copy of the parameters as they were when the collection began, so that
what it does depends on nothing that the update does meanwhile: equal runs are equal to the bit.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugal_rl.late import Late
from frugal_rl.memory.part import Phase

if TYPE_CHECKING:
    from frugal_rl.learn.ppo import PpoLearner
    from frugal_rl.store.rollout import RolloutBuffer

compiled = Late("frugal_rl.learn.compiled.start")


class Drawn:
    """A rollout whose minibatches were drawn already, from the thread that collects.

    NumPy's stream is one, and environments may draw from it while others learn.
    """

    def __init__(self, rollout: RolloutBuffer, batch_size: int, epochs: int) -> None:
        self._rollout = rollout
        self._orders = [rollout.order(batch_size) for _ in range(epochs)]

    def order(self, batch_size: int) -> list[np.ndarray]:
        """The samples of each minibatch of the next epoch."""
        return self._orders.pop(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rollout, name)


class Overlap:
    """Two rollouts in turn: one is filled while the other is learned from."""

    def __init__(self, learner: PpoLearner, spare: RolloutBuffer) -> None:
        self.learner, self.spare = learner, spare
        self.waiting: RolloutBuffer | None = None
        """Collected, and not learned from yet."""
        self.actor = compiled.frozen_actor(learner.policy, learner.optimizer)
        self.thread = ThreadPoolExecutor(1, "update")

    def iterate(self, phase: Any) -> dict[str, float]:
        """Learn from the last rollout and collect the next one; the first time, collect alone."""
        learner, collector = self.learner, self.learner.collector
        metrics: dict[str, float] = {}
        torch.set_num_threads(1)
        with phase(Phase.rollout):
            self.actor.freeze()
            rollout = collector.collect(self.actor) if self.waiting is None else None
        if rollout is None:
            with phase(Phase.update):
                learning = self._learn_meanwhile()
                try:
                    rollout = collector.collect(self.actor)
                finally:
                    metrics = learning.result()
        collector.agree(learner.ranks)
        learner.num_steps += collector.collected
        self.waiting, collector.rollout, self.spare = rollout, self.spare, rollout
        return {**metrics, **collector.metrics()}

    def _learn_meanwhile(self) -> Future[dict[str, float]]:
        """Start to learn from what waits."""
        assert self.waiting is not None
        config = self.learner.config
        drawn, self.waiting = Drawn(self.waiting, config.batch_size, config.n_epochs), None
        return self.thread.submit(self.learner.learn, drawn)

    def settle(self) -> dict[str, float]:
        """Learn from what waits, so that nothing is left to a checkpoint or an evaluation."""
        return {} if self.waiting is None else self._learn_meanwhile().result()

    def parts(self) -> dict[str, int]:
        """Bytes held beside the learner's own, by name."""
        held = {f"second {name}": count for name, count in self.spare.parts().items()}
        return {**held, "acting engine": self.actor.engine.parts()["engine"]}
