"""What the learner holds per sample, measured in a throw-away process. Imports no torch itself."""

from __future__ import annotations

from frugal_rl.errors import ConfigError
from frugal_rl.memory.child import ask_child
from frugal_rl.memory.probe import Probe
from frugal_rl.run.config import RunConfig


def probe_update(run: RunConfig) -> Probe:
    """The run's learner, measured in a throw-away process.

    Raises:
        ConfigError: the run is refused, in the words of whoever refused it; or the process failed,
            with the last line of what it said.
    """
    answer = ask_child("frugal_rl.run.probe_process", run, "Measuring the learner")
    if "refused" in answer:
        raise ConfigError(answer["refused"])
    return Probe(**answer)
