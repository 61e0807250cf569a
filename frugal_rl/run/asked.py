"""What a process that measures is asked by `frugal_rl.memory.child.ask_child`."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from frugal_rl.run.compose import run_from
from frugal_rl.vec_env.following import once_gone

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


def asked() -> dict[str, Any]:
    """The request on standard input: values of a run, its plug-ins.

    From here on this process is told to stop once the one that asked is gone, however that ended:
    nobody would hear the answer.
    """
    request: dict[str, Any] = json.load(sys.stdin)
    once_gone(request["parent"], partial(os.kill, os.getpid(), signal.SIGTERM))
    return request


def asked_run() -> RunConfig:
    """The run of the request.

    Raises:
        FrugalError: it is refused.
    """
    request = asked()
    return run_from(request["values"], plugins=tuple(request["plugins"] or ()))
