"""One model of a report, written as Markdown or as a web page that needs no other file."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from frugal_rl.report.files import write_text

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
       color: #1c2330; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #d5dae2; padding: .3rem .7rem; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { background: #f2f4f8; } img { max-width: 100%; } code { background: #f2f4f8; padding: 0 .2rem; }
"""


@dataclass(frozen=True)
class TableBlock:
    """A table of words."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class PictureBlock:
    """A picture, and the sentence that says what it shows."""

    path: Path
    caption: str


Block = str | TableBlock | PictureBlock


@dataclass
class Document:
    """A title and blocks in order."""

    title: str
    blocks: list[Block] = field(default_factory=list)

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        self.blocks += blocks

    def markdown(self, folder: Path) -> str:
        """As Markdown; pictures are named relative to `folder`."""
        parts = [f"# {self.title}"]
        for block in self.blocks:
            if isinstance(block, str):
                parts.append(block)
            elif isinstance(block, TableBlock):
                parts.append(_markdown_table(block))
            else:
                at = block.path.relative_to(folder)
                parts.append(f"![{block.caption}]({at})\n\n{block.caption}")
        return "\n\n".join(parts) + "\n"

    def page(self) -> str:
        """As one HTML page with its pictures inside."""
        parts = [f"<h1>{html.escape(self.title)}</h1>"]
        for block in self.blocks:
            if isinstance(block, str):
                parts.append(f"<p>{html.escape(block)}</p>")
            elif isinstance(block, TableBlock):
                parts.append(_page_table(block))
            else:
                data = base64.b64encode(block.path.read_bytes()).decode()
                caption, kind = html.escape(block.caption), block.path.suffix[1:]
                parts.append(
                    f'<figure><img alt="{caption}" src="data:image/{kind};base64,{data}">'
                    f"<figcaption>{caption}</figcaption></figure>"
                )
        head = f'<meta charset="utf-8"><title>{html.escape(self.title)}</title>'
        body = "\n".join(parts)
        return f"<!doctype html><html><head>{head}<style>{STYLE}</style></head>{body}</html>\n"

    def write(self, folder: Path, name: str = "report") -> list[Path]:
        """Both forms into a folder; returns their paths."""
        paths = [folder / f"{name}.md", folder / f"{name}.html"]
        write_text(paths[0], self.markdown(folder))
        write_text(paths[1], self.page())
        return paths


def _markdown_table(table: TableBlock) -> str:
    lines = [table.columns, tuple("---" for _ in table.columns), *table.rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped)


def _page_table(table: TableBlock) -> str:
    head = "".join(f"<th>{html.escape(c)}</th>" for c in table.columns)
    rows = []
    for row in table.rows:
        cells = "".join(
            f'<td class="number">{html.escape(c)}</td>'
            if c[:1].isdigit() or c[:1] in "+-"
            else f"<td>{html.escape(c)}</td>"
            for c in row
        )
        rows.append(f"<tr>{cells}</tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
