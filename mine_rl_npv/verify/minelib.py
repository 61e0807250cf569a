"""MineLib schedules judged from the text of `.prec`, `.cpit` or `.pcpsp`, and the `.sol` file."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from mine_rl_npv.verify.text import text_of

TINY = 1e-6
WHOLE = 1e-5
"""Six digits of each share are written."""
SINGLE = {
    "NAME",
    "TYPE",
    "NBLOCKS",
    "NPERIODS",
    "NDESTINATIONS",
    "NRESOURCE_SIDE_CONSTRAINTS",
    "NGENERAL_SIDE_CONSTRAINTS",
    "DISCOUNT_RATE",
}
TABLES = {"OBJECTIVE_FUNCTION"} | {
    f"{kind}_CONSTRAINT_{what}"
    for kind in ("RESOURCE", "GENERAL")
    for what in ("LIMITS", "COEFFICIENTS")
}


def rows(path: Path) -> list[list[str]]:
    """Words of each line that carries something, colons as blanks."""
    text = text_of(path, "ascii").replace(":", " ")
    lines = (line.split() for line in text.splitlines() if not line.lstrip().startswith("%"))
    return [line for line in lines if line and line != ["EOF"]]


def sections(path: Path) -> tuple[dict[str, str], dict[str, list[list[str]]]]:
    """One-line keywords with their value, and tables by keyword."""
    single: dict[str, str] = {}
    tables: dict[str, list[list[str]]] = {}
    name = ""
    for words in rows(path):
        if re.match(r"[A-Za-z]", words[0]):
            key = [w for w in words if re.match(r"[A-Za-z_]", w)]
            name = words[0] if words[0] in ("NAME", "TYPE") else "_".join(key)
            if name not in SINGLE | TABLES:
                raise ValueError(f"{path}: no section is called {name}")
            if words[0] in ("NAME", "TYPE"):
                single[words[0]] = words[-1]
            elif len(words) > len(key):
                single[name] = words[-1]
            else:
                tables[name] = []
        else:
            tables[name].append(words)
    return single, tables


def judge(prefix: str, solution: str, pcpsp: bool, parts: bool = False) -> tuple[float, list[str]]:
    """Discounted value, and one sentence per broken rule.

    Args:
        prefix: path of the instance without ending.
        solution: rows `block destination period share`, or a pit's blocks.
        pcpsp: whether blocks choose their destination.
        parts: whether blocks may be mined in parts, as relaxations do.
    """
    problem = Path(f"{prefix}.{'pcpsp' if pcpsp else 'cpit'}")
    listed = rows(Path(solution))
    if listed and all(len(words) == 1 for words in listed):
        return _judge_pit(prefix, [int(words[0]) for words in listed])
    single, tables = sections(problem)
    rate, periods = float(single["DISCOUNT_RATE"]), int(single["NPERIODS"])
    share: dict[tuple[int, int, int], float] = defaultdict(float)
    for b, d, t, fraction in listed:
        share[int(b), int(d) if pcpsp else 0, int(t)] += float(fraction)
    worth = {int(r[0]): [float(w) for w in r[1:]] for r in tables["OBJECTIVE_FUNCTION"]}
    _refuse_cut_off(problem, tables, max(worth))
    faults = [f"block {b} is unknown" for b, _, _ in share if b not in worth]
    faults += [  # less than nothing of a block would give back tonnes and costs
        f"the share {row[3]} of block {row[0]} is outside 0 to 1"
        for row in listed
        if not 0 <= float(row[3]) <= 1 + WHOLE
    ]
    faults += [f"period {t} is unknown" for _, _, t in share if not 0 <= t < periods]
    sent = int(single["NDESTINATIONS"]) if pcpsp else 1
    faults += [f"destination {d} is unknown" for _, d, _ in share if not 0 <= d < sent]
    if faults:
        return float("nan"), faults
    value = math.fsum(f * worth[b][d] / (1 + rate) ** t for (b, d, t), f in share.items())
    by_then: dict[int, list[float]] = {}
    for (b, _, t), f in share.items():
        gone = by_then.setdefault(b, [0.0] * periods)
        for later in range(t, periods):
            gone[later] += f
    faults += [
        f"block {b} is mined {g[-1]:g} times" for b, g in by_then.items() if g[-1] > 1 + TINY
    ]
    faults += [] if parts else [f for b, g in by_then.items() for f in _parts(b, g)]
    faults += _precedence(Path(f"{prefix}.prec"), by_then, periods, worth)
    faults += _limits(tables, share, pcpsp, WHOLE if parts else 1e-9)
    return value, faults + (_side_rows(tables, share) if pcpsp else [])


def _refuse_cut_off(path: Path, tables: dict[str, list[list[str]]], last: int) -> None:
    """Raises ValueError where the last blocks may lack tonnes: they would fit any limit."""
    counted = [int(words[0]) for words in tables.get("RESOURCE_CONSTRAINT_COEFFICIENTS", [])]
    ended = any(line.split() == ["EOF"] for line in path.read_text("ascii").splitlines())
    if counted and max(counted) < last and not ended:
        raise ValueError(f"{path} ends without EOF, and block {max(counted)} is not the last one")


def _parts(block: int, gone: list[float]) -> list[str]:
    """A fault where a block is not gone from one period to the next as a whole."""
    most = max(now - before for before, now in zip([0.0, *gone], gone, strict=False))
    if most >= 1 - WHOLE or gone[-1] <= TINY:
        return []
    return [f"block {block} is mined in parts, at most {most:g} of it in one period"]


def _judge_pit(prefix: str, blocks: list[int]) -> tuple[float, list[str]]:
    """A pit's undiscounted value; faults where it undercuts, repeats or invents a block."""
    _, tables = sections(Path(f"{prefix}.upit"))
    worth = {int(r[0]): float(r[1]) for r in tables["OBJECTIVE_FUNCTION"]}
    faults = [f"block {b} is unknown" for b in blocks if b not in worth]
    inside = {b: [1.0] for b in blocks}
    if len(inside) < len(blocks):
        faults.append("a block is listed twice")
    if faults:
        return float("nan"), faults
    return math.fsum(worth[b] for b in blocks), _precedence(
        Path(f"{prefix}.prec"), inside, 1, worth
    )


