"""Lets a command speak while it is imported, which takes seconds: every script imports it first.

Only a command speaks: not its worker processes, which read its script, nor who else imports that.
"""

from __future__ import annotations

import sys
from pathlib import Path

from frugal_rl.report.speech import speak_early

if Path(getattr(sys.modules["__main__"], "__file__", None) or "").parent.name == "scripts":
    speak_early()
