"""One self-contained HTML page about a schedule: figures, tables, pictures and the slope audit."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from mine_rl_npv.data.economics import model_instance, money_source
from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.data.vertical import ASSUMED
from mine_rl_npv.data.whole_files import write_whole
from mine_rl_npv.optimise.pits import penalised_pits
from mine_rl_npv.tools import views
from mine_rl_npv.tools.constrained import solve_mine
from mine_rl_npv.tools.solve_config import BoundKind, Method, SolveConfig

if TYPE_CHECKING:
    from mine_rl_npv.data.block_model import BlockModel
    from mine_rl_npv.tools.solution import Solution

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #18794e; --bad: #c62a2f; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0 0; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; margin-bottom: 1rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; background: #fff; }
.wide th, .wide td { white-space: nowrap; }
.told td:last-child { white-space: normal; text-align: left; overflow-wrap: anywhere; }
@media screen { .broad img { max-width: none; width: max(100%, 46rem); } }
pre { font-size: .8rem; } @media (min-width: 62rem) { pre { white-space: pre-wrap; } }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.if { border: 3px solid var(--bad); padding: .6rem 1rem; font-weight: 600; }
@media print { body { max-width: none; font-size: 11pt; } h2 { break-after: avoid; }
img, table { break-inside: avoid; } pre { font-size: 7pt; white-space: pre-wrap; }
.wide { overflow: visible; } table { font-size: 9pt; }
.wide th, .wide td { white-space: normal; padding: .2rem .4rem; } }
"""
SENSITIVITY_BLOCKS = 20_000
"""Above so many blocks the page leaves the sensitivity out: it is six more schedules."""


def write_page(
    solution: Solution, model: BlockModel | None, config: SolveConfig, path: str | Path
) -> Path:
    """Writes the page; nothing in it is fetched from anywhere."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{html.escape(solution.instance.name)}: schedule</title>",
        f"<style>{STYLE}</style></head><body>",
        *_body(solution, model, config),
        "</body></html>",
    ]
    write_whole(Path(path), parts, encoding="utf-8")
    return Path(path)


def _body(solution: Solution, model: BlockModel | None, config: SolveConfig) -> Iterator[str]:
    instance, shares = solution.instance, solution.shares
    assert shares is not None
    period = period_of(shares)
    yield f"<h1>{html.escape(instance.name)}</h1>"
    if solution.condition:
        yield f"<p class='if'>{html.escape(solution.notes[-1])}</p>"
    size = f"{instance.blocks:,} blocks, {instance.graph.arcs:,} precedences"
    yield f"<p>{size}, {instance.periods} periods at {100 * instance.rate:g} % each.</p>"
    yield from _certificate(solution, model)
    if solution.notes:
        yield f"<div class='wide'><pre>{html.escape(chr(10).join(solution.notes))}</pre></div>"
    yield "<h2>Periods</h2>"
    yield _table(*_periods(instance, shares))
    if (period == NEVER).all():
        yield f"<p>{html.escape(' '.join(solution.notes) or 'Nothing is mined.')}</p>"
        return
    yield _picture(views.period_figure(instance, shares), "figures per period", broad=True)
    yield "<h2>Pit</h2>"
    words = "plan and sections, coloured by period"
    yield _picture(views.sections(instance, period), words, broad=True)
    yield _picture(views.voxels(instance, period), "the pit in 3D, the near quarter cut away")
    if "cu" in instance.fields:
        yield _picture(views.grade_tonnage(instance), "tonnage and grade above a cut-off")
    yield "<h2>Nested pits</h2>"
    yield _picture(views.pit_by_pit(penalised_pits(instance, 40).distinct()), "nested pits")
    if model is not None and instance.blocks <= SENSITIVITY_BLOCKS:
        yield "<h2>Sensitivity</h2>"
        yield _table(*_sensitivity(model, config, solution))
        yield "<p>Each row is scheduled anew by TopoSort and audited; the capacities stay.</p>"
    if model is not None:
        yield f"<h2>Columns</h2><p>{html.escape(model.reading)}</p>"


def _certificate(solution: Solution, model: BlockModel | None) -> Iterator[str]:
    verdict = solution.verdict
    sure = not solution.condition
    kept = None if verdict.slopes is None else sure and verdict.slopes.kept
    rows = [
        ("method", html.escape(solution.method)),
        ("value", f"{verdict.value:,.2f}"),
        ("certified bound", f"{solution.upper:,.2f}"),
        ("gap", f"{solution.gap_percent:.4f} %"),
        ("feasible", _verdict(solution.feasible_line(), sure and verdict.feasible)),
        ("slopes", _verdict(solution.slopes_line(), kept)),
        ("time", f"{solution.seconds:.1f} s, bound {solution.bound_seconds:.1f} s"),
    ]
    if model is not None and model.vertical:
        rows.append(("vertical", _verdict(model.vertical, ASSUMED not in model.vertical)))
    cells = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows)
    yield f"<div class='wide told'><table>{cells}</table></div>"


def _verdict(words: str, good: bool | None) -> str:
    """Words in the colour of what they say; in none where nothing was judged."""
    kind = {True: " class='good'", False: " class='bad'", None: ""}[good]
    return f"<span{kind}>{html.escape(words)}</span>"


def _periods(instance: Instance, shares: np.ndarray) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table of periods; the first period is number 1."""
    figures = views.by_period(instance, shares)
    head = ["period", "tonnes", "cash flow", "cumulative NPV"]
    limits = [r for r in range(instance.resources) if np.isfinite(figures[f"share_{r}"]).any()]
    head += [f"use of {instance.limit_names[r]}" for r in limits]
    head += ["mean cu of ore, %"] if "grade" in figures else []
    rows = []
    for t in range(instance.periods):
        row = [str(t + 1)]
        row += [f"{figures[name][t]:,.0f}" for name in ("tonnes", "cash", "npv")]
        used = [figures[f"share_{r}"][t] for r in limits]
        row += ["no limit" if np.isnan(u) else f"{100 * u:.1f} %" for u in used]
        row += [f"{figures['grade'][t]:.3f}"] if "grade" in figures else []
        rows.append(row)
    return head, rows


