"""Schedule a mine by any method: `python scripts/solve.py model=my.csv method=toposort`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
from omegaconf import DictConfig

from frugal_rl.run.building import build_as
from frugal_rl.run.command import main
from frugal_rl.run.composing import plain
from frugal_rl.run.outcome import Outcome


@main("solve")
def solve(cfg: DictConfig) -> Outcome:
    """Print value, certified gap, slopes, time and memory; write the files that were asked for."""
    from mine_rl_npv.tools.planner import answer
    from mine_rl_npv.tools.solve_config import SolveConfig

    words, outcome = answer(build_as(SolveConfig, plain(cfg)))
    print(words)
    return outcome


if __name__ == "__main__":
    solve()
