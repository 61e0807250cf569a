"""How the simulator's functions are compiled: strict IEEE arithmetic, no reference counting.

Kernels only borrow arrays and allocate nothing, so counting references to them would be pure
cost: an atomic operation for each array that a function looks at, two thirds of the time of a
frame (`benchmarks/simulator.py`). `error_model="numpy"` leaves out checks for division by zero;
where a divisor can be zero the specification says what happens.
"""

from __future__ import annotations

from numba import njit

device = njit(error_model="numpy", _nrt=False, no_cfunc_wrapper=True)
"""A function that kernels call."""
inlined = njit(error_model="numpy", _nrt=False, no_cfunc_wrapper=True, forceinline=True)
"""A function with one caller, made part of it, because handing over arrays costs time."""
merged = njit(error_model="numpy", _nrt=False, inline="always")
"""The same before types are known, for what contains almost everything.

LLVM optimises and assembles each function with all that it is made of before it does so again for
the caller. `run_entities` is no such function: merged, a frame took 1.2 to 1.3 times as long.
"""
kernel = njit(cache=True, error_model="numpy", nogil=True, _nrt=False, no_cfunc_wrapper=True)
"""What rewards, observations and paths consist of: called from Python, or by one that is."""