def _precedence(
    path: Path, by_then: dict[int, list[float]], periods: int, blocks: Iterable[int]
) -> list[str]:
    never = [0.0] * periods
    faults = []
    table = rows(path)
    absent = set(blocks) - {int(words[0]) for words in table}
    if absent and any(words[1:] == ["0"] for words in table):
        raise ValueError(
            f"{path}: block {min(absent)} has no line, others that need nothing have one"
        )
    for words in table:
        b = int(words[0])
        if b not in by_then:
            continue
        for p in map(int, words[2:]):
            early = (x > y + TINY for x, y in zip(by_then[b], by_then.get(p, never), strict=True))
            if any(early):
                faults.append(f"block {b} goes before block {p}, which it needs")
    return faults


def _limits(
    tables: dict[str, list[list[str]]],
    share: dict[tuple[int, int, int], float],
    pcpsp: bool,
    slack: float,
) -> list[str]:
    takes: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    for words in tables.get("RESOURCE_CONSTRAINT_COEFFICIENTS", []):
        d = int(words[1]) if pcpsp else 0
        takes[int(words[0]), d].append((int(words[-2]), float(words[-1])))
    used: dict[tuple[int, int], float] = defaultdict(float)
    for (b, d, t), f in share.items():
        for r, tonnes in takes[b, d]:
            used[r, t] += f * tonnes
    faults = []
    for r, t, kind, *numbers in tables.get("RESOURCE_CONSTRAINT_LIMITS", []):
        sum_ = used[int(r), int(t)]
        low, high = _sides(kind, numbers)
        if sum_ > high * (1 + slack) + 1e-6 or sum_ < low * (1 - slack) - 1e-6:
            faults.append(f"limit {r} of period {t}: {sum_:g} is outside {low:g} to {high:g}")
    return faults


def _sides(kind: str, numbers: list[str]) -> tuple[float, float]:
    """The least and the most that `L most`, `G least` or `I least most` allow."""
    form = kind.upper()
    if form not in ("L", "G", "I") or len(numbers) != (2 if form == "I" else 1):
        raise ValueError(f"the limit {kind} {' '.join(numbers)} is none of L, G and I")
    low = float(numbers[0]) if form in ("G", "I") else -math.inf
    high = float(numbers[-1]) if form in ("L", "I") else math.inf
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"the limit {kind} {' '.join(numbers)} is no number")
    return low, high


def _side_rows(
    tables: dict[str, list[list[str]]], share: dict[tuple[int, int, int], float]
) -> list[str]:
    total: dict[int, float] = defaultdict(float)
    size: dict[int, float] = defaultdict(float)
    for b, d, t, row, number in tables.get("GENERAL_CONSTRAINT_COEFFICIENTS", []):
        term = share.get((int(b), int(d), int(t)), 0.0) * float(number)
        total[int(row)] += term
        size[int(row)] += abs(term)
    faults = []
    for row, kind, *numbers in tables.get("GENERAL_CONSTRAINT_LIMITS", []):
        low, high = _sides(kind, numbers)
        sum_, slack = total[int(row)], 1e-9 * size[int(row)] + 1e-6
        if not low - slack <= sum_ <= high + slack:
            faults.append(f"side row {row}: {sum_:g} is outside {low:g} to {high:g}")
    return faults
