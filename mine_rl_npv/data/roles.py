"""What the columns of a block model mean: by name, guessed and shown, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from frugal_rl.errors import DataError
from frugal_rl.untrusted.printing import printable

ASSAYS = (
    "clays",
    "chalcocite",
    "bornite",
    "chalcopyrite",
    "tennantite",
    "molibdenite",
    "pyrite",
    "cu",
    "mo",
    "as",
    "rec",
    "bwi",
)
COORDINATES = ("x", "y", "z")
EDGES = ("dx", "dy", "dz")
Z_DIRECTION = "z_direction"
"""Beside the roles in `columns`: whether the numbers of z grow up or down."""
ABSENT = "absent"
"""Beside the roles in `columns`: the word that stands for an assay that is missing."""
VALUE = "value"
"""Money of a block as the file states it; taken only where `columns.value` names it."""
OTHER_NAMES = {
    "x": "xc xcentre xcenter xcentroid xcoord xworld xmid midx centroidx east easting",
    "y": "yc ycentre ycenter ycentroid ycoord yworld ymid midy centroidy north northing",
    "z": "zc zcentre zcenter zcentroid zcoord zworld zmid midz centroidz elev elevation rl level "
    "altitude cota masl zup zdown",
    "ton": "tons tonn tonns tonne tonnes tonnage mass masst rocktonnes tonneage",
    "density": "sg dens bulkdensity specificgravity rho",
    "dx": "xinc xlength xsize sizex lengthx dimx xdim",
    "dy": "yinc ylength ysize sizey lengthy dimy ydim",
    "dz": "zinc zlength zsize sizez lengthz dimz zdim",
    "cu": "cupct cuper copper cugrade cutotal tcu cut",
    "mo": "mopct molybdenum mograde",
    "rec": "recovery cureccovery curec",
}
DEPTHS = "depth depthz zdepth depthm depthcentre depthcenter tvd profundidad profondeur tiefe teufe"
"""Names of z that are taken where no elevation is there."""
ROLES = (*COORDINATES, "ton", "density", *EDGES, *ASSAYS, VALUE)


def roles_of(
    path: Path, names: Sequence[str], stated: Mapping[str, str], required: Sequence[str]
) -> dict[str, int]:
    """Column number of each role that a file has.

    Args:
        path: for messages.
        names: the file's columns.
        stated: role -> column as the user names it; an empty name takes the guess.
        required: roles that must be there (a density stands in for `ton`).

    Raises:
        DataError: an unknown role or column, two columns that could be one role, a missing one.
    """
    lower = [name.lower() for name in names]
    found: dict[str, int] = {}
    for role, name in stated.items():
        if role in (Z_DIRECTION, ABSENT):
            continue
        if role not in ROLES:
            raise DataError(f"columns.{role} is no role; known are {', '.join(ROLES)}.")
        if not name:
            continue
        if name.lower() not in lower:
            raise DataError(f"columns.{role}={name}: {path} has {printable(', '.join(names))}.")
        found[role] = lower.index(name.lower())
    for role in ROLES:
        if role not in found and role != VALUE:
            _guess(path, role, names, found)
    missing = [r for r in required if r not in found and not (r == "ton" and "density" in found)]
    if missing:
        raise DataError(
            f"{path}, line 1: missing column {', '.join(missing)}; found "
            f"{printable(', '.join(names))}. "
            f"Name it with columns.{missing[0]}=..."
        )
    return {role: found[role] for role in ROLES if role in found}


def _guess(path: Path, role: str, names: Sequence[str], found: dict[str, int]) -> None:
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in names]
    free = [i for i in range(len(names)) if i not in found.values()]
    exact = [i for i in free if names[i].lower() == role]
    near = [i for i in free if plain[i] in OTHER_NAMES.get(role, "").split()]
    if role == "z" and not exact and not near:
        near = [i for i in free if plain[i] in DEPTHS.split()]
    if not exact and len(near) > 1:
        raise DataError(
            f"{path}: {' and '.join(names[i] for i in near)} could both be '{role}'; say which "
            f"with columns.{role}=..."
        )
    if exact or near:
        found[role] = (exact or near)[0]


def shown(names: Sequence[str], found: Mapping[str, int], text: Sequence[str]) -> str:
    """The roles in one line, and what is carried through."""
    taken = ", ".join(f"{role}={names[i]}" for role, i in found.items())
    rest = [n for i, n in enumerate(names) if i not in found.values()]
    if not rest:
        return taken
    kinds = [f"{n} (text)" if n.lower() in text else n for n in rest]
    return f"{taken}; carried through: {', '.join(kinds)}"
