"""What this machine and installation offer a run: `python scripts/doctor.py`."""

from frugal_rl.report.doctor import print_doctor

if __name__ == "__main__":
    print_doctor()
