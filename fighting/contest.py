"""`scripts/evaluate.py tournament=true`: levels, scripts and checkpoints against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fighting.league import exploits
from fighting.self_play import saved_player
from fighting.tournament import Contestant, anchors, known_contestants, tournament
from frugal_rl.errors import ConfigError
from frugal_rl.report.files import write_json, write_text
from frugal_rl.run import RunConfig


def contest(run: RunConfig, checkpoints: Sequence[str]) -> str:
    """Each pair fights `evaluation.episodes` rounds; ratings, pay-off matrix, what is forgotten.

    Checkpoints must play from the game's memory (env.obs=ram). Writes tournament.txt and .json.
    """
    fights = run.evaluation.episodes
    if fights < 2:
        raise ConfigError(f"evaluation.episodes is {fights}; a tournament needs 2 or more.")
    players = known_contestants()
    for number, path in enumerate(checkpoints):
        players.append(Contestant(f"policy_{number}", script=saved_player(path)))
    payoff = tournament(players, fights, run.seed, levels_meet=False)
    ratings = payoff.ratings(anchors(players))
    lines = [payoff.table(ratings)]
    weak = [c.name for c in known_contestants()]
    for number, path in enumerate(checkpoints):
        name = f"policy_{number}"
        lost = exploits(payoff, name, weak)
        lines.append(f"{name} is {path}; loses to: {', '.join(lost) or 'nobody'}\n")
    folder = Path(run.run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "tournament.txt", "".join(lines))
    write_json(
        folder / "tournament.json",
        {"names": list(payoff.names), "ratings": ratings, "points": payoff.score.tolist(),
         "fights": payoff.fights.tolist()},
    )  # fmt: skip
    return "".join(lines) + f"Results: {folder / 'tournament.txt'}"
