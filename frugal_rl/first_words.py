"""Lets a command speak while it is imported, which takes seconds: every script imports it first.

Only a command speaks: not its worker processes, which read its script, nor who else imports that.
One that is asked for its help says that first of all, and ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

from frugal_rl.garbage import collect_later
from frugal_rl.report.speech import speak_early
from frugal_rl.run.early_help import ASKED, answer

SCRIPT = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
if SCRIPT.parent.name == "scripts":
    collect_later()
    speak_early()
    if ASKED & set(sys.argv):
        about = str(sys.modules["__main__"].__doc__ or "").strip().partition("\n")[0]
        answer(SCRIPT.stem, about)
