"""Learns the plans of Duel's computer: shares of scripts that short rules cannot exploit.

    python benchmarks/fighting_plans.py [file] [meetings] [rounds] [seed] [search] [random]

From the cartridge's present plans, or from `random` ones, against lines alone and the scripts of a
`search` that fighting_exploits.py kept (on whatever cartridge), which are changed meanwhile until
they win. Every ten meetings it prints what the rivals who win most then won, 60 rounds each, for
frames per action + frames of delay. At the end the file holds the four plans as
fighting/rom/plans.inc wants them.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np

from fighting.opponents.lines import words
from fighting.rom import DUEL, FOLDER
from fighting.tools.exploits import load, one_liners
from fighting.tools.mixed import CHOICES, ROWS, SCRIPTS, MixedArena, first_plan
from fighting.tools.plan_learning import (
    REFLEXES,
    Learner,
    Rival,
    Rivals,
    eighths,
    random_shares,
    shares_of,
    written,
)
from frugal_rl.run.disk import write_whole

FIRST = 40
"""Lines alone that each kind of reflexes begins with."""
PACES = (1.5, 0.3)
"""How far shares move, at the beginning and at the end."""


def present() -> np.ndarray:
    """The plans of the cartridge; every script has some share everywhere."""
    first = first_plan()
    image = np.frombuffer(DUEL.image.read_bytes(), np.uint8)
    held = shares_of(image[first : first + ROWS * CHOICES])
    return 0.9 * held + 0.1 / SCRIPTS


def begun(seed: int, search: str, random: bool) -> Learner:
    """The shares to begin with, and who they meet first."""
    rng = np.random.default_rng(seed)
    lines = one_liners()
    rivals = [
        Rival(lines[n], reflexes)
        for reflexes in REFLEXES
        for n in rng.choice(len(lines), FIRST, replace=False)
    ]
    for found in load(Path(search), any_cartridge=True) if search else ():
        rivals += [Rival(script, found.reflexes) for script in found.scripts]
    return Learner(random_shares(rng) if random else present(), Rivals.of(rivals), rng)


def strongest(learner: Learner, arena: MixedArena, rounds: int) -> str:
    """What the best rivals win of the plans as the cartridge would hold them."""
    held = Learner(shares_of(eighths(learner.mean)), learner.rivals, np.random.default_rng(0))
    told, most = [], (0.0, "")
    for reflexes in REFLEXES:
        best = [learner.rivals.all[n] for n in learner.rivals.alike(reflexes)[:6]]
        points = held.points(arena, best, rounds)
        told.append(f"{reflexes.frame_skip}+{reflexes.late} {points.max():.0%}")
        most = max(most, (float(points.max()), words(best[points.argmax()].script)))
    return f"{', '.join(told)}: {most[1]}"


def names_and_titles(plans: str) -> tuple[list[str], list[str]]:
    """The scripts' names and what the situations are, as plans.inc tells them."""
    names = re.findall(r"^DEF (\w+) EQU \d+", plans, re.MULTILINE)
    titles = re.findall(r"^ db .*; \d+ (.*)", plans, re.MULTILINE)
    return names, titles[:32]


def main() -> None:
    given = [
        *sys.argv[1:],
        *("runs/fighting_plans.inc", "240", "2400", "0", "", "")[len(sys.argv) - 1 :],
    ]
    path, meetings, rounds, seed = Path(given[0]), int(given[1]), int(given[2]), int(given[3])
    begin, arena = time.process_time(), MixedArena()
    learner = begun(seed, given[4], "random" in given[5:])
    for number in range(1, meetings + 1):
        pace = PACES[0] + (PACES[1] - PACES[0]) * number / meetings
        learner.meet(arena, rounds, pace)
        if number % 4 == 0:
            learner.try_others(arena, 100)
        if number % 10 == 0:
            took = time.process_time() - begin
            print(f"{number:>5} {took:>6.0f} s {strongest(learner, arena, 60)}", flush=True)
    names, titles = names_and_titles((FOLDER / "plans.inc").read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, [written(eighths(learner.mean), names, titles).encode()])
    print(f"{path} after {time.process_time() - begin:.0f} s of processor time")


if __name__ == "__main__":
    main()
