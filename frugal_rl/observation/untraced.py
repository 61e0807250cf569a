"""Methods that run as written inside a compiled network, without loading the compiler for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Method = TypeVar("Method", bound=Callable[..., Any])
_WAITING: list[tuple[type, str, bool]] = []
"""(class, name of the method, whether what it calls is left alone too) of every such method."""


class _Untraced:
    """Stands for a method until its class is made, which then holds the method itself."""

    def __init__(self, method: Callable[..., Any], recursive: bool) -> None:
        self.method, self.recursive = method, recursive

    def __set_name__(self, owner: type, name: str) -> None:
        setattr(owner, name, self.method)
        _WAITING.append((owner, name, self.recursive))


def untraced(method: Method) -> Method:
    """Mark a method: `before_compiling` takes it, and what it calls, out of torch.compile's sight.

    `torch.compiler.disable` at import would load the compiler: 67 MiB and a second that a run
    without torch.compile never uses.
    """
    return cast(Method, _Untraced(method, recursive=True))


def untraced_alone(method: Method) -> Method:
    """The same, but what the method calls is compiled."""
    return cast(Method, _Untraced(method, recursive=False))


def before_compiling() -> None:
    """Take all marked methods out of what torch.compile reads."""
    disable: Any = torch.compiler.disable
    while _WAITING:
        owner, name, recursive = _WAITING.pop()
        setattr(owner, name, disable(getattr(owner, name), recursive=recursive))
