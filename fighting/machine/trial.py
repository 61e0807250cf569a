"""Strangers' save states are tried in a process of their own: one that is wrong can end it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from fighting.machine.emulator import Emulator, StateError

TRIED_FRAMES = 30
TRIAL_SECONDS = 30.0
"""Far more than a sound state takes, importing the emulator included."""
REFUSED = 3
CHILD = "import sys; sys.path[:] = sys.argv[1:]; from fighting.machine.trial import main; main()"


def try_states(rom: bytes, states: Iterable[bytes]) -> None:
    """Go on from each state for some frames, in a child, before this process is trusted to them.

    The emulator takes a state's counters as they are: with some of them its next frame never ends.

    Raises:
        StateError: one cannot be loaded, or the emulator ends or hangs with it.
    """
    pieces = [rom, *dict.fromkeys(states)]
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *sys.path],
            input=b"".join(len(piece).to_bytes(8, "little") + piece for piece in pieces),
            capture_output=True,
            timeout=TRIAL_SECONDS + len(pieces),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StateError(f"the emulator hangs with {_what(pieces)}") from error
    if done.returncode == REFUSED:
        raise StateError(done.stdout.decode(errors="replace").strip())
    if done.returncode != 0:
        raise StateError(f"the emulator fails with {_what(pieces)} (exit {done.returncode})")


def _what(pieces: list[bytes]) -> str:
    """The states of a trial, as an error names them."""
    if len(pieces) == 2:
        return f"this state of {len(pieces[1]):,} bytes"
    return f"one of these {len(pieces) - 1} states"


def main() -> None:
    """The child: a cartridge and states from standard input."""
    request, pieces = sys.stdin.buffer.read(), []
    while request:
        end = 8 + int.from_bytes(request[:8], "little")
        pieces.append(request[8:end])
        request = request[end:]
    emulator = Emulator(pieces[0])
    for state in pieces[1:]:
        try:
            emulator.load(state)
        except StateError as error:
            print(error)
            sys.exit(REFUSED)
        emulator.tick(TRIED_FRAMES, True)
