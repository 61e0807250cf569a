"""The computer's levels against each other, and fixed scripts against the levels.

    python benchmarks/fighting_ladder.py [matches per pair of levels] [fights per script and level]

Levels meet in whole matches (two rounds won), sides swapped; scripts in single rounds from random
distances. Shares with Wilson's 95 % interval. Matches run by the cartridge's logic as machine code.
"""

from __future__ import annotations

import sys
import time

from fighting.opponents.scripts import SCRIPTS
from fighting.tools.arena import Arena
from fighting.tools.bouts import fight_out
from fighting.tools.contest import Contestant
from frugal_rl.run.evaluate import wilson


def main() -> None:
    matches = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    fights = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    begin, arena = time.perf_counter(), Arena()
    print(f"level  against  won of {matches} matches")
    for level in range(1, 8) if matches else ():
        won = arena.matches_won(level, level - 1, matches)
        low, high = wilson(won, matches)
        share = f"{won / matches:.1%} ({low:.1%} to {high:.1%})"
        print(f"{level:>5}  {level - 1:>7}  {share}", flush=True)
    if fights:
        print(f"\npoints of a script in {fights} rounds (1 won, 0.5 drawn)")
        print(f"{'script':<10}" + "".join(f"  level {level}" for level in range(8)))
    for rival, script in SCRIPTS.items() if fights else ():
        player = Contestant(rival.value, script=script)
        shares = (
            fight_out(player, Contestant(f"cpu_{level}", level=level), fights, seed=level) / fights
            for level in range(8)
        )
        print(f"{rival.value:<10}" + "".join(f"{s:>9.0%}" for s in shares), flush=True)
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
