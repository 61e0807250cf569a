"""What playing and watching refuse alike, before a window or a film is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError
from frugal_rl.report.film import check_film
from frugal_rl.run.play import Probe

if TYPE_CHECKING:
    from frugal_rl.run.play import PlayOptions


def check_options(options: PlayOptions) -> None:
    """Refuse what N++ has not, and films that cannot be written.

    Raises:
        ConfigError, DataError: naming the option.
    """
    if options.probe is not Probe.off:
        raise ConfigError(
            f"probe={options.probe.name} looks into a Game Boy's memory; N++ has none."
        )
    if options.report and not options.checkpoint:
        raise ConfigError("report=FOLDER tells how a policy fares: name it by checkpoint=RUN.")
    if options.report and (options.video or options.record):
        raise ConfigError("report=FOLDER films and records every level; leave out the other.")
    if options.video:
        check_film(Path(options.video))
