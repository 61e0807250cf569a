"""A bound on what building a network may allocate, for configurations that strangers wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from frugal_rl.errors import CheckpointError

SCRATCH_BYTES = 256 << 20
"""What any network may take beside its weights: initialisation, constants, tables."""
MAKERS = {
    "empty",
    "empty_strided",
    "zeros",
    "ones",
    "full",
    "rand",
    "randn",
    "new_empty",
    "new_zeros",
    "new_full",
    "arange",
    "eye",
}
"""Operations that make tensors of a size that is given to them."""


class AtMost(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside it, no single tensor may be made above `limit_bytes`; refused before it is."""

    def __init__(self, limit_bytes: int, words: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.limit_bytes, self.words = limit_bytes, words

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Look at the sizes that an operation was given, then let it run."""
        if func.overloadpacket.__name__ in MAKERS:
            sizes = next((a for a in args if isinstance(a, list | tuple | torch.Size)), ())
            if math.prod(int(n) for n in sizes) * 4 > self.limit_bytes:
                raise CheckpointError(self.words)
        return func(*args, **(kwargs or {}))


def policy_bytes(weights: Mapping[str, Any]) -> int:
    """Bytes of saved weights."""
    return sum(int(w.nbytes) for w in weights.values() if isinstance(w, Tensor))
