"""Thin the golden trajectories to a file small enough for the repository.

Usage: python tests/data/nclone/thin_golden.py ../shared/data/nclone/golden_dev

Kept of each `plain` recording: level and inputs whole, every 16th frame and the last of the
floating-point arrays, and one digest of the complete integer arrays (states, flags, gold,
entity states).
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

STRIDE = 16
INTEGERS = ("i", "gold", "es")


def kept_frames(frames: int) -> np.ndarray:
    """Columns that are kept of a recording of `frames` frames."""
    return np.unique(np.append(np.arange(0, frames + 1, STRIDE), frames))


def main(folder: Path) -> None:
    """Write golden.npz beside this file."""
    meta, parts = [], {key: [] for key in ("map", "actions", "f", "ep", "mov")}
    for path in sorted(folder.glob("*.npz")):
        z = np.load(path)
        for entry in json.loads(str(z["_meta"])):
            name = entry["name"]
            profile = "plain" if f"{name}/plain_f" in z else "ref"
            f, ep = z[f"{name}/{profile}_f"], z[f"{name}/{profile}_ep"]
            frames = f.shape[1] - 1
            digest = hashlib.blake2b(digest_size=16)
            for key in INTEGERS:
                digest.update(np.ascontiguousarray(z[f"{name}/{profile}_{key}"]).tobytes())
            hor, jump = z[f"{name}/hor"][:frames], z[f"{name}/jump"][:frames]
            keep = kept_frames(frames)
            rows = {
                "map": z[f"{name}/map"],
                "actions": (np.where(hor < 0, 1, np.where(hor > 0, 2, 0)) + 3 * jump).astype(
                    np.uint8
                ),
                "f": f[:, keep],
                "ep": ep[:, :, keep],
                "mov": z[f"{name}/mov"],
            }
            sizes = {key: len(rows[key]) for key in ("map", "mov")}
            meta.append({"name": name, "frames": frames, "digest": digest.hexdigest(), **sizes})
            for key, value in rows.items():
                parts[key].append(value.ravel())
    arrays = {key: np.concatenate(values) for key, values in parts.items()}
    target = Path(__file__).with_name("golden.npz")
    np.savez_compressed(target, _meta=json.dumps(meta), **arrays)
    print(f"{len(meta)} trajectories, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
