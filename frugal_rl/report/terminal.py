"""What goes to the terminal: tables as wide as it is, and lines that can be pasted whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import StringIO
from textwrap import wrap

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from frugal_rl.report.streams import lead_nowhere, visible

PIPE_WIDTH = 4096
"""Columns of tables where no terminal says how wide it is: a pipe wraps nothing."""


class LastingConsole(Console):
    """Goes on where nobody reads any more, as behind `| head -1`; rich would end the process."""

    def on_broken_pipe(self) -> None:
        """Say nothing from now on."""
        self.quiet = True
        lead_nowhere(sys.stdout)  # what others print has a place to go to as well


def open_console() -> Console:
    """A console that prints what it is given: brackets are brackets, a pipe gets no colours."""
    console = LastingConsole(markup=False, emoji=False, highlight=False)
    if console.is_terminal:
        return console
    return LastingConsole(markup=False, emoji=False, width=PIPE_WIDTH)


def show(view: object, console: Console | None = None) -> None:
    """Print a table, or several things one below the other.

    A terminal too narrow for a table's words gets a paragraph per row: cells would be cut, and an
    override broken in two.
    """
    console = console or open_console()
    if isinstance(view, Group):
        for part in view.renderables:
            show(part, console)
    elif isinstance(view, Table) and not _holds_words(view, console.width):
        for line in _paragraphs(view, console.width):
            say(line, console)
    else:
        console.print(view)


def _holds_words(table: Table, width: int) -> bool:
    """Whether a table of so many columns shows each word whole."""
    file = StringIO()
    Console(file=file, width=width, color_system=None, markup=False, emoji=False).print(table)
    cells = [str(c) for column in table.columns for c in (column.header, *column.cells)]
    return all(word in file.getvalue() for cell in cells for word in cell.split())


def _paragraphs(table: Table, width: int) -> Iterator[str]:
    """A table's title, then each row: its first cell, and the others behind their headings."""
    if table.title:
        yield str(table.title)
    names = [str(column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        first, *others = (str(cell) for cell in row)
        told = [f"{n} {c}" for n, c in zip(names[1:], others, strict=True) if c not in ("", "-")]
        words = f"{first}: {'; '.join(told)}"
        yield from wrap(
            words, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )


def say(line: str, console: Console | None = None) -> None:
    """Print one line unwrapped and uncut, so that a path or a command in it can be pasted.

    Args:
        line: the text; control characters other than tabs are shown, not obeyed.
        console: the one that a progress bar lives on; None means standard output.
    """
    (console or open_console()).print(Text(visible(line)), soft_wrap=True, highlight=False)
