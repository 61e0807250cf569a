"""A rollout of 128 x 512 graph observations: refused when dense, run for real when stored once.

    python benchmarks/rollout_graphs.py [--levels 256] [--markdown FILE]

1. the plan of the dense form, and its refusal; 2. a rollout of N++ with `env.obs=graph` on that
many levels by random play, with what is allocated for rows and tables; 3. a smaller rollout beside
Stable-Baselines3's `DictRolloutBuffer` on the same steps: every key of every sample equal; 4. time
to draw a minibatch of 2,048 from both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import torch
from stable_baselines3.common.buffers import DictRolloutBuffer

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.observation.decoder import Decoder
from frugal_rl.observation.distinct import distinct
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run
from frugal_rl.store.dense import DenseMinibatch
from frugal_rl.store.rollout import RolloutBuffer
from nclone.levels.sources import open_levels

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

CATEGORIES = (
    "simplest", "simplest_few_mines", "simplest_with_mines", "simpler", "simple", "medium",
    "complex", "exploration", "mine_heavy",
)  # fmt: skip
WORDS = ["env=nclone", "env.obs=graph", "tracking=disabled"]
BATCH = 2048
PIECES = 4
"""SB3's minibatch is drawn in pieces, as 2,048 dense samples and their copies are 11 GB."""
GRAPH = ("graph_node_feats", "graph_edge_index", "graph_edge_feats", "graph_node_types")


def run_of(memory: str, envs: int, steps: int, *words: str) -> RunConfig:
    sizes = [f"algo.num_envs={envs}", f"algo.n_steps={steps}", f"algo.batch_size={BATCH}"]
    return compose_run([*WORDS, f"memory={memory}", *sizes, *words])


def refused() -> list[str]:
    """What the plan says of the dense form."""
    run = run_of("baseline", 128, 512)
    try:
        plan_memory(run)
        words = "NOT refused"
    except MemoryBudgetError as error:
        words = f"refused: {error}"
    dense = draw_up(run).rollout_bytes
    return [f"dense 128 x 512: {dense / 1e9:.1f} GB predicted; {words}"]


class Played:
    """Random play of N environments, written into a rollout."""

    def __init__(self, run: RunConfig, envs: int, steps: int) -> None:
        self.run, self.envs, self.steps = run, envs, steps
        encoding = run.encoding()
        self.env: Any = run.env.make_vec(envs, encoding, run.memory, run.vec, "train")
        self.buffer = RolloutBuffer(
            steps, encoding.policy_space(), self.env.action_space, "cpu", n_envs=envs,
            encoding=encoding, reuse=True,
        )  # fmt: skip
        self.history = History(encoding, envs)

    def play(self, each: Callable[[int, dict[str, np.ndarray]], None] = lambda t, rows: None):
        """Random actions; `each` is shown the rows of every step."""
        rng, zeros = np.random.default_rng(0), np.zeros(self.envs, np.float32)
        shown = self.history.reset(self.env.reset(0))
        for t in range(self.steps):
            self.buffer.add(shown, zeros, zeros, zeros, zeros, zeros)
            each(t, shown)
            step = self.env.step(rng.integers(0, 6, self.envs))
            shown, _ = self.history.push(step.rows, step.done)


def real(levels: list[str]) -> tuple[Played, list[str]]:
    """128 x 512 steps on many levels."""
    run = run_of("lossless", 128, 512, f"env.levels=[{','.join(levels)}]")
    before = psutil.Process().memory_info().rss
    played = Played(run, 128, 512)
    began = time.perf_counter()
    played.play()
    seconds = time.perf_counter() - began
    grown = psutil.Process().memory_info().rss - before
    tables, rows = played.env.tables, played.buffer.nbytes
    graphs, content = len(tables["graph"]), len(tables["level"])
    total = rows + tables.nbytes
    return played, [
        f"lossless 128 x 512 on {content} levels, {graphs} distinct graphs, in {seconds:.0f} s: "
        f"rollout {rows / 1e6:.1f} MB ({rows / 65536:.0f} B per transition), tables "
        f"{tables.nbytes / 1e6:.1f} MB, together {total / 1e9:.3f} GB; the process grew by "
        f"{grown / 1e9:.3f} GB, simulators included",
        f"predicted rollout {draw_up(run).rollout_bytes / 1e6:.1f} MB: "
        f"{'equal' if draw_up(run).rollout_bytes == rows else 'NOT equal'} to the byte",
    ]


