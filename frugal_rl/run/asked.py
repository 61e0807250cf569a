"""What a process that measures is asked by `frugal_rl.memory.child.ask_child`."""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from frugal_rl.memory.machine import device_here
from frugal_rl.run.compose import run_from
from frugal_rl.run.signals import stop_with

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


def asked() -> dict[str, Any]:
    """The request on standard input: values of a run, its plug-ins.

    From here on this process is told to stop once the one that asked is gone, however that ended:
    nobody would hear the answer.
    """
    request: dict[str, Any] = json.load(sys.stdin)
    stop_with(request["parent"])
    return request


def asked_run() -> RunConfig:
    """The run of the request, on a device of this machine.

    Raises:
        FrugalError: it is refused.
    """
    request = asked()
    values = request["values"]
    hardware = values["hardware"]
    values |= {"hardware": {**hardware, "device": device_here(hardware["device"])}}
    return run_from(values, plugins=tuple(request["plugins"] or ()))


def end_with(main: Callable[[], object]) -> NoReturn:
    """Answer, and be gone: to take torch apart in good order needs a second of whoever waits."""
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(0)