def _sensitivity(
    model: BlockModel, config: SolveConfig, solution: Solution
) -> tuple[list[str], list[list[str]]]:
    """Value, bound and pit when prices and mining costs move by a fifth."""
    high = solution.instance.high
    head = ["change", "value", "bound", "gap, %", "blocks mined", "slopes"]
    rows = []
    for words, name, factor in (
        ("as given", "copper_price", 1.0),
        ("copper price -20 %", "copper_price", 0.8),
        ("copper price -10 %", "copper_price", 0.9),
        ("copper price +10 %", "copper_price", 1.1),
        ("copper price +20 %", "copper_price", 1.2),
        ("mining cost -20 %", "mining_cost", 0.8),
        ("mining cost +20 %", "mining_cost", 1.2),
    ):
        if money_source(model, config.economics) and factor != 1.0:
            continue
        changed = replace(config.economics, **{name: factor * getattr(config.economics, name)})
        instance = replace(model_instance(model, changed, config.plan), high=high)
        found = solve_mine(
            instance, replace(config, method=Method.toposort, bound=BoundKind.lp, decodes=0)
        )
        assert found.shares is not None
        rows.append(
            [
                words,
                f"{found.verdict.value:,.0f}",
                f"{found.upper:,.0f}",
                f"{found.gap_percent:.2f}",
                f"{int((period_of(found.shares) != NEVER).sum()):,}",
                "kept" if found.verdict.feasible else "BROKEN",
            ]
        )
    return head, rows


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{html.escape(word)}</th>" for word in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>" for row in rows
    )
    return f"<div class='wide'><table><tr>{top}</tr>{body}</table></div>"


def _picture(figure: Figure, words: str, broad: bool = False) -> str:
    """A picture; a broad one keeps its width on a phone, where it can be pushed sideways."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100, format="png")
    data = base64.b64encode(drawn.getvalue()).decode("ascii")
    kind = "wide broad" if broad else "wide"
    picture = f"<img alt='{html.escape(words)}' src='data:image/png;base64,{data}'>"
    return f"<div class='{kind}'>{picture}</div>"
