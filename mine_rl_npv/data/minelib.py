"""Reads a MineLib instance: .blocks, .prec, .upit, .cpit and .pcpsp beside one another.

Format: MineLib file format specification 1.0 (Espinoza, Goycoolea, Moreno, Newman 2013). The
order of sections is free; keywords may have blanks or underscores; the first period is not
discounted, which is what the published values assume.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.printing import printable
from mine_rl_npv.data.instance import MOST_PERIODS, GeneralRows, Graph, Instance
from mine_rl_npv.data.minelib_blocks import read_blocks
from mine_rl_npv.data.minelib_prec import read_precedence
from mine_rl_npv.data.sections import Lines, read_sections, scalar, table, whole

KEYWORDS = frozenset(
    "NAME TYPE NBLOCKS NPERIODS NDESTINATIONS NRESOURCE_SIDE_CONSTRAINTS "
    "NGENERAL_SIDE_CONSTRAINTS DISCOUNT_RATE OBJECTIVE_FUNCTION RESOURCE_CONSTRAINT_LIMITS "
    "RESOURCE_CONSTRAINT_COEFFICIENTS GENERAL_CONSTRAINT_LIMITS "
    "GENERAL_CONSTRAINT_COEFFICIENTS".split()
)


@dataclass(frozen=True)
class _Problem:
    """What one of the .upit, .cpit and .pcpsp files states."""

    value: np.ndarray
    periods: int = 1
    rate: float = 0.0
    use: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    general: GeneralRows | None = None


def read_instance(prefix: str | Path, pit_only: bool = False) -> Instance:
    """Reads `PREFIX.blocks`, `PREFIX.prec` and what there is of .upit, .cpit and .pcpsp.

    Args:
        prefix: path without the ending.
        pit_only: whether an instance without periods is of use.

    Raises:
        DataError: a file is missing, contradicts another, or has an unreadable line; the message
            names file and line.
    """
    prefix = Path(prefix)
    position, fields = read_blocks(_beside(prefix, ".blocks"))
    graph = read_precedence(_beside(prefix, ".prec"), len(position))
    found = {
        kind: _read_problem(_beside(prefix, f".{kind}"), kind, len(position))
        for kind in ("upit", "cpit", "pcpsp")
        if _beside(prefix, f".{kind}").exists()
    }
    if not found:
        raise DataError(f"{prefix}: none of .upit, .cpit and .pcpsp exists; one is needed.")
    if "cpit" not in found and "pcpsp" not in found and not pit_only:
        raise DataError(
            f"{prefix}.cpit does not exist: {prefix.name} has no periods, limits or rate. "
            "Only method=upit can be answered from its .upit file."
        )
    return _assemble(prefix, position, fields, graph, found)


def _beside(prefix: Path, suffix: str) -> Path:
    return prefix.with_name(prefix.name + suffix)


def _assemble(
    prefix: Path,
    position: np.ndarray,
    fields: dict[str, np.ndarray],
    graph: Graph,
    found: dict[str, _Problem],
) -> Instance:
    n = len(position)
    _agree(prefix, found)
    timed = found.get("cpit", found.get("pcpsp"))
    periods = timed.periods if timed else 1
    nothing = _Problem(np.empty(0), use=np.zeros((n, 1, 0)), low=np.zeros((0, 1)))
    source = timed or nothing
    by_destination = found.get("pcpsp", found.get("cpit", found.get("upit")))
    whole_block = found.get("cpit", found.get("upit"))
    value = whole_block.value[:, 0] if whole_block else by_destination.value.max(axis=1)
    best = by_destination.value.argmax(axis=1)
    by_use = by_destination.use if by_destination.use is not None else nothing.use
    block_use = (
        found["cpit"].use[:, 0] if "cpit" in found else by_use[np.arange(n), best % by_use.shape[1]]
    )
    return Instance(
        name=prefix.name,
        position=position,
        graph=graph,
        value=value,
        periods=periods,
        rate=source.rate,
        use=block_use,
        low=source.low,
        high=source.high if source.high is not None else np.zeros((0, 1)),
        destination_value=by_destination.value,
        destination_use=by_use,
        general=by_destination.general,
        fields=fields,
    )


def _agree(prefix: Path, found: dict[str, _Problem]) -> None:
    """Files of one instance state the same periods, rate and limits, and the same block values."""
    if "cpit" in found and "pcpsp" in found:
        one, other = found["cpit"], found["pcpsp"]
        same = one.periods == other.periods and one.rate == other.rate
        same = same and np.array_equal(one.low, other.low)
        if not (same and np.array_equal(one.high, other.high)):
            raise DataError(
                f"{prefix}.cpit and {prefix}.pcpsp disagree about periods, rate or limits."
            )
    if "cpit" in found and "upit" in found:
        differ = found["cpit"].value[:, 0] != found["upit"].value[:, 0]
        if differ.any():
            raise DataError(
                f"{prefix}.upit and {prefix}.cpit give block {int(np.argmax(differ))} two values."
            )


def _read_problem(path: Path, kind: str, blocks: int) -> _Problem:
    sections = read_sections(path, KEYWORDS)
    stated = sections.get("TYPE")
    if stated is not None and len(stated) and stated.text[0].upper() != kind.upper():
        raise stated.error(0, f"this is a {stated.text[0]} file, named .{kind}.")
    count = int(scalar(sections, "NBLOCKS", path))
    if count != blocks:
        raise DataError(f"{path}: NBLOCKS is {count}, the .blocks file has {blocks}.")
    destinations = int(scalar(sections, "NDESTINATIONS", path)) if kind == "pcpsp" else 1
    value = _objective(sections, path, blocks, destinations)
    if kind == "upit":
        return _Problem(value)
    periods = int(scalar(sections, "NPERIODS", path))
    resources = int(scalar(sections, "NRESOURCE_SIDE_CONSTRAINTS", path))
    rate = float(scalar(sections, "DISCOUNT_RATE", path, float))
    if not 1 <= periods <= MOST_PERIODS or not -1 < rate < 1:
        raise DataError(
            f"{path}: NPERIODS is {periods} and DISCOUNT_RATE {rate}; impossible (a rate of 8 % is "
            "0.08)."
        )
    _borne_out(sections, path, "NRESOURCE_SIDE_CONSTRAINTS", resources, "RESOURCE_CONSTRAINT")
    low, high = _limits(sections, path, resources, periods)
    use = _coefficients(sections, path, blocks, destinations, resources, kind)
    _tell_idle(path, use, low, high)
    general = None
    if kind == "pcpsp":
        general = _general(sections, path, blocks, destinations, periods)
    elif any(keyword.startswith("GENERAL_") for keyword in sections):
        raise DataError(f"{path}: side rows would be ignored; they belong to a .pcpsp file.")
    return _Problem(value, periods, rate, use, low, high, general)


def _borne_out(
    sections: dict[str, Lines], path: Path, keyword: str, stated: int, what: str
) -> None:
    """Refuse a number of rows that the file has no lines for, before memory is taken for them.

    None at all beside lines that would be passed over is no number either.
    """
    lines = sum(len(sections.get(f"{what}_{s}", ())) for s in ("LIMITS", "COEFFICIENTS"))
    if not bool(lines) <= stated <= lines:
        only = "" if stated == 0 else "only "
        raise DataError(
            f"{path}: {keyword} is {printable(str(stated))}, but {only}{lines} lines speak of "
            f"{what.lower().replace('_', ' ')}s."
        )


def _need(sections: dict[str, Lines], keyword: str, path: Path) -> Lines:
    if keyword not in sections:
        raise DataError(f"{path}: section {keyword} is missing.")
    return sections[keyword]


def _objective(
    sections: dict[str, Lines], path: Path, blocks: int, destinations: int
) -> np.ndarray:
    lines = _need(sections, "OBJECTIVE_FUNCTION", path)
    rows = table(lines, 1 + destinations, "an objective row")
    ids = whole(lines, rows[:, 0], blocks, "block")
    if len(np.unique(ids)) != blocks:
        raise DataError(
            f"{path}: OBJECTIVE_FUNCTION has {len(ids)} rows for {len(np.unique(ids))} blocks; "
            f"each of the {blocks} blocks needs exactly one."
        )
    if not np.isfinite(rows).all():
        raise lines.error(int(np.argmin(np.isfinite(rows).all(axis=1))), "a value is not finite.")
    value = np.empty((blocks, destinations))
    value[ids] = rows[:, 1:]
    return value


def _limits(
    sections: dict[str, Lines], path: Path, resources: int, periods: int
) -> tuple[np.ndarray, np.ndarray]:
    low = np.zeros((resources, periods))
    high = np.full((resources, periods), np.inf)
    if resources == 0:
        return low, high
    lines = _need(sections, "RESOURCE_CONSTRAINT_LIMITS", path)
    stated: set[tuple[int, int, str]] = set()
    for at, text in enumerate(lines.text):
        words = text.split()
        form = words[2].upper() if len(words) > 2 else ""
        if form not in ("L", "G", "I") or len(words) != (5 if form == "I" else 4):
            raise lines.error(at, "expected `resource period L|G value` or `... I low high`.")
        numbers = table(
            Lines(path, [lines.number[at]], [" ".join(words[:2] + words[3:])]),
            len(words) - 1,
            "a limit",
        )[0]
        one = Lines(path, [lines.number[at]], [text])
        r = int(whole(one, numbers[:1], resources, "resource")[0])
        t = int(whole(one, numbers[1:2], periods, "period")[0])
        sides = {(r, t, side) for side in ("LG" if form == "I" else form)}
        if sides & stated:
            raise lines.error(at, f"resource {r} in period {t} has such a limit already.")
        stated |= sides
        if form in ("G", "I"):
            low[r, t] = numbers[2]
        if form in ("L", "I"):
            high[r, t] = numbers[-1]
        _refuse_impossible(one, low[r, t], high[r, t])
    _tell_open(path, {(r, t) for r, t, _ in stated}, resources, periods)
    return low, high


def _tell_open(path: Path, stated: set[tuple[int, int]], resources: int, periods: int) -> None:
    """A limit whose line was lost must not pass for one that was never meant."""
    free = [place for place in np.ndindex(resources, periods) if place not in stated]
    if free:
        warnings.warn(
            f"{path}: {len(free)} of {resources * periods} limits are not stated (the first: "
            f"resource {free[0][0]} in period {free[0][1]}); nothing bounds those.",
            stacklevel=6,
        )


def _tell_idle(path: Path, use: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Limits that no block counts against bind nothing: were their coefficients lost?"""
    limited = (np.isfinite(high) | (low > 0)).any(axis=1)
    idle = np.flatnonzero(limited & ~use.any(axis=(0, 1)))
    if len(idle):
        warnings.warn(
            f"{path}: no block uses resource {idle[0]}, so that its limits bind nothing.",
            stacklevel=5,
        )