def beside_sb3(levels: list[str]) -> tuple[DictRolloutBuffer, list[str]]:
    """The same 512 transitions stored by us and densely by SB3."""
    run = run_of("lossless", 16, 32, f"env.levels=[{','.join(levels[:8])}]")
    played = Played(run, 16, 32)
    space = run.env.spec().observation_space
    dense = DictRolloutBuffer(32, space, played.env.action_space, "cpu", n_envs=16)
    zeros, nothing = np.zeros(16, np.float32), torch.zeros(16)

    def keep(t: int, rows: dict[str, np.ndarray]) -> None:
        observed = decode(played.buffer.encoding, rows, played.env.tables)
        dense.add(observed, zeros, zeros, zeros, nothing, nothing)

    played.play(keep)
    minibatch, same = DenseMinibatch(played.buffer, played.env.tables, 128), True
    np.random.seed(0)  # noqa: NPY002 - SB3's stream of random numbers
    order = np.random.permutation(512)  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    keys = 0
    for place, batch in enumerate(dense.get(128)):
        ours = minibatch.draw(order[128 * place : 128 * (place + 1)])
        for name, values in batch.observations.items():
            keys += 1
            same &= np.array_equal(ours[name], values.numpy())
        same &= set(ours) == set(batch.observations)
    words = f"16 x 32 beside DictRolloutBuffer: {keys} arrays of 128 samples "
    return dense, [words + ("equal bit for bit" if same else "NOT equal")]


def milliseconds(call: Callable[[], Any], times: int) -> float:
    call()
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e3


def draw_times(played: Played, dense: DictRolloutBuffer) -> list[str]:
    """A minibatch of 2,048 from both."""
    rng = np.random.default_rng(0)
    indices = rng.permutation(128 * 512)[:BATCH]
    decoder = Decoder(played.buffer.encoding, played.env.tables)

    def as_read() -> Any:
        """Rows, and each distinct graph once, as a graph network reads them."""
        fields = decoder(played.buffer.samples(indices, BATCH).observations)
        ids, _ = distinct(fields["graph_id"])
        return [fields.tables["graph"].ragged(name, ids) for name in GRAPH]

    def by_sb3() -> None:
        for _ in range(PIECES):
            dense._get_samples(rng.integers(0, 512, BATCH // PIECES))

    rows = milliseconds(lambda: played.buffer.samples(indices, BATCH), 20)
    read = milliseconds(as_read, 10)
    sb3 = milliseconds(by_sb3, 2)
    return [
        f"2,048 samples: SB3 {sb3:,.0f} ms; ours as rows {rows:.2f} ms ({sb3 / rows:,.0f} times "
        f"as fast), with every distinct graph gathered {read:.2f} ms ({sb3 / read:,.0f} times)"
    ]


def chosen_levels(count: int, folder: Path) -> list[str]:
    """Files of that many distinct levels, equally many of each category."""
    pools: list[Any] = [open_levels([name]) for name in CATEGORIES]
    files: dict[str, Path] = {}
    for level in (level for row in zip(*pools, strict=False) for level in row):
        if len(files) < count:
            files[level.key] = folder / f"{level.key}.map"
            files[level.key].write_bytes(level.map_data)
    return [str(file) for file in files.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", type=int, default=256)
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = refused()
    print(*lines, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        played, said = real(chosen_levels(args.levels, Path(folder)))
    print(*said, sep="\n", flush=True)
    dense, equal = beside_sb3(["walk", "jump", "mines", "long_maze", "slope", "thwump", "fall"])
    print(*equal, sep="\n", flush=True)
    drawn = draw_times(played, dense)
    print(*drawn, sep="\n", flush=True)
    if args.markdown:
        page = [f"- {line}" for line in (*lines, *said, *equal, *drawn)]
        head = "# Graph observations, 128 x 512\n\n`python benchmarks/rollout_graphs.py`, 1 thread"
        args.markdown.write_text("\n".join([head, "", *page, ""]))


if __name__ == "__main__":
    main()
