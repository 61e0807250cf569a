"""What this machine and installation offer a run: `python scripts/doctor.py`."""

try:
    import frugal_rl.first_words  # noqa: F401
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

# isort: split
import sys

from frugal_rl.report.doctor import report_doctor

if __name__ == "__main__":
    report_doctor(sys.argv[1:])
