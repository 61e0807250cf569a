"""What a leaderboard runs, as values."""

from __future__ import annotations

from dataclasses import dataclass

from frugal_rl.errors import ConfigError

PROBLEMS = ("upit", "cpit", "pcpsp")


@dataclass(frozen=True)
class Board:
    """The cells of `leaderboard=FOLDER`; budgets of searches are `seconds` and `decodes`."""

    methods: tuple[str, ...] = ("lp", "greedy", "toposort", "toposort:shift+polish", "best")
    """METHOD[:DECODER][+polish][+cuts], or a peer: oreblocks, oreblocks:exact, oreblocks:bz."""
    problems: tuple[str, ...] = PROBLEMS
    """Those of which an instance has the file."""
    results: str = "runs/leaderboard"
    """Folder of tables, pictures and one schedule file per cell; finished cells are kept."""
    seconds: float = 3600.0
    """A cell's process is ended after so much time by the clock."""

    def __post_init__(self) -> None:
        unknown = set(self.problems) - set(PROBLEMS)
        if unknown or not self.problems or not self.methods:
            raise ConfigError(
                f"board.problems={list(self.problems)}, board.methods={list(self.methods)}: one or "
                f"more of each; problems are {', '.join(PROBLEMS)}."
            )
        if not self.seconds > 0:
            raise ConfigError(f"board.seconds={self.seconds}: use a number above 0.")
