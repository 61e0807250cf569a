"""`scripts/evaluate.py tournament=true`: levels, scripts and checkpoints against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fighting.opponents.ratings import Payoff, exploits
from fighting.opponents.saved_player import saved_player
from fighting.tools.bouts import Contestant, anchors, known_contestants, round_robin
from frugal_rl.errors import ConfigError
from frugal_rl.report.files import write_json, write_text
from frugal_rl.run.config import RunConfig
from frugal_rl.run.evaluate import wilson


def tournament(run: RunConfig, checkpoints: Sequence[str]) -> str:
    """Policies fight everybody `evaluation.episodes` times; ratings, pay-off matrix, intervals.

    Checkpoints must play from the game's memory (env.obs=ram). Writes tournament.txt and .json.
    """
    fights = run.evaluation.episodes
    if fights < 2:
        raise ConfigError(f"evaluation.episodes is {fights}; a tournament needs 2 or more.")
    players = known_contestants()
    for number, path in enumerate(checkpoints):
        players.append(Contestant(f"policy_{number}", script=saved_player(path), learned=True))
    payoff = round_robin(players, fights, run.seed, levels_meet=False)
    ratings = payoff.ratings(anchors(players))
    lines = [payoff.table(ratings)]
    known = [c.name for c in players if not c.learned]
    for number, path in enumerate(checkpoints):
        name = f"policy_{number}"
        lost = exploits(payoff, name, known)
        lines.append(f"{name} is {path}; loses to: {', '.join(lost) or 'nobody'}\n")
        lines += [f"    {words}\n" for words in intervals(payoff, name)]
    folder = Path(run.run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "tournament.txt", "".join(lines))
    write_json(
        folder / "tournament.json",
        {
            "names": list(payoff.names),
            "ratings": ratings,
            "points": payoff.score.tolist(),
            "fights": payoff.fights.tolist(),
        },
    )
    return "".join(lines) + f"Results: {folder / 'tournament.txt'}"


def intervals(payoff: Payoff, name: str) -> list[str]:
    """`cpu_7: 58 of 64 (0.81 to 0.96)`: points against each opponent, Wilson's 95 % interval."""
    own, lines = payoff.names.index(name), []
    for other, points, fights in zip(
        payoff.names, payoff.score[own], payoff.fights[own], strict=True
    ):
        if fights and other != name:
            low, high = wilson(points, int(fights))
            lines.append(f"{other}: {points:g} of {fights} ({low:.2f} to {high:.2f})")
    return lines
