"""Where the threads of a kernel wait for each other, without Python between them.

Whoever comes adds one to a number and looks at it until all have come; if that takes long, others
may have the core.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from frugal_rl.learn.compiled.activations import inlined

LOOKS = 4000
"""At the number, some microseconds, before each offer of the core."""
NOBODY_WAITS = 1 << 60
ORDER = "seq_cst"
int64: Any = types.int64
let_others: Any = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


def _number(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


def _add_one(typing: Any, address: Any) -> Any:
    """To the number at an address, whoever else does the same."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _number(builder, arguments[0]), one, ORDER)

    return int64(int64), emit


def _look(typing: Any, address: Any) -> Any:
    """The number at an address, as others left it."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_number(builder, arguments[0]), ORDER, 8)

    return int64(int64), emit


add_one: Any = intrinsic(_add_one)
look: Any = intrinsic(_look)


@inlined
def meet(address: Any, come: Any) -> Any:
    """Wait until so many have come, oneself included; false where somebody will not."""
    add_one(address)
    looks = 0
    while look(address) < come:
        looks += 1
        if looks % LOOKS == 0:
            let_others()
    return look(address) < NOBODY_WAITS


class Meeting:
    """The number, in a cache line of its own."""

    def __init__(self) -> None:
        self._line = np.zeros(8, np.int64)

    @property
    def address(self) -> int:
        """As `meet` takes it; valid as long as this object."""
        return int(self._line.ctypes.data)

    def begin(self) -> None:
        """Nobody has come yet."""
        self._line[0] = 0

    def give_up(self) -> None:
        """Somebody will not come: let go all that wait, now and from now on."""
        self._line[0] = NOBODY_WAITS
