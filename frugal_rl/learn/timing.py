"""How long an update and acting take on this machine: a few real ones, of growing size.

What the network sees is zeros of the right shapes, so that no environment is needed. The largest
size that is tried is the first one that takes a while; what lies above follows the last doubling.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from frugal_rl.learn.blank import Blank, Call, cost_of_rows
from frugal_rl.learn.trace import samples_at_once
from frugal_rl.memory.duration import Line, Pace
from frugal_rl.memory.waiting import waited_seconds

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

ENOUGH_SECONDS = 0.2
"""A size that takes this long is the last one."""
REPEATS, SETTLED_SECONDS = 3, 0.05
"""A size is repeated so often, and on until so much time was spent: the first calls of a process
touch new memory, and on a busy machine few calls find both cores free."""


def line(call: Callable[[int], Callable[[], Any]], largest: int) -> Line:
    """Seconds as a line in the number of samples; `call(B)` prepares what is timed.

    The best of a few repetitions counts, without waiting for a core: what else runs on the machine
    only ever adds.
    """
    took, size = {}, 1
    call(size)()  # loads kernels, starts threads
    while True:
        took[size] = _best(call(size))
        if size == largest or took[size] > ENOUGH_SECONDS:
            break
        size = min(4 * size, largest)
    if len(took) == 1:
        return Line(0.0, took[size] / size)
    before, last = sorted(took)[-2:]
    slope = max(0.0, (took[last] - took[before]) / (last - before))
    return Line(max(0.0, took[last] - slope * last), slope)


def _best(call: Callable[[], Any]) -> float:
    times: list[float] = []
    until = time.perf_counter() + SETTLED_SECONDS
    while len(times) < REPEATS or time.perf_counter() < until:
        began, waited = time.perf_counter(), waited_seconds()
        call()
        times.append(time.perf_counter() - began - (waited_seconds() - waited))
    return max(0.0, min(times))


def pace_of(run: RunConfig) -> Pace:
    """Seconds of the run's update and of its acting, without an environment."""
    config: Any = run.algo
    blank = Blank(run)
    blank.learns()
    updating = _with_rows(blank, blank.update, samples_at_once(run))
    blank.acts()
    return Pace(updating, _with_rows(blank, blank.acting, config.num_envs))


def _with_rows(blank: Blank, call: Call, largest: int) -> Line:
    """Seconds by samples, and what the static rows of the largest minibatch take beside them."""
    found = line(lambda samples: call(samples, 1), largest)
    rows = blank.policy.content.distinct(largest)
    return Line(found.fixed + cost_of_rows(call, _best, rows), found.per_sample)
