"""Marked methods are ordinary ones until somebody compiles."""

import torch

from frugal_rl.observation import untraced as marking
from frugal_rl.observation.untraced import before_compiling, untraced, untraced_alone


def test_marked_methods_are_taken_out_of_the_compilers_sight_when_it_is_needed(monkeypatch):
    hidden = []

    def disable(method, recursive):
        hidden.append((method.__name__, recursive))
        return lambda self: f"hidden {method(self)}"

    monkeypatch.setattr(torch.compiler, "disable", disable)
    monkeypatch.setattr(marking, "_WAITING", [])

    class Thing:
        @untraced
        def whole(self):
            return "whole"

        @untraced_alone
        def alone(self):
            return "alone"

    thing = Thing()
    assert (thing.whole(), thing.alone(), hidden) == ("whole", "alone", [])
    before_compiling()
    before_compiling()  # each of them once

    assert sorted(hidden) == [("alone", False), ("whole", True)]
    assert (thing.whole(), thing.alone()) == ("hidden whole", "hidden alone")
