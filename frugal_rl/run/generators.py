"""The state of every global random number generator that a run draws from."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from frugal_rl.errors import CheckpointError


def rng_state() -> dict[str, Any]:
    """The generators of torch, CUDA, NumPy and Python."""
    kind, keys, place, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    version, internal, gauss_next = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": cuda,
        "numpy": [kind, np.asarray(keys), int(place), int(has_gauss), float(gauss)],
        "python": [version, list(internal), gauss_next],
    }


def set_rng_state(state: Mapping[str, Any]) -> None:
    """Put the generators back to `rng_state()`.

    Raises:
        CheckpointError: it is no such state.
    """
    try:
        torch.set_rng_state(state["torch"])
        if torch.cuda.is_available() and state["cuda"]:
            torch.cuda.set_rng_state_all(state["cuda"])
        np.random.set_state(tuple(state["numpy"]))  # noqa: NPY002
        version, internal, gauss_next = state["python"]
        random.setstate((version, tuple(internal), gauss_next))
    except (
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        OverflowError,
    ) as error:
        raise CheckpointError(
            "The checkpoint's random number generators are not as this program saves them; use "
            "one that this version wrote."
        ) from error
