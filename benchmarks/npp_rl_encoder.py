"""What reading each distinct graph once saves: time and peak memory of a GCN, forward and backward.

    python benchmarks/npp_rl_encoder.py

Three ways to encode a minibatch: `padded` (4500 nodes and 18500 edges per sample, masked, messages
gathered per edge, as the predecessor does), `ragged` (true sizes, one graph per sample) and
`distinct` (each distinct graph once, gathered per sample). Each case runs in a process of its own;
its peak is counted above that process after imports. The padded form runs in pieces of 32 samples,
because a larger one does not fit; where more than `--pieces` of them would be needed, the time of
those that ran is multiplied, and the line says so.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import torch
from torch import Tensor

from frugal_rl.observation.mirror import TableMirror
from frugal_rl.observation.tables import StaticTable, TableField
from npp_rl.choices import GraphEncoding
from npp_rl.graphs.batches import EDGE_INDEX, NODE_FEATS, from_table, ragged_graphs
from npp_rl.graphs.encoders.gcn import MAX_NODES, Gcn

MAX_EDGES, PIECE = 18500, 32
ROWS, COLUMNS = 18, 25
WAYS = ("padded", "ragged", "distinct")


def lattice_edges() -> np.ndarray:
    """[e, 2] int32: a lattice of 450 nodes and 1714 directed edges, the size of a typical level."""
    node = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    pairs = np.concatenate(
        (
            np.stack((node[:, :-1].ravel(), node[:, 1:].ravel()), 1),
            np.stack((node[:-1].ravel(), node[1:].ravel()), 1),
        )
    )
    return np.concatenate((pairs, pairs[:, ::-1])).astype(np.int32)


def graph_table(graphs: int) -> TableMirror:
    rng = np.random.default_rng(0)
    fields = (
        TableField(NODE_FEATS, (MAX_NODES, 21), np.float32, ragged=True),
        TableField(EDGE_INDEX, (MAX_EDGES, 2), np.int16, ragged=True),
    )
    table = StaticTable("graph", fields)
    edges = lattice_edges().astype(np.int16)
    for g in range(graphs):
        feats = rng.uniform(-1, 1, (ROWS * COLUMNS, 21)).astype(np.float32)
        table.intern(g, lambda feats=feats: {NODE_FEATS: feats, EDGE_INDEX: edges})
    return TableMirror(table)


def padded_gcn(gcn: Gcn, table: TableMirror, ids: Tensor) -> Tensor:
    """The same network over padded tensors, a message per padded edge."""
    B = len(ids)
    nodes = table.ragged(NODE_FEATS, ids).padded(MAX_NODES).flatten(0, 1)
    ragged = table.ragged(EDGE_INDEX, ids)
    edges = ragged.padded(MAX_EDGES).long() + (torch.arange(B) * MAX_NODES)[:, None, None]
    real = (torch.arange(MAX_EDGES) < ragged.lengths[:, None]).flatten()[:, None].float()
    source, target = edges.flatten(0, 1).unbind(1)
    degree = torch.zeros(B * MAX_NODES).index_add(0, target, real[:, 0]).clamp(min=1)
    scale = degree.rsqrt()[:, None]
    h = gcn.input(nodes)
    for layer in gcn.layers:
        messages = (layer.linear(h) * scale)[source] * real
        h = torch.relu(layer.norm(h + torch.zeros_like(h).index_add(0, target, messages) * scale))
    sizes = table.ragged(NODE_FEATS, ids).lengths
    mask = (torch.arange(MAX_NODES) < sizes[:, None])[..., None]
    return gcn.output((h.view(B, MAX_NODES, -1) * mask).sum(1) / sizes[:, None])


def encode(way: str, gcn: Gcn, table: TableMirror, ids: Tensor) -> Tensor:
    if way == "padded":
        return padded_gcn(gcn, table, ids)
    own = torch.arange(len(ids))
    graphs = (
        ragged_graphs(table, ids, own, False) if way == "ragged" else from_table(table, ids, False)
    )
    pooled = gcn(graphs.nodes, graphs.edge_index, None, graphs.graph_of_node, graphs.num_graphs)[1]
    return pooled[graphs.graph_of_sample]


def run_case(way: str, batch: int, graphs: int, pieces: int, repeats: int) -> dict[str, float]:
    torch.manual_seed(0)
    table = graph_table(graphs)
    gcn = Gcn(GraphEncoding(layers=3, hidden=128, out=256), 21)
    ids = torch.from_numpy(np.random.default_rng(1).integers(0, graphs, batch))
    parts = ids.split(PIECE) if way == "padded" else [ids]
    done = parts[:pieces]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(repeats + (way != "padded")):
        gcn.zero_grad()
        start = time.perf_counter()
        for part in done:
            encode(way, gcn, table, part).square().mean().backward()
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "seconds": float(np.median(seconds[-repeats:])) * len(parts) / len(done),
        "peak_mib": peak / 1024,
        "scaled": float(len(parts) > len(done)),
        "distinct": float(len(torch.unique(ids))),
    }


def measured(way: str, batch: int, graphs: int, pieces: int) -> dict[str, float]:
    """The case in a process of its own."""
    repeats = 1 if way == "padded" else 5
    case = ["--case", way, str(batch), str(graphs), str(pieces), str(repeats)]
    done = subprocess.run([sys.executable, __file__, *case], check=True, capture_output=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 256, 2048])
    parser.add_argument("--graphs", type=int, nargs="+", default=[16, 128])
    parser.add_argument("--pieces", type=int, default=2, help="padded pieces that really run")
    parser.add_argument("--case", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        way, *numbers = args.case
        print(json.dumps(run_case(way, *(int(n) for n in numbers))))
        return
    print(
        f"GCN 3 x 128, forward and backward, {torch.get_num_threads()} threads, graphs of 450/1714"
    )
    print("| batch | distinct | way | seconds | peak MiB | times faster than padded |")
    print("|---|---|---|---|---|---|")
    for batch in args.batches:
        for graphs in args.graphs:
            base = 0.0
            for way in WAYS:
                r = measured(way, batch, graphs, args.pieces)
                base = base or r["seconds"]
                note = f" ({args.pieces} pieces of {PIECE}, scaled)" if r["scaled"] else ""
                print(
                    f"| {batch} | {r['distinct']:.0f} | {way} | {r['seconds']:.3f}{note} "
                    f"| {r['peak_mib']:.0f} | {base / r['seconds']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
