"""Levels seen in a mirror: left and right exchanged in tiles, entities and turning senses."""

from __future__ import annotations

import numpy as np

from nclone.geometry import MIRRORED
from nclone.levels import format as fmt

_ORIENTATIONS = np.array([4, 3, 2, 1, 0, 7, 6, 5], np.uint8)
_ORIENTED = (5, 6, 8, 10, 11, 14, 20, 26, 28)
_DRONE_MODES = np.array([1, 0, 3, 2], np.uint8)
"""A drone that prefers right turns becomes one that prefers left turns."""


def mirror_level(data: bytes) -> bytes:
    """The bytes of the mirrored level; mirroring twice gives the same bytes again.

    Tile types above 37 contribute nothing and stay; positions must lie inside the map.
    """
    out = np.frombuffer(data, np.uint8).copy()
    tiles = out[fmt.TILES_AT : fmt.COUNTS_AT].reshape(fmt.PLAYABLE_ROWS, fmt.PLAYABLE_COLUMNS)
    table = np.arange(256, dtype=np.uint8)
    table[: len(MIRRORED)] = MIRRORED
    tiles[:] = table[tiles[:, ::-1]]
    whole = len(out) - (len(out) - fmt.RECORDS_AT) % fmt.RECORD_BYTES
    records = out[fmt.RECORDS_AT : whole].reshape(-1, fmt.RECORD_BYTES)
    records[:, 1] = fmt.MAX_X_UNITS - records[:, 1]
    turned = np.isin(records[:, 0], _ORIENTED) & (records[:, 3] < 8)
    records[turned, 3] = _ORIENTATIONS[records[turned, 3]]
    drones = np.isin(records[:, 0], (14, 26)) & (records[:, 4] < 4)
    records[drones, 4] = _DRONE_MODES[records[drones, 4]]
    return out.tobytes()
