"""`memory=auto` at several budgets: what it chooses, what the run takes, and the same run again.

    python benchmarks/auto_budgets.py [--budgets 3.0 1.2 0.75 0.6] [--out FOLDER] [--markdown FILE]

Each budget is trained twice, each time in a process of its own: as `memory=auto`, and from the
explicit overrides that it wrote into its run folder. `again` is the peak of the second run, `same`
whether both ended with the same parameters. A finished run in FOLDER is not repeated.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from frugal_rl.memory.part import human
from frugal_rl.report.document import Document, TableBlock
from frugal_rl.report.results import RunResult
from frugal_rl.run.digest import parameter_digest

ROOT = Path(__file__).resolve().parents[1]
WORDS = (
    "env=toy tracking=disabled memory.allow=[lossless,precision,capacity] algo.num_envs=512 "
    "algo.n_steps=512 algo.batch_size=65536 algo.n_epochs=1 algo.total_steps=262144 "
    "evaluation.episodes=8 evaluation.num_envs=8"
)
COLUMNS = ("budget", "chosen", "label", "planned", "measured", "again", "below", "same")


def trained(words: list[str], folder: Path) -> RunResult:
    """A run in a process of its own, unless it was done before."""
    if not (folder / "report.json").is_file():
        script = str(ROOT / "scripts" / "train.py")
        command = [sys.executable, script, *words, f"hydra.run.dir={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
    return RunResult.read(folder)


def row(budget: float, out: Path) -> tuple[str, ...]:
    """One budget: chosen by `auto`, then repeated from the words that it wrote out."""
    words = [*WORDS.split(), "memory=auto", f"memory.budget_gib={budget:g}"]
    auto = trained(words, out / f"{budget:g}-auto")
    record = auto.config["auto"]
    again = trained(shlex.split(record["command"])[2:], out / f"{budget:g}-again")
    peaks = [r.summary["memory/peak_bytes"] for r in (auto, again)]
    chosen = [o for o in record["overrides"] if not o.startswith("memory.budget_gib")]
    digests = {parameter_digest(r.folder) for r in (auto, again)}
    return (
        f"{budget:g} GiB", " ".join(chosen), str(auto.plan["label"]),
        human(auto.plan["ram_bytes"]), *(human(p) for p in peaks),
        "yes" if max(peaks) < budget * 2**30 else "NO", "yes" if len(digests) == 1 else "NO",
    )  # fmt: skip


def main() -> None:
    """All budgets, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budgets", nargs="+", type=float, default=[3.0, 1.2, 0.75, 0.6])
    parser.add_argument("--out", type=Path, default=Path("runs/auto_budgets"))
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    rows = []
    for budget in args.budgets:
        rows.append(row(budget, args.out))
        print(" | ".join(rows[-1]), flush=True)
    page = Document("memory=auto at several budgets")
    page.add(f"`{WORDS}`, with `memory=auto memory.budget_gib=...`", TableBlock(COLUMNS, rows))
    if args.markdown:
        args.markdown.write_text(page.markdown(ROOT))


if __name__ == "__main__":
    main()
