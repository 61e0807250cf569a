"""`scripts/evaluate.py tournament=true`: levels, scripts and checkpoints against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.cartridge.config import GameBoyConfig
from fighting.opponents.ratings import Payoff, exploits
from fighting.tools import bouts, cartridge_bouts
from fighting.tools.contest import Contest, pairings, round_robin
from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError
from frugal_rl.report.files import read_json, write_json, write_text
from frugal_rl.run.evaluate import wilson

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

RESULTS = "tournament.json"


def tournament(run: RunConfig, checkpoints: Sequence[str]) -> str:
    """Policies meet everybody `evaluation.episodes` times; ratings, pay-off matrix, intervals.

    Against each other they must play from the game's memory (env.obs=ram); where a cartridge has
    one pad, they play the same game apart and the higher score wins. A line is printed and
    tournament.json written after each pairing; `resume=FOLDER` fights only what is missing there.
    """
    fights = run.evaluation.episodes
    if fights < 2:
        raise ConfigError(f"evaluation.episodes is {fights}; a tournament needs 2 or more.")
    own = isinstance(run.env, GameBoyConfig)
    contest = cartridge_bouts.contest(run, checkpoints) if own else bouts.contest(checkpoints)
    rules = {"fights": fights, "seed": run.seed, "policies": list(contest.digests)}
    names = tuple(c.name for c in contest.players)
    payoff = Payoff.empty(names) if run.resume is None else resumed(Path(run.resume), names, rules)
    folder = Path(run.run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    fought_out(contest, rules, payoff, folder)
    ratings = payoff.ratings(contest.anchors)
    known = [c.name for c in contest.players if not c.learned]
    text = described(payoff, ratings, checkpoints, known)
    write_text(folder / "tournament.txt", text)
    write_results(folder, payoff, {**rules, "ratings": ratings})
    return f"{text}Results: {folder / 'tournament.txt'}"


def fought_out(contest: Contest, rules: Mapping[str, Any], payoff: Payoff, folder: Path) -> None:
    """Fills the pay-off matrix; tells and keeps it after each pairing that was fought."""
    fights, seed, players = rules["fights"], rules["seed"], contest.players
    total = len(pairings(players, fights, levels_meet=False))
    known = int(np.count_nonzero(payoff.fights)) // 2
    if known:
        print(f"{known} of {total} pairings are known already", flush=True)
    table = round_robin(
        players, fights, seed, levels_meet=False, payoff=payoff, fight=contest.fight
    )
    with doing("fighting", total, "pairings") as work:
        for work.done, (pair, _) in enumerate(table, 1):
            one, two = payoff.names[pair.one], payoff.names[pair.two]
            if work.done > known:
                points = f"{payoff.score[pair.one, pair.two]:g} of {pair.rounds}"
                print(f"{work.done} of {total}: {one} {points} against {two}", flush=True)
                write_results(folder, payoff, rules)


def write_results(folder: Path, payoff: Payoff, more: Mapping[str, Any]) -> None:
    """Names, points and fights so far, whole or not at all."""
    matrix = {"points": payoff.score.tolist(), "fought": payoff.fights.tolist()}
    write_json(folder / RESULTS, {"names": list(payoff.names), **matrix, **more})


def resumed(folder: Path, names: tuple[str, ...], rules: Mapping[str, Any]) -> Payoff:
    """What an earlier tournament between the same players by the same rules has fought.

    Raises:
        ConfigError: there is none, or it was another one.
    """
    path = folder / RESULTS
    if not path.is_file():
        raise ConfigError(f"resume={folder}: there is no {RESULTS}; leave resume= out to begin.")
    kept = read_json(path)
    for name, value in {"names": list(names), **rules}.items():
        if kept.get(name) != value:
            raise ConfigError(
                f"resume={folder}: {name} was {kept.get(name)}, now it is {value}. Type what that "
                "tournament was begun with, or leave resume= out."
            )
    return Payoff(names, np.array(kept["points"], float), np.array(kept["fought"], np.int64))


def described(
    payoff: Payoff, ratings: Mapping[str, float], checkpoints: Sequence[str], known: list[str]
) -> str:
    """The table, and whom each policy loses to."""
    lines = [payoff.table(ratings)]
    for number, path in enumerate(checkpoints):
        name = f"policy_{number}"
        lost = exploits(payoff, name, known)
        lines.append(f"{name} is {path}; loses to: {', '.join(lost) or 'nobody'}\n")
        lines += [f"    {words}\n" for words in intervals(payoff, name)]
    return "".join(lines)


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
