"""What a trajectory holds of each step: shapes and dtypes by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnasium import spaces

    from frugal_rl.observation.encoding import Encoding

Layout = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Shape and dtype of one step of each item."""
LEARNER_ITEMS = ("value", "log_prob")
"""float32 items that a learner adds to what environments give."""


def item_layout(action_space: spaces.Space[Any], encoding: Encoding) -> Layout:
    """Items of a trajectory: action, reward, terminated, then rows.

    The reward's place is the one that `rollout.trajectories` expects.
    """
    action = np.asarray(action_space.sample())
    return {
        "action": (action.shape, action.dtype),
        "reward": ((), np.dtype(np.float32)),
        "terminated": ((), np.dtype(np.bool_)),
        **{r.name: (r.shape, r.dtype) for r in encoding.rows},
    }


def learner_layout(action_space: spaces.Space[Any], encoding: Encoding) -> Layout:
    """The same with the learner's items."""
    own = {name: ((), np.dtype(np.float32)) for name in LEARNER_ITEMS}
    return {**item_layout(action_space, encoding), **own}
