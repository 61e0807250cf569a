"""Equally likely grade models, conditioned to drillholes.

Gaussian fields by FFT moving average, correlated through a Cholesky factor, are added to the
simple-kriging estimate of the drillhole residuals in normal-score space; every realisation honours
the holes and the model's own histogram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.late import Late

if TYPE_CHECKING:
    from mine_rl_npv.data.block_model import BlockModel

linalg, special = Late("scipy.linalg"), Late("scipy.special")
distance = Late("scipy.spatial.distance")
CORRELATED = ("cu", "mo", "as")


def gaussian_fields(
    shape: Sequence[int], ranges: Sequence[float], count: int, rng: np.random.Generator
) -> np.ndarray:
    """Independent standard Gaussian fields (count, nx, ny, nz) with covariance exp(-3 h^2).

    Args:
        shape: cells.
        ranges: practical range in cells along each axis.
        count: number of fields.
        rng: source of randomness.
    """
    padded = [int(n + 2 * np.ceil(r)) for n, r in zip(shape, ranges, strict=True)]
    axes = [
        np.minimum(np.arange(n), n - np.arange(n)) / r for n, r in zip(padded, ranges, strict=True)
    ]
    distance = np.add.outer(np.add.outer(axes[0] ** 2, axes[1] ** 2), axes[2] ** 2)
    spectrum = np.maximum(np.fft.fftn(np.exp(-3 * distance)).real, 0.0)
    root = np.sqrt(spectrum)
    part = tuple(slice(0, n) for n in shape)
    return np.stack(
        [
            np.fft.ifftn(np.fft.fftn(rng.standard_normal(padded)) * root).real[part]
            for _ in range(count)
        ]
    )


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Values (n,) -> standard normal scores by rank."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return special.ndtri((ranks + 0.5) / len(values))


def realised_models(
    model: BlockModel,
    count: int,
    seed: int,
    spacing: int = 5,
    ranges: Sequence[float] = (6.0, 6.0, 3.0),
) -> Iterator[BlockModel]:
    """Realisations of the grades in `CORRELATED`, one by one; other columns stay as they are.

    Args:
        model: the reference; its columns at every `spacing`-th x and y are the drillholes.
        count: realisations.
        seed: of all fields.
        spacing: cells between drillholes.
        ranges: correlation ranges in cells.

    Yields:
        Models whose values at the drillholes equal the reference's.
    """
    rng = np.random.default_rng(seed)
    names = [name for name in CORRELATED if name in model.columns]
    place = tuple(model.cell.T)
    holes = drillholes(model, spacing)
    scores = np.stack([normal_scores(model.columns[name]) for name in names])
    factor = np.linalg.cholesky(np.corrcoef(scores) + 1e-9 * np.eye(len(names)))
    solve, cross = _kriging(model.cell, holes, ranges)
    for _ in range(count):
        fields = np.tensordot(factor, gaussian_fields(model.shape, ranges, len(names), rng), 1)
        simulated = fields[(slice(None), *place)]
        residual = scores[:, holes] - simulated[:, holes]
        conditioned = simulated + (cross @ solve(residual.T)).T
        columns = dict(model.columns)
        for name, score in zip(names, conditioned, strict=True):
            columns[name] = _back(model.columns[name], score, holes)
        yield replace(model, columns=columns)


def drillholes(model: BlockModel, spacing: int) -> np.ndarray:
    """Ids of the blocks in every `spacing`-th column along x and y."""
    first = spacing // 2
    x, y = model.cell[:, 0], model.cell[:, 1]
    return np.flatnonzero((x % spacing == first) & (y % spacing == first))


def _kriging(cell: np.ndarray, holes: np.ndarray, ranges: Sequence[float]):
    """Solver for residual weights at holes, and covariances (n, holes) to every block."""
    scaled = cell / np.asarray(ranges, float)
    near = np.exp(-3 * distance.cdist(scaled[holes], scaled[holes], "sqeuclidean"))
    factor = linalg.cho_factor(near + 1e-6 * np.eye(len(holes)))
    cross = np.exp(-3 * distance.cdist(scaled, scaled[holes], "sqeuclidean")).astype(np.float32)
    return lambda residual: linalg.cho_solve(factor, residual), cross


def _back(reference: np.ndarray, score: np.ndarray, holes: np.ndarray) -> np.ndarray:
    """Scores to values with the reference's histogram; drillholes keep their own values."""
    ordered = np.sort(reference)
    values = ordered[np.argsort(np.argsort(score, kind="stable"), kind="stable")]
    values = values.copy()
    values[holes] = reference[holes]
    return values


def value_of_information(npv: np.ndarray) -> dict[str, float]:
    """Risk figures of plans (P) on realisations (R), npv (P, R).

    Returns:
        P10, P50, P90 of the best common plan, its mean, and the value of information: the mean of
        each realisation's best plan minus the mean of the best common plan.
    """
    common = npv[npv.mean(axis=1).argmax()]
    low, middle, high = np.percentile(common, [10, 50, 90])
    return {
        "p10": float(low),
        "p50": float(middle),
        "p90": float(high),
        "mean": float(common.mean()),
        "value_of_information": float(npv.max(axis=0).mean() - common.mean()),
    }
