"""A column that finds out by itself how its rows are kept smallest; exact whatever arrives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.store.column_spec import FIRST_LOOK
from frugal_rl.store.columns import Column
from frugal_rl.store.found.handled import (
    HandledColumn,
    StackedColumn,
    channels_last,
    lies_channels_last,
)
from frugal_rl.store.found.narrow import NarrowColumn
from frugal_rl.store.found.trial import AS_IT_IS, WORTH, Form, best_form, dense, frozen, used_bytes

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec

LOOK_AGAIN = 4
"""By how much later each further look at the first rollout comes."""
RECONSIDERED = frozenset(4**i for i in range(16))
"""Rollouts at whose end the form is chosen anew for those that follow."""
MOST_SHARE = 1.02
"""Of its rows as they are, what a rollout may take before another form is sought."""
OUTGROWN_FROM = 3
"""Rollouts that took more, after which one that does is followed by rows as they are."""
REDONE_BYTES = 16 << 20
"""The largest rollout that is kept as it is after all; larger ones are looked at on the way."""
MOST_ROWS = 512
"""Rows that one look tries forms on."""


@dataclass(frozen=True)
class Segment:
    """Steps [begin, begin + steps) of a rollout, in one column of their own."""

    begin: int
    steps: int
    form: Form
    column: Column


class FoundColumn(Column):
    """T steps of N environments, kept in the smallest form that was found for rows like theirs.

    The first rows wait as they are; a look at them chooses the form, later looks correct it. A
    rollout begins in the form that was best for the one before. Where rows of another kind come,
    the steps from there on are a segment of another form, so that nothing is held twice. A frozen
    form is tried against no other until rows of another kind come.
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int) -> None:
        self.spec, self.steps, self.num_envs = spec, steps, num_envs
        self._shape = (num_envs, *spec.shape)
        self.form = AS_IT_IS
        self.rollouts = 0
        self._most_bytes = 0
        self._outgrown = 0
        self._channels_last = False
        self._frozen = frozen(spec)
        if self._frozen is not None:
            self.form, self._look_at = self._frozen, 0
            self.segments = [self._segment(0, self.form)]
            return
        self._look_at = min(FIRST_LOOK, steps)
        waiting = dense(spec, self._look_at, num_envs)
        self.segments = [Segment(0, self._look_at, AS_IT_IS, waiting)]

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Keep step t; looks at what is there where it is time to.

        Rows of another type or shape become what an array would make of them in an assignment, and
        those of a subclass (a masked array) their values.
        """
        shown = np.asarray(shown)
        if shown.dtype != self.spec.dtype or shown.shape != self._shape:
            shown = np.broadcast_to(shown.astype(self.spec.dtype), self._shape)
        if not shown.flags.writeable:  # kernels would be compiled anew for such arrays
            shown = shown.copy("K")
        if t == 0:
            self._begin()
            self._channels_last = lies_channels_last(shown)
        segment = self.segments[-1]
        segment.column.write(t - segment.begin, shown, age)
        seen = t + 1
        if seen == self._look_at:
            self._look(seen)
        elif seen % FIRST_LOOK == 0 and seen < self.steps and self._too_large(seen):
            self._change(seen)
        if seen == self.steps:
            if self._frozen is None:
                self._consider_following(seen)
            if self.rollouts > 1:
                self._most_bytes = max(self._most_bytes, self.nbytes)

    def _consider_following(self, seen: int) -> None:
        """At the end of a rollout: the form of those that follow, where it is time or went wrong.

        Short rollouts end before a look at them. One that took more than its rows as they are is
        kept so after all, and the next one begins in another form; where that comes again and
        again, in none.
        """
        dense_bytes = self.spec.dense_bytes(self.steps, self.num_envs)
        outgrown = self.nbytes > MOST_SHARE * dense_bytes
        self._outgrown += outgrown
        if self.rollouts in RECONSIDERED or (outgrown and self._outgrown <= OUTGROWN_FROM):
            self.form = self._best(seen)
        elif outgrown:
            self.form = AS_IT_IS
        if outgrown and dense_bytes <= REDONE_BYTES:
            self.segments = [self._rewritten(0, seen, AS_IT_IS)]

    def _begin(self) -> None:
        """A rollout begins; memory is kept where the form stays the same."""
        self.rollouts += 1
        if self.rollouts == 1:
            return
        self.form, first = self._frozen or self.form, self.segments[0]
        if first.form.name != self.form.name or first.steps < self.steps:
            self.segments = [self._segment(0, self.form)]
        self.segments = [self.segments[0]]

    def _segment(self, begin: int, form: Form) -> Segment:
        steps = self.steps - begin
        return Segment(begin, steps, form, form.make(self.spec, steps, self.num_envs))

    def _best(self, seen: int) -> Form:
        """The smallest form for the newest of the rows seen."""
        first = max(0, seen - max(4, MOST_ROWS // self.num_envs))
        t, n = np.divmod(np.arange(first * self.num_envs, seen * self.num_envs), self.num_envs)
        rows = self._lying(self.gather(t, n, None, None))
        rows = rows.reshape(-1, self.num_envs, *self.spec.shape)
        return best_form(self.spec, rows, self.steps, self.segments[-1].form.name)

    def _lying(self, rows: np.ndarray) -> np.ndarray:
        """Rows [B, *shape] in memory as those that come lie there."""
        return channels_last(rows) if self._channels_last else rows

    def _look(self, seen: int) -> None:
        """Choose the smallest form in the first rollout, for the rows of before where they gain."""
        later = LOOK_AGAIN * seen
        self._look_at = later if later < self.steps else 0
        form, held = self._best(seen), self.segments[-1]
        if form.name == held.form.name and held.steps == self.steps - held.begin:
            return
        self.form = form
        row_bytes = min(form.row_bytes, self.spec.row_bytes)
        gains = self._used(seen) > row_bytes * (seen - held.begin) * self.num_envs
        if not gains and held.begin + held.steps > seen:
            self._append(seen)
            return
        self.segments[-1] = self._rewritten(held.begin, seen, form)

    def _rewritten(self, begin: int, seen: int, form: Form) -> Segment:
        """Steps [begin, seen) in a segment of their own in another form."""
        segment, every = self._segment(begin, form), np.arange(self.num_envs)
        for t in range(begin, seen):
            rows = self._lying(self.gather(np.full(self.num_envs, t), every, None, None))
            segment.column.write(t - begin, rows, None)
        return segment

    def _used(self, seen: int) -> float:
        """Bytes that the rows of the newest segment take."""
        segment = self.segments[-1]
        return used_bytes(segment.column, seen - segment.begin, segment.steps)

    def predicted_bytes(self, seen: int) -> float:
        """Bytes once the rollout is full, if the rows to come are like the newest `seen`."""
        if self.rollouts > 1 or not seen:
            return self.nbytes
        rate = min(self._used(seen) / max(1, seen - self.segments[-1].begin), self._dense_rate)
        return max(self.nbytes, self._used(seen) + rate * (self.steps - seen))

    @property
    def _dense_rate(self) -> int:
        """Bytes of one step as it is."""
        return self.spec.dense_bytes(1, self.num_envs)

    def _too_large(self, seen: int) -> bool:
        """Whether the newest segment takes about as much as its rows would as they are."""
        segment = self.segments[-1]
        steps = seen - segment.begin
        if segment.form.name == AS_IT_IS.name or steps < max(FIRST_LOOK, self.steps // 8):
            return False
        return self._used(seen) > WORTH * self.spec.dense_bytes(steps, self.num_envs)

    def _change(self, seen: int) -> None:
        """Keep the steps from here on in the form that is best now."""
        form = self._best(seen)
        if form.name != self.segments[-1].form.name:
            self.form = form
            self._append(seen)

    def _append(self, seen: int) -> None:
        """End the newest segment, and begin another one in the form of now."""
        held = self.segments[-1]
        if isinstance(held.column, HandledColumn | StackedColumn | NarrowColumn):
            held.column.trim(seen - held.begin)
            self.segments[-1] = replace(held, steps=seen - held.begin)
        self.segments.append(self._segment(seen, self.form))

    def gather(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray | None
    ) -> np.ndarray:
        """Rows of the samples, written into `out`."""
        if len(self.segments) == 1:
            return np.asarray(self.segments[0].column.gather(t, n, None, out))
        out = np.empty((len(t), *self.spec.shape), self.spec.dtype) if out is None else out
        begins = [segment.begin for segment in self.segments]
        owner = np.searchsorted(begins, t, side="right") - 1
        for place, segment in enumerate(self.segments):
            here = np.flatnonzero(owner == place)
            if not len(here):
                continue
            out[here] = segment.column.gather(t[here] - segment.begin, n[here], None, None)
        return out

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(segment.column.nbytes for segment in self.segments)

    @property
    def most_bytes(self) -> int:
        """Bytes of the largest full rollout after the first one, which looks for its form."""
        return max(self._most_bytes, self.nbytes)
