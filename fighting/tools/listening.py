"""The probe guided by what happened: somebody plays, or a recording does, and marks say what was.

`scripts/play.py env=fighting_game_boy env.rom=my.gb probe=person record=found` opens a window; the
keys X, C and V mark a loss, a gain and that nothing happened. `probe=replay replay=my.replay
marks=my.csv` takes both from files. After each mark a line says how many addresses are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fighting.machine.emulator import FRAMES_PER_SECOND, Emulator
from fighting.tools.address_search import Found, told, written
from fighting.tools.candidates import WORK_RAM, WORK_RAM_BYTES
from fighting.tools.evidence import Evidence
from fighting.tools.marks import KEYS, Mark, Moment, read_marks
from frugal_rl.errors import DataError

if TYPE_CHECKING:
    from fighting.cartridge.profile import Profile
    from fighting.tools.replay import CartridgeReplay, Replay
    from frugal_rl.run.play import PlayOptions

MOST_FRAMES = 18_000
"""Five minutes: 141 MiB of work memory."""


class Listener:
    """Keeps every frame's work memory, hears marks, and searches when play is over.

    Args:
        frames: of play at most.
    """

    def __init__(self, frames: int = MOST_FRAMES) -> None:
        self.most = min(frames, MOST_FRAMES)
        self.memory = np.zeros((self.most, WORK_RAM_BYTES), np.uint8)  # untouched rows take none
        self.evidence = Evidence()
        self.moments: list[Moment] = []

    @property
    def frames(self) -> int:
        """How many were seen."""
        return self.evidence.frames

    def see(self, emulator: Emulator) -> None:
        """A frame that was emulated."""
        row = self.memory[self.frames]
        row[:] = emulator.read(WORK_RAM, WORK_RAM_BYTES)
        self.evidence.see(row)

    def hear(self, mark: Mark) -> Iterator[str]:
        """A mark at the frame that was seen last; lines of what is left."""
        self.moments.append(Moment(self.frames - 1, mark))
        self.evidence.hear(mark)
        seconds = (self.frames - 1) / FRAMES_PER_SECOND
        yield f"{len(self.moments)}. {mark.name} (frame {self.frames - 1}, {seconds:.1f} s)"
        yield from self.evidence.lines()

    def pressed(self, keys: Sequence[str], caption: Callable[[str], None]) -> Iterator[str]:
        """The marks among keys that were pressed; what is left stands in the caption too."""
        for key in (k for k in keys if k in KEYS):
            yield from self.hear(KEYS[key])
            caption(self.evidence.summary() or "no loss or gain was marked yet")

    def found(self, game: Profile, folder: str, rom: str) -> Iterator[str]:
        """Lines for a profile's `memory:`, and the files written.

        Raises:
            DataError: no mark told of a loss or a gain.
        """
        if not any(moment.mark is not Mark.nothing for moment in self.moments):
            raise DataError(
                f"Nothing was marked as lost or gained in {self.frames} frames, so nothing is "
                "known: press X after a loss and C after a gain, within two seconds."
            )
        memory = self.memory[: self.frames]
        found = Found.marked(memory, self.evidence, self.moments, game)
        yield f"# {self.frames} frames and {len(self.moments)} marks on '{game.id}'."
        yield from told(found, "what fell before 'lost'", "what moved before 'gained'")
        if folder:
            yield from written(found, game, Path(folder), rom)
        yield "# Check them (status: verified), e.g. by marking another game."


def heard(
    replay: Replay | CartridgeReplay, options: PlayOptions, game: Profile, rom: str
) -> Iterator[str]:
    """A recording is played again, and its file of marks heard; a line for each.

    Raises:
        DataError: the recording is empty or too long, or a mark does not fit it.
    """
    frames = min(replay.length, options.frames or replay.length)
    if not frames or frames > MOST_FRAMES:
        raise DataError(
            f"{options.replay} has {frames} frames; 1 to {MOST_FRAMES} are listened to. "
            + (f"Add frames={MOST_FRAMES} for the first of them." if frames else "Record it again.")
        )
    moments = read_marks(Path(options.marks), frames, options.replay)
    listener, emulator = Listener(frames), replay.opened()
    try:
        for number in replay.play(emulator):
            listener.see(emulator)
            for moment in (m for m in moments if m.frame == number):
                yield from listener.hear(moment.mark)
            if number == frames - 1:
                break
    finally:
        emulator.close()
    yield from listener.found(game, options.record, rom)
