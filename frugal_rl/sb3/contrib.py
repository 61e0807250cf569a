"""Rollouts of sb3-contrib's algorithms: action masks and recurrent states in found columns too.

sb3-contrib checks that its own classes are given, so that ours are of them by name; nothing of
theirs is allocated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable import buffers as maskable
from sb3_contrib.common.recurrent import buffers as recurrent
from sb3_contrib.common.recurrent import type_aliases
from torch.nn.utils.rnn import pad_sequence

from frugal_rl.sb3.rollout import CompactRolloutBuffer
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn

FLOAT = np.dtype(np.float32)
STATES = ("pi_hidden", "pi_cell", "vf_hidden", "vf_cell")


class ExtraColumns(CompactRolloutBuffer):
    """A rollout with columns beside the observation; actions keep the type that they came in."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.extra: dict[str, FoundColumn] = {}
        super().__init__(*arguments, **keywords)

    def _extra_column(self, name: str, shape: tuple[int, ...]) -> None:
        spec = ColumnSpec(name, shape, FLOAT)
        self.extra[name] = FoundColumn(spec, self.buffer_size, self.n_envs)

    @property
    def nbytes(self) -> int:
        """Bytes allocated, those of the further columns too."""
        return super().nbytes + sum(c.nbytes for c in self.extra.values())

    def predicted_bytes(self) -> int:
        """Bytes of a full rollout whose further rows are like those of now."""
        grown = (c.predicted_bytes(self.pos) - c.nbytes for c in self.extra.values())
        return super().predicted_bytes() + int(sum(grown))

    def _sample_bytes(self) -> int:
        """Bytes of a sample as it is drawn, those of the further columns too."""
        return super()._sample_bytes() + sum(c.spec.row_bytes for c in self.extra.values())

    def _actions_at(self, t: np.ndarray, n: np.ndarray) -> torch.Tensor:
        return self._tensor(self.actions[t, n].astype(self.action_space.dtype))

    def _scalars_at(self, t: np.ndarray, n: np.ndarray) -> list[torch.Tensor]:
        arrays = (self.values, self.log_probs, self.advantages, self.returns)
        return [self._tensor(a[t, n]) for a in arrays]


class CompactMaskableBuffer(ExtraColumns, maskable.MaskableRolloutBuffer):  # type: ignore[misc, override]
    """`rollout_buffer_class` of MaskablePPO."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.mask_dims = choices(self.action_space)
        self._extra_column("action_masks", (self.mask_dims,))

    def add(self, *arguments: Any, action_masks: Any = None, **keywords: Any) -> None:
        """Copy one step and its masks; without masks all actions are allowed."""
        shape = (self.n_envs, self.mask_dims)
        given = np.ones(shape) if action_masks is None else np.reshape(action_masks, shape)
        self.extra["action_masks"].write(self.pos, given.astype(FLOAT), None)
        super().add(*arguments, **keywords)

    def samples(self, indices: np.ndarray, capacity: int = 0) -> Any:
        """sb3-contrib's sample tuple for env-major indices [B]."""
        n, t = np.divmod(indices, self.buffer_size)
        shown = self.observations_at(t, n)
        kind: Any = (
            maskable.MaskableRolloutBufferSamples
            if self._single
            else maskable.MaskableDictRolloutBufferSamples
        )
        masks = self.extra["action_masks"].gather(t, n, None, None)
        return kind(
            shown["obs"] if self._single else shown,
            self._actions_at(t, n),
            *self._scalars_at(t, n),
            self._tensor(masks),
        )


class CompactDictMaskableBuffer(CompactMaskableBuffer, maskable.MaskableDictRolloutBuffer):  # type: ignore[misc, override]
    """The same under the name that sb3-contrib asks for with Dict observations."""


class CompactRecurrentBuffer(ExtraColumns, recurrent.RecurrentRolloutBuffer):  # type: ignore[misc, override]
    """The rollout of RecurrentPPO: states are kept as they repeat, and read where sequences begin.

    Args:
        buffer_size: T; the others stand as sb3-contrib gives them.
        observation_space: of the environment.
        action_space: of the environment.
        hidden_state_shape: (T, layers, N, features) of a state.
        arguments: device and discounts, as SB3 gives them.
        keywords: the same by name.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        hidden_state_shape: tuple[int, int, int, int],
        *arguments: Any,
        **keywords: Any,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, *arguments, **keywords)
        self.hidden_state_shape = hidden_state_shape
        for name in STATES:
            self._extra_column(name, (hidden_state_shape[1], hidden_state_shape[3]))

    def add(self, *arguments: Any, lstm_states: Any, **keywords: Any) -> None:  # type: ignore[override]
        """Copy one step and the states before it."""
        for name, state in zip(STATES, (*lstm_states.pi, *lstm_states.vf), strict=True):
            rows = state.detach().cpu().numpy().swapaxes(0, 1)
            self.extra[name].write(self.pos, rows, None)
        super().add(*arguments, **keywords)

    def order(self, batch_size: int) -> list[np.ndarray]:
        """Indices in order of time from a random place on, as sb3-contrib draws them."""
        total = self.buffer_size * self.n_envs
        begin = np.random.randint(total)  # noqa: NPY002 - SB3's stream of random numbers
        indices = np.roll(np.arange(total), -begin)
        return [indices[start : start + batch_size] for start in range(0, total, batch_size)]

    def _drawn_at_once(self, batch_size: int) -> int:
        """One: a minibatch is as long as its sequences make it."""
        return 1

    def samples(self, indices: np.ndarray, capacity: int = 0) -> Any:
        """sb3-contrib's sample tuple for env-major indices [B], as padded sequences."""
        n, t = np.divmod(indices, self.buffer_size)
        begins = self.episode_starts[t, n] | (t == 0)
        begins[0] = True
        first = np.flatnonzero(begins)
        lengths = np.diff(first, append=len(indices)).tolist()

        def padded(values: torch.Tensor) -> torch.Tensor:
            return pad_sequence(list(torch.split(values, lengths)), True).flatten(0, 1)

        shown = {name: padded(v) for name, v in self.observations_at(t, n).items()}
        kind: Any = (
            type_aliases.RecurrentRolloutBufferSamples
            if self._single
            else type_aliases.RecurrentDictRolloutBufferSamples
        )
        return kind(
            shown["obs"] if self._single else shown,
            padded(self._actions_at(t, n)),
            *(padded(a) for a in self._scalars_at(t, n)),
            self._states_at(t[first], n[first]),
            padded(self._tensor(self.episode_starts[t, n].astype(FLOAT))),
            padded(self._tensor(np.ones(len(indices), FLOAT))),
        )

    def _states_at(self, t: np.ndarray, n: np.ndarray) -> Any:
        """States [layers, B, features] before samples (t[b], n[b])."""
        rows = [self.extra[name].gather(t, n, None, None) for name in STATES]
        states = [self._tensor(r.swapaxes(0, 1)).contiguous() for r in rows]
        return type_aliases.RNNStates(tuple(states[:2]), tuple(states[2:]))


class CompactDictRecurrentBuffer(CompactRecurrentBuffer, recurrent.RecurrentDictRolloutBuffer):  # type: ignore[misc, override]
    """The same under the name that sb3-contrib asks for with Dict observations."""


def choices(space: spaces.Space[Any]) -> int:
    """Numbers of a mask over the actions of a space."""
    if isinstance(space, spaces.MultiBinary):
        return 2 * int(np.prod(space.shape))
    counts = getattr(space, "nvec", getattr(space, "n", 0))
    return int(np.sum(counts))
