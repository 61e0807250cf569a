"""Writes an instance as the five MineLib model files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.data.whole_files import write_whole

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import GeneralRows, Instance


def write_instance(instance: Instance, prefix: str | Path) -> list[Path]:
    """Writes `PREFIX.blocks .prec .upit .cpit .pcpsp`; numbers keep all their digits.

    Returns:
        The five paths.
    """
    prefix = Path(prefix)
    parts = {
        "blocks": _block_lines(instance),
        "prec": _precedence_lines(instance),
        "upit": _upit_lines(instance),
        "cpit": _cpit_lines(instance),
        "pcpsp": _pcpsp_lines(instance),
    }
    paths = []
    for suffix, lines in parts.items():
        path = prefix.with_name(f"{prefix.name}.{suffix}")
        write_whole(path, lines)
        paths.append(path)
    return paths


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(value)


def _block_lines(instance: Instance) -> Iterable[str]:
    yield " ".join(["id", "x", "y", "z", *instance.fields])
    columns = [column.tolist() for column in instance.fields.values()]
    for b, cell in enumerate(instance.position.tolist()):
        words = [column[b] for column in columns]
        yield " ".join(
            [str(b), *map(str, cell), *(w if isinstance(w, str) else _number(w) for w in words)]
        )


def _precedence_lines(instance: Instance) -> Iterable[str]:
    graph = instance.graph
    for b in range(instance.blocks):
        needed = graph.index[graph.pointer[b] : graph.pointer[b + 1]].tolist()
        yield " ".join(map(str, [b, len(needed), *needed]))


def _upit_lines(instance: Instance) -> Iterable[str]:
    yield from (f"NAME: {instance.name}", "TYPE: UPIT", f"NBLOCKS: {instance.blocks}")
    yield "OBJECTIVE_FUNCTION:"
    yield from (f"{b} {_number(v)}" for b, v in enumerate(instance.value.tolist()))
    yield "EOF"


def _head(instance: Instance, kind: str) -> Iterable[str]:
    yield from (f"NAME: {instance.name}", f"TYPE: {kind}", f"NBLOCKS: {instance.blocks}")
    yield f"NPERIODS: {instance.periods}"
    if kind == "PCPSP":
        rows = 0 if instance.general is None else len(instance.general.low)
        yield f"NDESTINATIONS: {instance.destinations}"
        yield f"NGENERAL_SIDE_CONSTRAINTS: {rows}"
    yield f"NRESOURCE_SIDE_CONSTRAINTS: {instance.resources}"
    yield f"DISCOUNT_RATE: {instance.rate!r}"
    yield "RESOURCE_CONSTRAINT_LIMITS:"
    for r in range(instance.resources):
        for t in range(instance.periods):
            limit = _limit(instance.low[r, t], instance.high[r, t], 0.0)
            if limit:
                yield f"{r} {t} {limit}"


def _limit(low: float, high: float, no_lower: float) -> str:
    if low > no_lower and np.isfinite(high):
        return f"I {_number(low)} {_number(high)}"
    if low > no_lower:
        return f"G {_number(low)}"
    return f"L {_number(high)}" if np.isfinite(high) else ""


def _cpit_lines(instance: Instance) -> Iterable[str]:
    yield from _head(instance, "CPIT")
    yield "OBJECTIVE_FUNCTION:"
    yield from (f"{b} {_number(v)}" for b, v in enumerate(instance.value.tolist()))
    yield "RESOURCE_CONSTRAINT_COEFFICIENTS:"
    for b, r in np.argwhere(instance.use).tolist():
        yield f"{b} {r} {_number(float(instance.use[b, r]))}"
    yield "EOF"


def _pcpsp_lines(instance: Instance) -> Iterable[str]:
    yield from _head(instance, "PCPSP")
    yield "OBJECTIVE_FUNCTION:"
    for b, values in enumerate(instance.destination_value.tolist()):
        yield " ".join([str(b), *map(_number, values)])
    yield "RESOURCE_CONSTRAINT_COEFFICIENTS:"
    for b, d, r in np.argwhere(instance.destination_use).tolist():
        yield f"{b} {d} {r} {_number(float(instance.destination_use[b, d, r]))}"
    if instance.general is not None:
        yield from _general_lines(instance.general)
    yield "EOF"


def _general_lines(rows: GeneralRows) -> Iterable[str]:
    yield "GENERAL_CONSTRAINT_COEFFICIENTS:"
    entries = zip(
        rows.block.tolist(),
        rows.destination.tolist(),
        rows.period.tolist(),
        rows.row.tolist(),
        rows.value.tolist(),
        strict=True,
    )
    yield from (f"{b} {d} {t} {j} {_number(v)}" for b, d, t, j, v in entries)
    yield "GENERAL_CONSTRAINT_LIMITS:"
    for j, (low, high) in enumerate(zip(rows.low.tolist(), rows.high.tolist(), strict=True)):
        yield f"{j} {_limit(low, high, -np.inf)}"
