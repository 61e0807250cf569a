"""TensorBoard event files in the run folder, where `tracking.tensorboard` asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing
from frugal_rl.report.files import TENSORBOARD


class TensorBoard:
    """Scalars by our own step."""

    name = "TensorBoard"

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                f"tracking.tensorboard=true needs the package tensorboard: {installing('profile')}"
            ) from error
        self.writer = SummaryWriter(str(folder / TENSORBOARD))

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at one step of the run."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def summary(self, values: Mapping[str, Any]) -> None:
        """Curves only."""

    def file(self, path: Path) -> None:
        """Curves only."""

    def close(self) -> None:
        """Write what is left."""
        self.writer.close()
