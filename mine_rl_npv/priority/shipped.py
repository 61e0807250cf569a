"""Priority policies that come with the package: learned on synthetic deposits, tried on any mine.

`python benchmarks/mine_quality.py zero-shot DIR/NAME --no-lp --hidden 4 --seconds 180 --seeds 1
--save FILE` learned them, six on 40 small deposits grown from seeds; DIR/NAME is only tried.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from mine_rl_npv.priority.features import GEOLOGY
from mine_rl_npv.priority.policy import PriorityNet

PATH = Path(__file__).resolve().parents[1] / "data/zero_shot.json"


def shipped_orders(features: np.ndarray) -> dict[str, np.ndarray]:
    """Priorities (m,) of each policy by name.

    Args:
        features: (m, F) float32 of `block_features`; those of a relaxation are not looked at.
    """
    net, policies = shipped_policies()
    seen = np.ascontiguousarray(features[:, : net.features])
    return {f"zero-shot {k + 1}": net.scores(w, seen) for k, w in enumerate(policies)}


@cache
def shipped_policies() -> tuple[PriorityNet, np.ndarray]:
    """The network, and the weights (policies, size) float64."""
    told = json.loads(PATH.read_text(encoding="utf-8"))
    assert told["features"] == list(GEOLOGY)  # a test sees to it when features change
    net = PriorityNet(len(GEOLOGY), int(told["hidden"]))
    return net, np.array(told["weights"])


def write_policies(path: Path, net: PriorityNet, policies: Sequence[np.ndarray]) -> None:
    """Writes weights as the package carries them: six digits each, a policy to a line."""
    rows = ",\n".join(json.dumps([float(f"{w:.6g}") for w in policy]) for policy in policies)
    head = f'"features": {json.dumps(GEOLOGY)},\n"hidden": {net.hidden}'
    path.write_text(f'{{{head},\n"weights": [\n{rows}\n]}}\n', encoding="utf-8")
