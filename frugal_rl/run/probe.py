"""What the learner holds per sample, measured in a throw-away process. Imports no torch itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from frugal_rl.errors import ConfigError
from frugal_rl.memory.probe import Probe
from frugal_rl.run.config import RunConfig

TIMEOUT_SECONDS = 300


def probe_update(run: RunConfig) -> Probe:
    """The run's learner, measured in a throw-away process.

    Raises:
        ConfigError: the run is refused, in the words of whoever refused it; or the process failed,
            with the last line of what it said.
    """
    request = {"values": dict(run.resolved), "plugins": run.resolved.get("plugins")}
    done = subprocess.run(
        [sys.executable, "-m", "frugal_rl.run.probe_process"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise ConfigError(f"The learner cannot be probed: {said}")
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    if "refused" in answer:
        raise ConfigError(answer["refused"])
    return Probe(**answer)
