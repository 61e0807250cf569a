"""Says which kernel is being compiled, to whoever watches this process or the one that asked it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import event

from frugal_rl.doing import doing
from frugal_rl.memory.child import words_file


class Compiling(event.Listener):
    """Counts kernels that Python calls; what they are made of is compiled inside them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.depth = self.count = 0
        self.said = ExitStack()

    def on_start(self, event: Any) -> None:
        """A function begins to be compiled."""
        self.depth += 1
        if self.depth == 1:
            self.count += 1
            words = f"compiling {event.data['dispatcher'].py_func.__name__}, kernel {self.count}"
            self.said.enter_context(doing(words))
            if self.path is not None:
                with suppress(OSError):  # a full disk: the kernel is compiled all the same
                    self.path.write_text(words)

    def on_end(self, event: Any) -> None:
        """It is compiled."""
        self.depth -= 1
        if self.depth == 0:
            self.said.close()


@contextmanager
def told_compiling() -> Iterator[Compiling]:
    """Tell which kernels are compiled inside the block; a child process tells its parent."""
    listener = Compiling(words_file())
    with event.install_listener("numba:compile", listener):
        yield listener
