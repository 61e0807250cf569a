"""A game as an environment: all worlds for the trainer, or one of them for Gymnasium."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.observation.encoder import Encoder
from frugal_rl.vec_env.interface import EndedEpisodes, Rows, Step, VectorEnv, env_seeds
from frugal_rl.vec_env.plain import SpecEnv

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.vec_env.game import Game

FIRST = np.zeros(1, np.int64)
"""The only world of a `GameEnv`."""


class GameVecEnv(VectorEnv):
    """All worlds of a game; nothing is done per world but by the game itself."""

    def __init__(self, game: Game, encoding: Encoding, reuse: bool = True) -> None:
        self.game, self.encoding = game, encoding
        self.num_envs, self.tables = game.num_worlds, game.tables
        self.action_space = game.action_space
        self.level_names = game.level_names
        self.encoder = Encoder(encoding, self.tables, self.num_envs, reuse)
        self.returns = np.zeros(self.num_envs)
        self._actions = (self.num_envs, *(game.action_space.shape or ()))

    def reset(self, seed: int) -> Rows:
        """Start N new episodes."""
        self._seed(seed)
        self.returns[:] = 0
        self.game.begin(np.arange(self.num_envs))
        return self.rows()

    def rows(self) -> Rows:
        """The rows of the current observation."""
        return self.encoder.encode(self.game.observe())

    def step(self, actions: np.ndarray) -> Step:
        """One action each; ended episodes begin anew."""
        game = self.game
        told = game.advance(np.asarray(actions).reshape(self._actions))
        self.returns += told.reward
        done = told.terminated | told.truncated
        final_index = np.flatnonzero(told.truncated)
        ended, final_rows = None, {}
        if done.any():
            index = np.flatnonzero(done)
            ended = EndedEpisodes(index, {"return": self.returns[index]} | game.outcomes(index))
            if len(final_index):
                final_rows = self.encoder.encode(game.observe(final_index), lasting=True)
            self.returns[index] = 0
            game.begin(index)
        rows, events = self.rows(), dict(told.events)
        return Step(rows, told.reward, done, told.truncated, final_index, final_rows, ended, events)

    def parts(self) -> dict[str, int]:
        """The game's bytes and those of the rows."""
        return {**self.game.parts(), "rows": self.encoder.nbytes}

    def state(self) -> dict[str, Any]:
        """The game's state and the returns so far."""
        return {"game": self.game.state(), "returns": self.returns.copy()}

    def load(self, state: dict[str, Any]) -> Rows:
        """Continue from `state()`, as a checkpoint holds it."""
        self._seed(0)  # generators that the game's own state then overwrites
        self.game.vet(game_state(state))
        self.game.load(game_state(state))
        self.returns[:] = state.get("returns", 0)
        return self.rows()

    def _seed(self, seed: int) -> None:
        self.game.seed([np.random.default_rng(s) for s in env_seeds(self.num_envs, seed)])

    def close(self) -> None:
        """Close the game."""
        self.game.close()


def game_state(state: dict[str, Any]) -> dict[str, Any]:
    """The game's part of a `GameVecEnv.state`, under whatever name checkpoints know it.

    Beside `returns` it is the only item; a checkpoint older than this class may be the game's state
    itself.
    """
    others = [name for name in state if name != "returns"]
    kept: dict[str, Any] = state[others[0]] if len(others) == 1 else state
    return kept


class GameEnv(SpecEnv):
    """The first world of a game, for Gymnasium and the backends of single environments."""

    def __init__(self, game: Game, spec: ObservationSpec, episode_steps: int) -> None:
        self.game = game
        self.action_space = game.action_space
        super().__init__(spec, game.tables, episode_steps)
        self._source: np.random.Generator | None = None

    def begin(self) -> None:
        """Start an episode; the game draws from `np_random`, which a seed replaces."""
        if self._source is not self.np_random:
            self._source = self.np_random
            self.game.seed([self.np_random])
        self.start()

    def start(self) -> None:
        """Start the game's episode; for subclasses whose `reset` takes options."""
        self.game.begin(FIRST)

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """One action; `info` has the statistics of an episode that ended."""
        told = self.game.advance(np.asarray(action)[None])
        terminated, truncated = bool(told.terminated[0]), bool(told.truncated[0])
        info: dict[str, Any] = {}
        if terminated or truncated:
            stats = {name: float(v[0]) for name, v in self.game.outcomes(FIRST).items()}
            info = {"success": stats.pop("success") > 0, "stats": stats}
        return float(told.reward[0]), terminated, truncated, info

    def raw(self) -> dict[str, np.ndarray]:
        """Raw fields of the one world."""
        return {name: values[0] for name, values in self.game.observe().items()}

    def state(self) -> dict[str, Any]:
        """The game's state."""
        return self.game.state()

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`, in an environment that has begun nothing yet."""
        self._source = self.np_random
        self.game.seed([self._source])
        self.game.vet(state)
        self.game.load(state)

    def close(self) -> None:
        """Close the game."""
        self.game.close()
