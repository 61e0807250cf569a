"""A digest of what a run has learned, to tell whether two runs ended bit for bit alike."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from frugal_rl.run.checkpoints import load_checkpoint


def parameter_digest(folder: Path) -> str:
    """SHA-256 of all weights in a run folder's last checkpoint, by name."""
    digest = hashlib.sha256()
    policy = load_checkpoint(folder)["learner"]["policy"]
    for name in sorted(policy):
        values = np.ascontiguousarray(policy[name].numpy(force=True))
        digest.update(f"{name} {values.dtype} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