def _refuse_impossible(one: Lines, low: float, high: float) -> None:
    """Raises DataError for limits that are no numbers or that no amount keeps."""
    if np.isnan(low) or np.isnan(high):
        raise one.error(0, "a limit is not a number.")
    if low > high:
        raise one.error(0, f"the lower limit {low:g} is above {high:g}.")
    if low == np.inf or high == -np.inf:
        raise one.error(0, "no amount keeps this limit.")


def _coefficients(
    sections: dict[str, Lines],
    path: Path,
    blocks: int,
    destinations: int,
    resources: int,
    kind: str,
) -> np.ndarray:
    use = np.zeros((blocks, destinations, resources))
    if resources == 0:
        return use
    lines = _need(sections, "RESOURCE_CONSTRAINT_COEFFICIENTS", path)
    wide = 4 if kind == "pcpsp" else 3
    rows = table(lines, wide, "a resource coefficient")
    b = whole(lines, rows[:, 0], blocks, "block")
    d = whole(lines, rows[:, 1], destinations, "destination") if wide == 4 else np.zeros_like(b)
    r = whole(lines, rows[:, -2], resources, "resource")
    if not lines.complete and b.max(initial=-1) < blocks - 1:
        raise DataError(
            f"{path} ends without EOF, and its last coefficients are those of block "
            f"{b.max(initial=-1)} of 0 to {blocks - 1}; add a line EOF if it is complete."
        )
    negative = ~(rows[:, -1] >= 0) | ~np.isfinite(rows[:, -1])
    if negative.any():
        at = int(np.argmax(negative))
        raise lines.error(at, f"block {b[at]} uses {rows[at, -1]:g} tonnes; it must be 0 or more.")
    key = (b.astype(np.int64) * destinations + d) * resources + r
    _, first = np.unique(key, return_index=True)
    if len(first) < len(key):
        at = int(np.setdiff1d(np.arange(len(key)), first)[0])
        raise lines.error(at, f"block {b[at]} and resource {r[at]} have such a line already.")
    use[b, d, r] = rows[:, -1]
    return use


