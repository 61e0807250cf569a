"""A report on W&B with the content of the page: its text and tables, and panels for its pictures.

Needs the package wandb-workspaces, a key, and runs that were sent (`wandb sync`). Pictures of a
page are drawn by W&B itself, from the same metrics under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing, program
from frugal_rl.report.document import (
    Block,
    CommandBlock,
    Document,
    Heading,
    PictureBlock,
    TableBlock,
    markdown_table,
)
from frugal_rl.report.plots import MEMORY

STEP = "global_step"
"""Our own step, which survives a resume."""
MEMORY_METRICS = ("plan/ram_bytes", "memory/peak_bytes")
GROUP = "memory.profile"


def save_report(document: Document, entity: str, project: str) -> str:
    """Write the report to W&B; its address.

    Raises:
        ConfigError: the package or the entity is missing, or W&B refuses.
    """
    check_sending(entity)
    try:
        wr = import_module("wandb_workspaces.reports.v2")
        report = wr.Report(entity=entity, project=project, title=document.title)
        report.blocks = _blocks(document, entity, project, wr)
        report.save()
    except Exception as error:  # of wandb's many kinds, none of which means us
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigError(
            f"W&B does not take the report ({reason[0]}). Log in with "
            f"`{program('wandb', 'login')}`, send the runs with "
            f"`{program('wandb', 'sync')} FOLDER`, and check entity= and project=."
        ) from error
    return str(report.url)


def check_sending(entity: str) -> None:
    """Refuse what cannot be sent, before anything is drawn for it.

    Raises:
        ConfigError: the package or the entity is missing.
    """
    if not entity:
        raise ConfigError("format=wandb needs entity=NAME, the user or team that the runs are of.")
    if find_spec("wandb_workspaces") is None:
        raise ConfigError(f"format=wandb needs the package wandb-workspaces: {installing('viz')}")


def _blocks(document: Document, entity: str, project: str, wr: Any) -> list[Any]:
    """The document's blocks as W&B's, in their order; pictures of a section share one grid."""
    made: list[Any] = [wr.TableOfContents()]
    section, pictures = "", dict[str, PictureBlock]()
    for block in document.blocks:
        if isinstance(block, PictureBlock) and block.metric:
            pictures.setdefault(block.metric, block)  # several pages draw one panel
            continue
        made += _grid(section, pictures, entity, project, wr)
        pictures = {}
        section = block.text if isinstance(block, Heading) else section
        made.append(_block(block, wr))
    return made + _grid(section, pictures, entity, project, wr)


def _block(block: Block, wr: Any) -> Any:
    if isinstance(block, Heading):
        return wr.H2(block.text)
    if isinstance(block, TableBlock):
        return wr.MarkdownBlock(markdown_table(block))
    if isinstance(block, CommandBlock):
        return wr.CodeBlock("\n".join(block.lines), language=None)  # W&B knows no shell
    if isinstance(block, PictureBlock):  # a file of the run, which W&B has under its own name
        return wr.P(f"{block.caption}: {block.path.name}")
    return wr.P(str(block))


def _panel(picture: PictureBlock, wr: Any) -> Any:
    """The panel that draws what a picture shows."""
    if picture.metric == MEMORY:
        title = "Peak memory, planned beside held"
        return wr.BarPlot(title=title, metrics=[wr.SummaryMetric(m) for m in MEMORY_METRICS])
    return wr.LinePlot(
        title=picture.metric,
        x=STEP,
        y=[picture.metric],
        groupby=wr.Config(GROUP),
        groupby_rangefunc="minmax",
    )


def _grid(
    env: str, pictures: Mapping[str, PictureBlock], entity: str, project: str, wr: Any
) -> list[Any]:
    """The panels of one environment, over its runs alone."""
    if not pictures:
        return []
    runs = wr.Runset(entity=entity, project=project, name=env, query=env)
    return [wr.PanelGrid(runsets=[runs], panels=[_panel(p, wr) for p in pictures.values()])]
