"""What Hydra and OmegaConf do otherwise than users expect: errors as tracebacks, slow files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml  # type: ignore[import-untyped]

from frugal_rl.errors import DiskError, FrugalError
from frugal_rl.run.disk import disk_in_words


class Refused(BaseException):
    """Carries an error past Hydra, which reports every `Exception` itself."""

    def __init__(self, error: FrugalError) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def past_hydra(reporting: Any) -> Iterator[None]:
    """Let refusals through; what a disk does not take of Hydra's own files is one, too.

    Args:
        reporting: Hydra's module of the function `run_and_report`, which prints tracebacks.

    Raises:
        FrugalError: as it was refused.
    """
    real = reporting.run_and_report

    def run_and_report(call: Callable[[], Any]) -> Any:
        return real(lambda: _in_words(call))

    reporting.run_and_report = run_and_report
    try:
        yield
    except Refused as refused:
        raise refused.error from None
    finally:
        reporting.run_and_report = real


@contextmanager
def mode_known(composing: Any, mode: Any) -> Iterator[None]:
    """Let Hydra not compose everything once more only to read `hydra.mode` in it.

    Args:
        composing: Hydra's class of the method `get_mode`.
        mode: what it would read; None where no file sets it.
    """
    real = composing.get_mode
    composing.get_mode = lambda *_, **__: mode
    try:
        yield
    finally:
        composing.get_mode = real


def parse_by_libyaml(*users: Any) -> None:
    """Let OmegaConf parse files in C, where PyYAML was built with it: 0.8 of the time of composing.

    Args:
        users: OmegaConf's modules that know `get_yaml_loader`.
    """
    slow = yaml.SafeLoader
    try:
        yaml.SafeLoader = getattr(yaml, "CSafeLoader", slow)
        loader = users[0].get_yaml_loader()
    finally:
        yaml.SafeLoader = slow
    for user in users:
        user.get_yaml_loader = lambda: loader


def _in_words(call: Callable[[], Any]) -> Any:
    try:
        with disk_in_words():
            return call()
    except DiskError as error:
        raise Refused(error) from error
