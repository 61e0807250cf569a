"""PPO that fights itself, and its own past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from fighting.opponents.rivals import Pool
from fighting.opponents.snapshot import SnapshotPlayer
from frugal_rl.learn.ppo import PpoLearner
from frugal_rl.vec_env.game_env import GameVecEnv

if TYPE_CHECKING:
    from fighting.cartridge.game import CartridgeGame
    from fighting.game import DuelGame
    from fighting.opponents.self_play_config import SelfPlayConfig
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv


class SelfPlayLearner(PpoLearner):
    """Learns from both seats; every so often it joins its own opponents."""

    def __init__(self, config: SelfPlayConfig, run: RunConfig, vec_env: VectorEnv) -> None:
        self.self_play, self.run = config, run
        self.snapshots: list[tuple[str, dict[str, Tensor]]] = []
        super().__init__(config, run, vec_env)

    @property
    def game(self) -> DuelGame | CartridgeGame:
        """What is played."""
        env = self.vec_env
        assert isinstance(env, GameVecEnv)
        game: Any = env.game
        return game  # type: ignore[no-any-return]

    @property
    def pool(self) -> Pool:
        """The opponents of the rows that do not meet the present self."""
        assert isinstance(self.game.rival, Pool)
        return self.game.rival

    def iterate(self, phase: Any) -> dict[str, float]:
        """One iteration of PPO, then perhaps a snapshot."""
        before = self.num_steps
        metrics = super().iterate(phase)
        every = self.self_play.snapshot_every_steps
        if self.num_steps // every > before // every:
            self._join(f"self_{self.num_steps}", dict(self.policy.state_dict()))
        return {
            **metrics,
            "self_play/rating": self.pool.own,
            "self_play/best_past": max(self.pool.ratings),
            "self_play/pool": float(len(self.pool.players)),
        }

    def _join(self, name: str, weights: Mapping[str, Tensor]) -> None:
        policy = self.self_play.build_policy(self.run, self.vec_env)
        policy.load_state_dict(weights)
        pool = self.pool
        first = pool.staying
        if len(pool.players) - first >= self.self_play.pool_size:
            for items in (pool.names, pool.players, pool.ratings):
                del items[first]
            pool.chosen[pool.chosen > first] -= 1  # places of the gone one meet the next
            self.snapshots.pop(0)
        pool.add(name, SnapshotPlayer(policy, self.game.seen_by_rivals))
        self.snapshots.append((name, policy.state_dict()))  # its own weights, not another copy

    def parts(self) -> dict[str, int]:
        """Bytes held, past selves included."""
        tensors = [t for _, weights in self.snapshots for t in weights.values()]
        held = sum(t.numel() * t.element_size() for t in tensors)
        return {**super().parts(), "past selves": held}

    def state(self) -> dict[str, Any]:
        """PPO's state and the past selves."""
        kept = [{"name": name, "weights": weights} for name, weights in self.snapshots]
        return {**super().state(), "snapshots": kept}

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        for snapshot in state["snapshots"]:
            self._join(str(snapshot["name"]), snapshot["weights"])
        super().load({key: value for key, value in state.items() if key != "snapshots"})
