"""Bytes of one observation and of a 128 x 512 rollout in every form, predicted and allocated.

    python benchmarks/npp_rl_bytes.py

Forms whose rollout is larger than `--allocate-gib` are allocated at 1 / 512 of the steps, and both
numbers are of that size; the prediction for the whole follows from the same arithmetic. The tables
are built from `--levels` distinct levels of the bundled pool, with both objectives of each.
"""

from __future__ import annotations

import argparse

import numpy as np

from frugal_rl.observation.choices import FrameStack, Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.store.layout import planned_bytes
from frugal_rl.store.rollout import RolloutBuffer
from nclone.config import NppConfig
from nclone.game import NppGame
from nclone.graph.fields import GRAPH_TABLE
from nclone.levels.generators import PLAIN
from nclone.spec import Observation

ENVS, STEPS = 128, 512
FORMS = {
    "dense (float32)": (Storage.dense, {}),
    "half floats": (Storage.half, {}),
    "dense, narrow integers": (Storage.dense, {"graph": "quantised"}),
    "half floats, narrow integers": (Storage.half, {"graph": "quantised"}),
    "ragged": (Storage.dense, {"graph": "ragged"}),
    "interned graph, rest dense": (Storage.dense, {"graph": "interned"}),
    "memory=lossless": (Storage.lossless, {}),
    "memory=smallest": (Storage.smallest, {}),
}


def encoding_of(storage: Storage, fields: dict[str, str]) -> tuple[NppConfig, Encoding]:
    config = NppConfig(obs=Observation.graph, fields=fields)
    chosen = dict(config.fields)
    if storage is Storage.half and fields:  # floats by the profile, integers by the group
        chosen = {k: v for k, v in chosen.items() if "feats" not in k}
    return config, Encoding.choose(config.spec(), storage, FrameStack.once, False, chosen)


def allocated(config: NppConfig, encoding: Encoding, steps: int) -> int:
    buffer = RolloutBuffer(
        steps, encoding.policy_space(), config.action_space(), n_envs=ENVS, encoding=encoding
    )
    return buffer.nbytes


def table_bytes(levels: int) -> tuple[int, int]:
    """Bytes and rows of the graph table with both objectives of each level."""
    config = NppConfig(obs=Observation.graph, levels=tuple(PLAIN), graphs_mib=1e6)
    chosen = config.open_levels("train")
    chosen = [chosen[int(i)] for i in np.linspace(0, len(chosen) - 1, levels)]
    game = NppGame(config, chosen, len(chosen), order="in turn")
    game.seed([np.random.default_rng(n) for n in range(len(chosen))])
    every = np.arange(len(chosen))
    game.begin(every)
    game.switch_hit[:] = True
    game._find_graphs(every)
    table = game.tables[GRAPH_TABLE]
    table.places(np.arange(len(table)))
    return table.nbytes, len(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--allocate-gib", type=float, default=1.0)
    parser.add_argument("--levels", type=int, default=256)
    args = parser.parse_args()
    print("| form | bytes per observation | rollout 128 x 512, GB | predicted | allocated |")
    print("|---|---|---|---|---|")
    for name, (storage, fields) in FORMS.items():
        config, encoding = encoding_of(storage, fields)
        space = config.action_space()
        whole = planned_bytes(encoding, STEPS, ENVS, space)
        steps = STEPS if whole < args.allocate_gib * 2**30 else 1
        predicted = planned_bytes(encoding, steps, ENVS, space)
        real = allocated(config, encoding, steps)
        size = "" if steps == STEPS else " (128 x 1)"
        print(
            f"| {name} | {encoding.row_bytes:,} | {whole / 1e9:.3f} "
            f"| {predicted:,}{size} | {real:,}{size} |",
            flush=True,
        )
    held, rows = table_bytes(args.levels)
    print(
        f"\nGraph table of {args.levels} levels: {rows} distinct graphs (both objectives of each), "
        f"{held / 1e6:.1f} MB allocated."
    )


if __name__ == "__main__":
    main()
