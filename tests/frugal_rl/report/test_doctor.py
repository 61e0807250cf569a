"""The doctor looks at everything and imports nothing heavy."""

import subprocess
import sys
from pathlib import Path

import pytest

from frugal_rl.report import doctor

ROOT = Path(__file__).resolve().parents[3]


def test_every_finding_has_words():
    findings = list(doctor.examine())

    assert len(findings) > 20
    assert all(f.what and f.found for f in findings)
    assert {"memory", "cores", "torch", "compiled kernels"} <= {f.what for f in findings}


def test_what_is_missing_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)

    missing = {f.what: f.remedy for f in doctor.examine() if f.what.startswith("extra")}

    assert missing["extra viz"].endswith("pip install -c constraints.txt -e '.[viz]'")


def test_a_display_that_leads_nowhere_is_none(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":987")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)

    (row,) = (f for f in doctor.examine() if f.what == "display")

    assert row.found == ":987, which leads nowhere"
    assert "film.mp4" in row.remedy


def test_little_shared_memory_is_answered_with_a_remedy(monkeypatch):
    monkeypatch.setattr(doctor, "LEAST_SHARED_MEMORY", 1 << 60)

    (shared,) = [f for f in doctor.examine() if f.what == "/dev/shm"]

    assert "vec=batch" in shared.remedy


def test_the_command_imports_no_torch():
    code = "import sys; sys.argv = ['frugal-rl', 'doctor']; from frugal_rl import cli; cli.main()"
    code += "; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert done.stdout.splitlines()[-1] == "False"


def test_it_says_what_it_takes(capsys):
    doctor.report_doctor(["--help"])

    assert "--json" in capsys.readouterr().out


def found(what):
    (row,) = (f for f in doctor.examine() if f.what == what)
    return row


def test_places_that_cannot_be_written_are_told(monkeypatch):
    monkeypatch.setenv("HOME", "/proc")
    assert "set HOME" in found("measurements kept").remedy

    monkeypatch.chdir("/proc")
    assert "change the folder" in found("disk here").remedy

    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert "not writable" in found("/dev/shm").remedy


FEW_FILES = [((99, 4096), "ulimit -n 4096"), ((99, 99), "ask")]


@pytest.mark.parametrize(("limits", "remedy"), FEW_FILES)
def test_few_open_files_are_answered_with_what_helps(monkeypatch, limits, remedy):
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: limits)

    assert found("open files (ulimit -n)").remedy.startswith(remedy)
