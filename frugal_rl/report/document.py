"""One model of a report, written as Markdown or as a web page that needs no other file."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from frugal_rl.report.files import write_text

LONG = 40
"""Characters from which on a cell keeps some width where a phone has little."""
STYLE = """
:root { color-scheme: light dark; --text: #1c2330; --page: #fff; --soft: #f2f4f8; --line: #d5dae2; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe4ee; --page: #14181f; --soft: #222936; --line: #3a4354; }
  img.chart { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; }
}
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1rem;
       color: var(--text); background: var(--page); overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto;
        font-size: .87em; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: left;
         overflow-wrap: normal; min-width: 3rem; }
td.long { min-width: 18rem; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { background: var(--soft); } th.number { text-align: right; }
figure { display: inline-block; vertical-align: top; width: 37.5rem; max-width: 100%;
         margin: 1rem .8rem 1rem 0; } figcaption { font-size: .9em; opacity: .8; }
img { max-width: 100%; background: #fff; border-radius: 4px; }
pre { background: var(--soft); padding: .6rem .8rem; white-space: pre-wrap; }
@media print {
  :root { --text: #000; --page: #fff; --soft: #eee; --line: #999; }
  body { margin: 0; max-width: none; font-size: 11px; }
  img.chart { filter: none; mix-blend-mode: normal; max-width: 78%; }
  table { display: table; font-size: 9px; } th, td { padding: .15rem .3rem; min-width: 0; }
  td.long { min-width: 11rem; } figure { display: block; width: auto; }
  figure, tr { break-inside: avoid; } h2 { break-after: avoid; }
}
"""


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    text: str


@dataclass(frozen=True)
class CommandBlock:
    """Lines to be pasted into a shell."""

    lines: Sequence[str]


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
    metric: str = ""
    """What it draws, where that is a metric."""


Block = str | Heading | CommandBlock | TableBlock | PictureBlock


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
        parts = [f"# {_plain(self.title)}", *(_markdown_block(b, folder) for b in self.blocks)]
        return "\n\n".join(parts) + "\n"

    def page(self) -> str:
        """As one HTML page with its pictures inside."""
        head = (
            '<meta charset="utf-8"><meta name="viewport" content="width=device-width, '
            f'initial-scale=1"><title>{html.escape(self.title)}</title><style>{STYLE}</style>'
        )
        title = f"<h1>{html.escape(self.title)}</h1>"
        body = "\n".join([title, *(_page_block(b) for b in self.blocks)])
        return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'

    def write(
        self, folder: Path, name: str = "report", forms: Sequence[str] = ("md", "html")
    ) -> list[Path]:
        """Some forms into a folder; returns their paths."""
        texts = {"md": lambda: self.markdown(folder), "html": self.page}
        paths = [folder / f"{name}.{form}" for form in forms]
        for form, path in zip(forms, paths, strict=True):
            write_text(path, texts[form]())
        return paths


def _markdown_block(block: Block, folder: Path) -> str:
    if isinstance(block, str):
        return _plain(block)
    if isinstance(block, Heading):
        return f"## {_plain(block.text)}"
    if isinstance(block, CommandBlock):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", "".join(block.lines))), default=0))
        return "\n".join([f"{fence}bash", *block.lines, fence])
    if isinstance(block, TableBlock):
        return markdown_table(block)
    caption = _plain(block.caption)
    return f"![{caption}]({block.path.relative_to(folder).as_posix()})\n\n{caption}"


def _page_block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{html.escape(block)}</p>"
    if isinstance(block, Heading):
        return f"<h2>{html.escape(block.text)}</h2>"
    if isinstance(block, CommandBlock):
        return f"<pre>{html.escape(chr(10).join(block.lines))}</pre>"
    if isinstance(block, TableBlock):
        return _page_table(block)
    data = base64.b64encode(block.path.read_bytes()).decode()
    caption, kind = html.escape(block.caption), block.path.suffix[1:]
    chart = ' class="chart"' if block.metric else ""
    return (
        f'<figure><img{chart} alt="{caption}" src="data:image/{kind};base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _plain(text: str) -> str:
    """Text in which Markdown sees no link, picture or tag, and a terminal no command."""
    shown = re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda c: f"\\x{ord(c[0]):02x}", text)
    return re.sub(r"([\\`\[\]<>])", r"\\\1", shown)


def markdown_table(table: TableBlock) -> str:
    """A table in Markdown."""
    lines = [table.columns, tuple("---" for _ in table.columns), *table.rows]
    escaped = [[_plain(cell).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped)


def _page_table(table: TableBlock) -> str:
    numbers = [all(map(_is_number, cells)) for cells in zip(*table.rows, strict=True)]
    kinds = [' class="number"' if number else "" for number in numbers]
    titles = zip(table.columns, kinds or [""] * len(table.columns), strict=True)
    head = "".join(f"<th{kind}>{html.escape(c)}</th>" for c, kind in titles)
    rows = []
    for row in table.rows:
        cells = "".join(
            f'<td class="number">{html.escape(c)}</td>'
            if _is_number(c)
            else f'<td class="long">{html.escape(c)}</td>'
            if len(c) > LONG
            else f"<td>{html.escape(c)}</td>"
            for c in row
        )
        rows.append(f"<tr>{cells}</tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _is_number(cell: str) -> bool:
    """Whether a cell stands on the right: a number, or a dash for none."""
    return cell[:1].isdigit() or cell[:1] in "+-"
