"""What this machine and installation offer a run: `python scripts/doctor.py`."""

import frugal_rl.first_words  # noqa: F401

# isort: split
import sys

from frugal_rl.report.doctor import report_doctor

if __name__ == "__main__":
    report_doctor(sys.argv[1:])
