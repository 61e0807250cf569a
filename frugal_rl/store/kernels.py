"""Compiled loops of the rollout: advantages, drawn samples, windows gathered back in time.

Rows are seen as W machine words; store is [lead + T, N, W], step t of environment n being row
[lead + t, n]. The rows before `lead` belong to the rollout before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def advantages(
    rewards: Any,
    values: Any,
    starts: Any,
    last_values: Any,
    dones: Any,
    gamma: Any,
    gamma_lambda: Any,
    out: Any,
) -> None:
    """Generalised advantage estimation (Schulman et al. 2016) in SB3's order of operations.

    rewards, values, out  [T, N] float32
    starts                [T, N] bool
    last_values, dones    [N] float32, [N] bool
    gamma, gamma_lambda   float32; every operation is a single float32 one, as in NumPy
    """
    one = np.float32(1.0)
    for n in range(rewards.shape[1]):
        last = np.float32(0.0)
        for i in range(rewards.shape[0]):
            t = rewards.shape[0] - 1 - i
            if i == 0:
                goes_on = one - np.float32(dones[n])
                following = last_values[n]
            else:
                goes_on = one - np.float32(starts[t + 1, n])
                following = values[t + 1, n]
            delta = rewards[t, n] + gamma * following * goes_on - values[t, n]
            last = delta + gamma_lambda * goes_on * last
            out[t, n] = last


@njit(cache=True, error_model="numpy")
def draw(
    indices: Any,
    log_probs: Any,
    values: Any,
    advantages: Any,
    returns: Any,
    actions: Any,
    at: Any,
    scalars: Any,
    drawn: Any,
) -> None:
    """What some minibatches are learned from, beside observations, in one pass.

    indices          [M, B] int64, env-major: index = n * T + t of a rollout of T steps
    log_probs, ...   [T, N] float32; actions [T, N, a]
    at               [M, B] int64 is written: t * N + n
    scalars, drawn   [M, 4, B] and [M, B, a] float32 are written

    Numbers without a sign, as an index may be negative and is then looked at once more.
    """
    steps, envs = np.uint64(values.shape[0]), np.uint64(values.shape[1])
    log_prob, value, advantage, expected = (
        log_probs.reshape(-1),
        values.reshape(-1),
        advantages.reshape(-1),
        returns.reshape(-1),
    )
    given = actions.reshape(-1, actions.shape[2])
    for m in range(indices.shape[0]):
        for b in range(indices.shape[1]):
            index = np.uint64(indices[m, b])
            n = index // steps
            at[m, b] = (index - n * steps) * envs + n
        for b in range(indices.shape[1]):
            place = np.uint64(at[m, b])
            scalars[m, 0, b] = log_prob[place]
            scalars[m, 1, b] = value[place]
            scalars[m, 2, b] = advantage[place]
            scalars[m, 3, b] = expected[place]
        for b in range(indices.shape[1]):
            place = np.uint64(at[m, b])
            for a in range(drawn.shape[2]):
                drawn[m, b, a] = given[place, a]


@njit(cache=True)
def _copy(row: Any, into: Any) -> None:
    """A row [W] to another place; as an assignment of arrays it takes two seconds to compile."""
    for w in range(into.size):
        into[w] = row[w]


@njit(cache=True)
def gather_windows(store: Any, lead: int, t: Any, n: Any, age: Any, repeat: bool, out: Any) -> None:
    """The k rows up to step t[b] of environment n[b], oldest first, into out [B, k, W].

    Rows before the episode's start (more than age[b] steps back) are zeros, or its first row.
    """
    k = out.shape[1]
    for b in range(out.shape[0]):
        newest = lead + t[b]
        for j in range(k):
            lag = k - 1 - j
            if lag <= age[b]:
                _copy(store[newest - lag, n[b]], out[b, j])
            elif repeat:
                _copy(store[newest - age[b], n[b]], out[b, j])
            else:
                out[b, j] = 0


@njit(cache=True)
def gather_episodes(store: Any, lead: int, t: Any, n: Any, age: Any, out: Any) -> None:
    """All rows of the episode up to step t[b], oldest first, then zeros, into out [B, S, W]."""
    for b in range(out.shape[0]):
        first = lead + t[b] - age[b]
        for j in range(age[b] + 1):
            _copy(store[first + j, n[b]], out[b, j])
        out[b, age[b] + 1 :] = 0


@njit(cache=True)
def carry_episodes(windows: Any, age: Any, lead: int, store: Any) -> None:
    """Rows before the rollout's first step, from windows [N, S, W], to just below `lead`."""
    for n in range(windows.shape[0]):
        for j in range(age[n]):
            _copy(windows[n, j], store[lead - age[n] + j, n])
