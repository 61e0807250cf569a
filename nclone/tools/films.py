"""What playing and watching refuse alike, before a window or a film is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError
from nclone.render.export import check_film

if TYPE_CHECKING:
    from frugal_rl.run.play import PlayOptions


def check_options(options: PlayOptions) -> None:
    """Refuse what N++ has not, and films that cannot be written.

    Raises:
        ConfigError, DataError: naming the option.
    """
    if options.probe:
        raise ConfigError("probe=true looks into a Game Boy's memory; N++ has none.")
    if options.video:
        check_film(Path(options.video))
