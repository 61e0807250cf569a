"""Synthetic porphyry deposits of any size from a seed, as block models and as instances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.ranges import between
from mine_rl_npv.data.block_model import BlockModel
from mine_rl_npv.data.economics import Economics, MinePlan, model_instance

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance

ndimage = Late("scipy.ndimage")


@dataclass(frozen=True)
class Deposit:
    """One porphyry copper deposit. Depth is counted from the top bench downward."""

    nx: int = 40
    ny: int = 40
    nz: int = 20
    seed: int = 42
    lobes: Annotated[int, between(0, 1000)] = 3
    """Bodies of high copper grade around the centre."""
    richness: float = 1.0
    """Multiplies the copper grade."""
    noise: float = 0.2
    """Copper grade noise, per cent."""
    relief: float = 0.0
    """Share of the benches that the ground surface varies by; cells above it are air."""
    block_metres: tuple[float, float, float] = (20.0, 20.0, 15.0)
    density: float = 2.5
    """Tonnes per cubic metre."""

    def __post_init__(self) -> None:
        if min(self.nx, self.ny, self.nz) < 2:
            raise ConfigError(
                f"A deposit of {self.nx} x {self.ny} x {self.nz} is too small; use 2 or more."
            )


def block_model(deposit: Deposit) -> BlockModel:
    """Grows a deposit: lobes of copper, molybdenum, minerals, clays, hardness and recovery.

    Laws of the predecessor's generator (specification A8), with depth pointing down, lobes placed
    by the seed and tonnage by density.
    """
    rng = np.random.default_rng(deposit.seed)
    shape = (deposit.nx, deposit.ny, deposit.nz)
    x, y, z = np.meshgrid(*(np.arange(n, dtype=np.float64) for n in shape), indexing="ij")
    depth = deposit.nz - 1 - z
    copper = _copper(deposit, rng, x, y, depth)
    grades = _assays(deposit, rng, copper, x, y, depth)
    solid = depth >= _surface(deposit, rng)[:, :, None]
    cell = np.argwhere(solid).astype(np.int32)
    tonnes = float(np.prod(deposit.block_metres)) * deposit.density
    columns = {name: values[solid] for name, values in grades.items()}
    columns["ton"] = np.full(len(cell), tonnes)
    return BlockModel(cell - cell.min(axis=0), columns, deposit.block_metres, (0.0, 0.0, 0.0))


def _copper(
    deposit: Deposit, rng: np.random.Generator, x: np.ndarray, y: np.ndarray, depth: np.ndarray
) -> np.ndarray:
    span = min(deposit.nx, deposit.ny)
    centre = np.array([deposit.nx, deposit.ny]) / 2 + rng.normal(0, 0.06 * span, 2)
    copper = 1.5 * _blob(x, y, centre, 0.27 * span) * np.exp(-depth / max(deposit.nz, 2))
    for _ in range(deposit.lobes):
        place = centre + rng.normal(0, 0.2 * span, 2)
        middle = rng.uniform(0.1, 0.8) * deposit.nz
        height = rng.uniform(0.15, 0.4) * deposit.nz
        body = _blob(x, y, place, rng.uniform(0.1, 0.22) * span)
        copper += rng.uniform(0.5, 1.1) * body * np.exp(-(((depth - middle) / height) ** 2))
    noise = ndimage.gaussian_filter(rng.standard_normal(copper.shape), 1.5)
    noise *= deposit.noise / noise.std()
    return np.clip(deposit.richness * copper + noise, 0.0, 3.0)


def _blob(x: np.ndarray, y: np.ndarray, centre: np.ndarray, radius: float) -> np.ndarray:
    return np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / radius**2)


def _surface(deposit: Deposit, rng: np.random.Generator) -> np.ndarray:
    """Depth (nx, ny) at which the ground begins."""
    rough = rng.standard_normal((deposit.nx, deposit.ny))
    hills = ndimage.gaussian_filter(rough, 0.15 * deposit.nx)
    hills = (hills - hills.min()) / max(np.ptp(hills), 1e-12)
    return np.floor(hills * deposit.relief * (deposit.nz - 1))


def _assays(
    deposit: Deposit,
    rng: np.random.Generator,
    cu: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    depth: np.ndarray,
) -> dict[str, np.ndarray]:
    shape, top = cu.shape, np.exp(-depth / 8.0)
    centre = np.array([deposit.nx, deposit.ny]) / 2
    smooth = ndimage.gaussian_filter(rng.standard_normal(shape), 1.0)
    mo = 0.3 * _blob(x, y, centre, 10.0) * np.exp(-((depth - 8) ** 2) / 144) + 0.05 * smooth
    mo = np.clip(mo, 0.0, 0.5)
    arsenic = np.minimum(0.01 * (cu + 2 * mo) + rng.exponential(0.005, shape), 0.2)
    clays = np.clip(2 + 8 * top * np.exp(-5 / 8) + rng.normal(0, 2, shape), 0, 20)
    return {
        "cu": cu,
        "mo": mo,
        "as": arsenic,
        "clays": clays,
        "bwi": np.clip(15 - 2 * cu + 0.2 * clays + rng.normal(0, 1.5, shape), 8, 25),
        "rec": np.clip(90 - 0.5 * clays - 50 * arsenic + 5 * cu + rng.normal(0, 5, shape), 50, 95),
        "chalcocite": 0.5 * cu * np.exp(-depth / 10) + rng.exponential(0.1, shape),
        "bornite": 0.3 * cu * np.exp(-((depth - 5) ** 2) / 64) + rng.exponential(0.05, shape),
        "chalcopyrite": 0.8 * cu * (1 - np.exp(-depth / 10)) + rng.exponential(0.1, shape),
        "tennantite": 0.2 * cu * (1 - depth / shape[2]) + rng.exponential(0.02, shape),
        "molibdenite": 0.6 * mo + rng.exponential(0.05, shape),
        "pyrite": 1 + 2 * cu + rng.exponential(0.5, shape),
    }


def deposit_instance(
    deposit: Deposit, economics: Economics | None = None, plan: MinePlan | None = None
) -> Instance:
    """The deposit as a scheduling instance named after its size and seed."""
    name = f"porphyry_{deposit.nx}x{deposit.ny}x{deposit.nz}_{deposit.seed}"
    return model_instance(block_model(deposit), economics, plan, name)


def varied_instance(seed: int, smallest: int = 10, largest: int = 20) -> Instance:
    """A deposit whose size, geology, slopes, capacities and discount rate all follow the seed.

    Meant for training policies that must work on mines they never saw: like real ones, some
    hold as much waste as ore, lie on a hillside, or end long before their last period.
    """
    rng = np.random.default_rng([seed, 77])
    nx, ny = rng.integers(smallest, largest + 1, 2)
    deposit = Deposit(
        int(nx),
        int(ny),
        int(rng.integers(6, 18)),
        seed,
        int(rng.integers(1, 5)),
        float(rng.uniform(0.4, 1.0)),
        float(rng.uniform(0.05, 0.35)),
        float(rng.choice([0.0, 0.3, 0.7])),
    )
    economics = Economics(
        copper_price=float(rng.uniform(1.0, 2.4)),
        molybdenum_price=float(rng.uniform(0, 5)),
        mining_cost=float(rng.uniform(1.0, 3.5)),
    )
    plan = MinePlan(
        periods=int(rng.integers(6, 21)),
        rate=float(rng.uniform(0.07, 0.16)),
        pattern=str(rng.choice(["5", "9", "1-5-9", "slope", "slope"])),
    )
    instance = deposit_instance(deposit, economics, plan)
    high = instance.high.copy()
    high[0] = np.ceil(high[0] * rng.choice([0.9, 1.0, 1.3, 2.0, 8.0]))
    high[1] = np.ceil(high[1] * rng.uniform(0.8, 1.3))
    high = np.ceil(high * rng.choice([1.0, 1.0, 1.5, 2.5]))
    return replace(instance, high=high, name=f"varied_{seed}")
