"""What a process that measures is asked by `frugal_rl.memory.child.ask_child`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

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


def asked_run(measured: bool = True) -> RunConfig:
    """The run of the request; one that is `measured` computes on a device of this machine.

    Raises:
        FrugalError: it is refused.
    """
    request = asked()
    values = request["values"]
    if measured:
        hardware = values["hardware"]
        values |= {"hardware": {**hardware, "device": device_here(hardware["device"])}}
    return run_from(values, plugins=tuple(request["plugins"] or ()))
