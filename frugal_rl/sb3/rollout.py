"""Rollouts of stock Stable-Baselines3 in the smallest exact form, found on what arrives."""

from __future__ import annotations

import math
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from frugal_rl.errors import ConfigError, EncodingError, MemoryBudgetError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.usage import resident_bytes
from frugal_rl.sb3.spaces import check_space
from frugal_rl.store.column_spec import FIRST_LOOK
from frugal_rl.store.drawn import RolloutRows
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.replay import DictReplayBuffer, ReplayBuffer
from frugal_rl.store.rollout import RolloutBuffer, shaped

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec
    from frugal_rl.store.columns import Column

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 10**3, "MB": 10**6}
UNITS |= {"GB": 10**9, "TiB": 1 << 40}


def compact(
    env: Any,
    budget: str | int | None = None,
    compare_with_dense: bool = False,
    algorithm: type | None = None,
) -> dict[str, Any]:
    """Keywords of a stock SB3 model: `PPO("CnnPolicy", env, **compact(env, budget="8GiB"))`.

    Off-policy: `DQN("CnnPolicy", env, **compact(env, algorithm=DQN))`.

    Args:
        env: the environment that the model is given; an observation that cannot be stored, or that
            Stable-Baselines3 cannot read, is refused by name.
        budget: the most that the process may hold. The run is refused as soon as the first rows
            tell that the rollout will not fit, with a size that does.
        compare_with_dense: keep every observation a second time as it is and compare each draw
            with it: for doubters and for bug reports.
        algorithm: the class of the model, where it is sb3-contrib's MaskablePPO or off-policy.
    """
    space = check_env_given(env).observation_space
    check_space(space)
    if algorithm is not None and issubclass(algorithm, OffPolicyAlgorithm):
        return _replay_keywords(space, budget is None and not compare_with_dense)
    kind = buffer_class(algorithm, isinstance(space, spaces.Dict))
    keywords = {"budget_bytes": as_bytes(budget), "compare_with_dense": compare_with_dense}
    return {"rollout_buffer_class": kind, "rollout_buffer_kwargs": keywords}


def check_env_given(env: Any) -> Any:
    """The environment itself; a name in its place is refused."""
    if isinstance(env, str):
        raise ConfigError(
            f"compact and plan look at an environment, and '{env}' is the name of one. Make it: "
            f"env = gymnasium.make('{env}'), and give env to both."
        )
    return env


def _replay_keywords(space: spaces.Space[Any], plain: bool) -> dict[str, Any]:
    """Of an off-policy model: the replay, which takes no further options here."""
    if not plain:
        raise ConfigError(
            "budget and compare_with_dense are options of rollouts; a replay has neither. Leave "
            "them out, and choose buffer_size by `model.replay_buffer.parts()`."
        )
    dictionary = isinstance(space, spaces.Dict)
    return {"replay_buffer_class": DictReplayBuffer if dictionary else ReplayBuffer}


def buffer_class(algorithm: type | None, dictionary: bool) -> type[CompactRolloutBuffer]:
    """The rollout that an algorithm's class asks for."""
    if algorithm is not None and not issubclass(algorithm, OnPolicyAlgorithm):
        raise ConfigError(
            f"{algorithm.__name__} keeps neither a rollout nor a replay, so that nothing is there "
            "to store smaller. Build it without compact()."
        )
    names = [] if algorithm is None else [c.__name__ for c in algorithm.__mro__]
    if "RecurrentPPO" in names:
        raise ConfigError(
            "RecurrentPPO takes no rollout_buffer_class. Build it without compact(), and then: "
            "model = frugal_rl.sb3.shrink(model, budget=...)."
        )
    if "MaskablePPO" not in names:
        return CompactRolloutBuffer
    contrib = import_module("frugal_rl.sb3.contrib")  # an optional package
    kind = contrib.CompactDictMaskableBuffer if dictionary else contrib.CompactMaskableBuffer
    return kind  # type: ignore[no-any-return]


def shrink(model: Any, budget: str | int | None = None, compare_with_dense: bool = False) -> Any:
    """The same model with its rollout in the smallest exact form; also for RecurrentPPO.

    Example: `model = shrink(RecurrentPPO("MlpLstmPolicy", env), budget="8GiB")`.

    Args:
        model: an on-policy model of Stable-Baselines3 or sb3-contrib that has not trained yet.
        budget: as for `compact`.
        compare_with_dense: as for `compact`.
    """
    if isinstance(model, OffPolicyAlgorithm):
        name = type(model).__name__
        raise ConfigError(
            f"{name} learns from a replay. Build it with {name}(policy, env, "
            f"**compact(env, algorithm={name}))."
        )
    stock, space = model.rollout_buffer, model.observation_space
    check_space(space)
    given: list[Any] = [stock.buffer_size, space, model.action_space]
    if hasattr(stock, "hidden_state_shape"):
        contrib = import_module("frugal_rl.sb3.contrib")  # an optional package
        dictionary = isinstance(space, spaces.Dict)
        kind = contrib.CompactDictRecurrentBuffer if dictionary else contrib.CompactRecurrentBuffer
        given.append(stock.hidden_state_shape)
    else:
        kind = buffer_class(type(model), isinstance(space, spaces.Dict))
    model.rollout_buffer = kind(
        *given,
        model.device,
        gamma=model.gamma,
        gae_lambda=model.gae_lambda,
        n_envs=model.n_envs,
        budget_bytes=as_bytes(budget),
        compare_with_dense=compare_with_dense,
    )
    return model


