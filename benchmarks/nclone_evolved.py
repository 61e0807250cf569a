"""Picture of levels that a run evolved, each beside the one that it was made of.

    python benchmarks/nclone_evolved.py RUN FILE.png GIVEN [GIVEN ...]

GIVEN are the run's `env.levels`. Prints how many of the levels that joined were made of a given
one, and how many of the pairs differ in tiles, and in things; shown are the first 12 pairs with the
ways by which the searcher wins them.
"""

import sys
from pathlib import Path

from nclone_levels import save_sheet

from nclone.levels import format as fmt
from nclone.levels.mutation import CHANGED
from nclone.levels.sources import open_grouped, open_levels
from nclone.search.proof import Prover

PAIRS, COLUMNS = 12, 6


def main(run: str, file: Path, given: list[str]) -> None:
    evolved = [level for _, level in open_grouped([f"evolved:{run}"])]
    known = {level.name: level for level in [*open_levels(given), *evolved]}
    pairs = [(known.get(level.name.removesuffix(CHANGED)), level) for level in evolved]
    found = [(one, other) for one, other in pairs if one is not None]
    tiles = sum((one.tiles != other.tiles).any() for one, other in found)
    things = sum(
        one.map_data[fmt.RECORDS_AT :] != other.map_data[fmt.RECORDS_AT :] for one, other in found
    )
    print(f"{len(evolved)} evolved, {len(found)} beside their parents:")
    print(f"{tiles} differ in tiles, {things} in things")
    shown = [level for pair in found[:PAIRS] for level in pair]
    save_sheet(shown, COLUMNS, Prover(), file)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
