"""Schedule a mine by any method: `python scripts/solve.py instance=DIR/NAME method=toposort`."""

from omegaconf import DictConfig

from frugal_rl.run.compose import main, options


@main("solve")
def solve(cfg: DictConfig) -> None:
    """Print value, certified gap, time and memory; write a MineLib solution where asked."""
    from mine_rl_npv.tools.solve import SolveConfig, run

    print(run(options(cfg, SolveConfig)).report())


if __name__ == "__main__":
    solve()