def as_bytes(size: str | int | None) -> int | None:
    """Bytes of a size such as "8GiB"."""
    if size is None or isinstance(size, int):
        return size
    parts = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]+)\s*", size)
    if parts is None or parts[2] not in UNITS:
        raise ConfigError(f"budget={size!r} is no size; write it as '8GiB' or in bytes.")
    return int(float(parts[1]) * UNITS[parts[2]])


class CompactRolloutBuffer(RolloutBuffer):
    """`rollout_buffer_class` of PPO and A2C for any environment; SB3's minibatches, bit for bit.

    Nothing is declared: each entry of the observation is looked at as it comes, and whatever
    repeats is kept once. Flat and Dict spaces alike.
    """

    def __init__(
        self,
        *arguments: Any,
        budget_bytes: int | None = None,
        compare_with_dense: bool = False,
        **keywords: Any,
    ) -> None:
        super().__init__(*arguments, **keywords)
        self.budget_bytes = budget_bytes
        self._besides = resident_bytes()
        self._twin = self._dense_columns() if compare_with_dense else {}
        self._check_budget(self.nbytes)

    def _column(self, spec: ColumnSpec, location: RolloutLocation, folder: str) -> Column:
        """Whatever the space declares, the rows tell."""
        if not spec.row_bytes:
            return super()._column(spec, location, folder)
        return FoundColumn(spec, self.buffer_size, self.n_envs)

    def _dense_columns(self) -> dict[str, Column]:
        found = self.columns.items()
        return {
            n: super(CompactRolloutBuffer, self)._column(c.spec, RolloutLocation.ram, "")
            for n, c in found
        }

    def add(self, obs: Any, *arguments: Any, **keywords: Any) -> None:
        """Copy one step of N environments; looks at the budget now and then."""
        for name, column in self._twin.items():
            rows = shaped(obs if self._single else obs[name], column.spec)
            column.write(self.pos, np.reshape(rows, (self.n_envs, *column.spec.shape)), None)
        super().add(obs, *arguments, **keywords)
        if self.budget_bytes is not None and self.pos % FIRST_LOOK == 0:
            self._check_budget(self.predicted_bytes())

    @property
    def observations(self) -> Any:
        """What was added, read as SB3's arrays [T, N, *shape] are; by name for a Dict space.

        They keep that shape after minibatches were drawn, where SB3's are flattened.
        """
        rows = {name: RolloutRows(self, column) for name, column in self.columns.items()}
        return rows["obs"] if self._single else rows

    def predicted_bytes(self) -> int:
        """Bytes of a full rollout whose further rows are like those of now."""
        columns = [c for c in self.columns.values() if isinstance(c, FoundColumn)]
        held = sum(c.nbytes for c in columns)
        return self.nbytes - held + sum(math.ceil(c.predicted_bytes(self.pos)) for c in columns)

    def _check_budget(self, predicted: int) -> None:
        if self.budget_bytes is None or self._besides + predicted <= self.budget_bytes:
            return
        room = max(0, self.budget_bytes - self._besides)
        fits = int(self.buffer_size * room / predicted)
        advice = f"Lower n_steps to {fits}" if fits else "Raise the budget"
        raise MemoryBudgetError(
            f"The rollout of {self.buffer_size} steps x {self.n_envs} environments would take "
            f"{predicted / 2**20:,.1f} MiB beside {self._besides / 2**20:,.1f} MiB, above the "
            f"budget of {self.budget_bytes / 2**20:,.1f} MiB. {advice}, or take fewer environments."
        )

    def observations_at(self, t: np.ndarray, n: np.ndarray, capacity: int = 0) -> dict[str, Any]:
        """Observations of samples (t[b], n[b]), compared with the dense twin where there is one."""
        drawn = super().observations_at(t, n, capacity)
        for name, column in self._twin.items():
            expected = column.gather(t, n, None, None)
            if drawn[name].cpu().numpy().tobytes() != expected.tobytes():
                raise EncodingError(
                    f"Observation '{name}' was not given back as it came. This is a bug of "
                    "Frugal RL; train without compact() and report the environment's id."
                )
        return drawn
