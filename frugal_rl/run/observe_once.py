"""Compiles what a reset of an environment calls, beside the process that compiles its steps.

python -m frugal_rl.run.observe_once < request.json
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from frugal_rl.memory.base import tiny
from frugal_rl.run.asked import asked_run, end_with

NICE = 10
"""Whoever compiles steps needs longer, and goes first."""


def main() -> None:
    """Read the request, answer nothing: what was compiled lies in files."""
    os.nice(NICE)
    run = asked_run()
    env: Any = run.env
    run = tiny(replace(run, env=env.observed()))
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    vec_env.reset(run.seed)
    vec_env.close()
    print("null")


if __name__ == "__main__":
    end_with(main)
