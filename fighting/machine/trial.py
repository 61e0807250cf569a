"""A stranger's save state is tried in a process of its own: one that is wrong can end it."""

from __future__ import annotations

import subprocess
import sys

from fighting.machine.emulator import Emulator, StateError

TRIED_FRAMES = 30
TRIAL_SECONDS = 30.0
"""Far more than a sound state takes, importing the emulator included."""
REFUSED = 3
CHILD = "import sys; sys.path[:] = sys.argv[1:]; from fighting.machine.trial import main; main()"


def try_state(rom: bytes, state: bytes) -> None:
    """Go on from a state for some frames, in a child, before this process is trusted to it.

    The emulator takes a state's counters as they are: with some of them its next frame never ends.

    Raises:
        StateError: it cannot be loaded, or the emulator ends or hangs with it.
    """
    request = len(rom).to_bytes(8, "little") + rom + state
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *sys.path],
            input=request,
            capture_output=True,
            timeout=TRIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StateError(f"the emulator hangs with this state of {len(state):,} bytes") from error
    if done.returncode == REFUSED:
        raise StateError(done.stdout.decode(errors="replace").strip())
    if done.returncode != 0:
        raise StateError(f"the emulator fails with this state (exit {done.returncode})")


def main() -> None:
    """The child: a cartridge and a state from standard input."""
    request = sys.stdin.buffer.read()
    end = 8 + int.from_bytes(request[:8], "little")
    emulator = Emulator(request[8:end])
    try:
        emulator.load(request[end:])
    except StateError as error:
        print(error)
        sys.exit(REFUSED)
    emulator.tick(TRIED_FRAMES, True)