def _general(
    sections: dict[str, Lines], path: Path, blocks: int, destinations: int, periods: int
) -> GeneralRows | None:
    count = int(scalar(sections, "NGENERAL_SIDE_CONSTRAINTS", path))
    _borne_out(sections, path, "NGENERAL_SIDE_CONSTRAINTS", count, "GENERAL_CONSTRAINT")
    if count == 0:
        return None
    lines = _need(sections, "GENERAL_CONSTRAINT_COEFFICIENTS", path)
    rows = table(lines, 5, "a general coefficient")
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    limit_lines = _need(sections, "GENERAL_CONSTRAINT_LIMITS", path)
    stated: set[int] = set()
    for at, text in enumerate(limit_lines.text):
        words = text.split()
        form = words[1].upper() if len(words) > 1 else ""
        if form not in ("L", "G", "I") or len(words) != (4 if form == "I" else 3):
            raise limit_lines.error(at, "expected `row L|G value` or `row I low high`.")
        one = Lines(path, [limit_lines.number[at]], [" ".join(words[:1] + words[2:])])
        numbers = table(one, len(words) - 1, "a limit")[0]
        j = int(whole(one, numbers[:1], count, "row")[0])
        if j in stated:
            raise limit_lines.error(at, f"row {j} has a limit already; state both sides as I.")
        stated.add(j)
        if form in ("G", "I"):
            low[j] = numbers[1]
        if form in ("L", "I"):
            high[j] = numbers[-1]
        _refuse_impossible(one, low[j], high[j])
    if missing := set(range(count)) - stated:
        raise DataError(f"{path}: general row {min(missing)} has no limit; state one for each row.")
    found = GeneralRows(
        row=whole(lines, rows[:, 3], count, "row"),
        block=whole(lines, rows[:, 0], blocks, "block"),
        destination=whole(lines, rows[:, 1], destinations, "destination"),
        period=whole(lines, rows[:, 2], periods, "period"),
        value=rows[:, 4],
        low=low,
        high=high,
    )
    _refuse_repeated(lines, rows)
    return found


def _refuse_repeated(lines: Lines, rows: np.ndarray) -> None:
    """Raises DataError for a coefficient of general rows that is no number or stated twice."""
    if not np.isfinite(rows[:, 4]).all():
        raise lines.error(int(np.argmin(np.isfinite(rows[:, 4]))), "a coefficient is not finite.")
    _, first = np.unique(rows[:, :4], axis=0, return_index=True)
    if len(first) < len(rows):
        at = int(np.setdiff1d(np.arange(len(rows)), first)[0])
        raise lines.error(at, "this block has such a coefficient in the row already.")
