"""A measurement in a process of its own, with a word now and then while it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

WORD_SECONDS = 2.5
MOST_SECONDS = 900.0
"""A busy machine that compiles its first kernels takes minutes."""


def ask_child(module: str, run: RunConfig, doing: str, most_seconds: float = MOST_SECONDS) -> Any:
    """What `python -m module` answers about a run: the last line that it prints, as JSON.

    Args:
        module: reads the run from standard input.
        run: its values and plug-ins are handed over.
        doing: what to say on standard error while it goes on.
        most_seconds: after which it is ended.

    Raises:
        ConfigError: it failed, with the last line of what it said, or took too long.
    """
    request = {"values": dict(run.resolved), "plugins": run.resolved.get("plugins")}
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        answer, said = _heard(process, json.dumps(request), doing, most_seconds)
    if process.returncode != 0:
        last = (said.strip().splitlines() or ["nothing was said"])[-1]
        raise ConfigError(f"{doing} fails: {last}")
    return json.loads(answer.strip().splitlines()[-1])


def _heard(
    process: subprocess.Popen[str], request: str, doing: str, most_seconds: float
) -> tuple[str, str]:
    """Both outputs of a process that has ended."""
    began, given = time.perf_counter(), request
    while True:
        try:
            return process.communicate(given or None, timeout=WORD_SECONDS)
        except subprocess.TimeoutExpired:
            given = ""  # communicate goes on with what it was given first
        seconds = time.perf_counter() - began
        if seconds > most_seconds:
            process.kill()
            raise ConfigError(
                f"{doing} took longer than {most_seconds:.0f} s. Try again when the machine is "
                "less busy, or plan by arithmetic: plan=arithmetic."
            )
        print(f"{doing}, {seconds:.0f} s (kernels are compiled at first)", file=sys.stderr)
