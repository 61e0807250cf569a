"""The pit in 3D with PyVista, an extra (`pip install .[viz]`): a mesh, or a picture of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing
from frugal_rl.run.disk import finished_or_absent
from mine_rl_npv.tools.views import COLOURS, period_grid

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance


def solid_mesh(instance: Instance, period: np.ndarray) -> Any:
    """Cells of the mined blocks with their periods, as a PyVista grid.

    Args:
        instance: the mine.
        period: (n,) of each block, -1 unmined.

    Raises:
        ConfigError: PyVista is not installed.
    """
    try:
        import pyvista
    except ImportError as error:
        raise ConfigError(
            "Without PyVista, voxels.png shows the same mine, drawn by matplotlib; the solid view "
            f"needs it: {installing('viz')}"
        ) from error
    grid = period_grid(instance, period)
    box = pyvista.ImageData(dimensions=np.array(grid.shape) + 1)
    box.cell_data["period"] = np.nan_to_num(grid, nan=-1.0).ravel(order="F")
    return box.threshold(0, scalars="period")


def save_solid(instance: Instance, period: np.ndarray, path: str | Path) -> Path:
    """Writes a picture, the near quarter cut away, for `.png`; the mesh for ParaView for `.vtu`."""
    path = Path(path)
    mesh = solid_mesh(instance, _opened(instance, period) if path.suffix == ".png" else period)
    with finished_or_absent(path) as part:
        if path.suffix == ".png":
            _photograph(mesh, part)
        else:
            mesh.save(str(part))
    return path


def _photograph(mesh: Any, path: Path) -> None:
    import pyvista

    plotter = pyvista.Plotter(off_screen=True, window_size=(900, 700))
    bar = {"vertical": True, "position_x": 0.88, "position_y": 0.3, "fmt": "%.0f"}
    plotter.add_mesh(mesh, scalars="period", cmap=COLOURS, show_edges=True, scalar_bar_args=bar)
    plotter.screenshot(str(path))
    plotter.close()


def _opened(instance: Instance, period: np.ndarray) -> np.ndarray:
    """The periods without the quarter that hides the rest from the camera's place."""
    x, y, _ = instance.position.T
    near = (x > instance.position[:, 0].max() / 2) & (y > instance.position[:, 1].max() / 2)
    return np.where(near, -1, period)
