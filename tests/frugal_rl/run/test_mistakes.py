"""Beginner's mistakes: each is answered by its line in docs/mistakes.md, and nothing is written.

They run in this process, so that torch is loaded once; the slow test runs some as a user would.
"""

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from frugal_rl import cli, invocation
from frugal_rl.memory.machine import has_accelerator

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "mistakes.md"
ROW = re.compile(r"^\| `(?P<typed>[^`]*)` \| (?P<answer>.*) \|$", re.MULTILINE)
MISTAKES = [(m["typed"], m["answer"].replace("\\|", "|")) for m in ROW.finditer(PAGE.read_text())]
ELSEWHERE = {
    "hardware.device=cuda": has_accelerator("auto"),
    "submitit_slurm": which("sbatch"),
    "launch=slurm": which("sbatch"),
}
"""What is no mistake on some machines."""
LARGE = ("env=mine", "env.levels=[walk,nolevel]", "env.id=", "record ", "env=fighting")
HERE = {"FILE", "EMPTY"}
"""What lies in the folder that the mistakes are made in."""
AT_ONCE = (
    "train env=toy resume=EMPTY",
    "train env=toy agent=nature_cnn",
    "play env=nclone",
    "train env=toy hydra.run.dir=FILE/x",
)
"""Refused before torch is imported, in a process of their own."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "FILE").write_text("nothing")
    (tmp_path / "EMPTY").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(invocation, "_CALLED", [])
    yield tmp_path
    GlobalHydra.instance().clear()
    HydraConfig.instance().cfg = None


def shape(answer: str) -> re.Pattern[str]:
    """The answer as a pattern, in which three dots stand for anything."""
    return re.compile(".*".join(re.escape(part) for part in answer.split("...")) + r"\Z", re.DOTALL)


def test_there_are_forty_of_them():
    assert len({typed for typed, _ in MISTAKES}) >= 40


def cases():
    """All mistakes; those that need a large environment are slow."""
    for typed, answer in MISTAKES:
        slow = [pytest.mark.slow] if any(word in typed for word in LARGE) else []
        yield pytest.param(typed, answer, marks=slow, id=typed)


@pytest.mark.parametrize(("typed", "answer"), cases())
def test_a_mistake_is_answered_in_one_line_and_leaves_nothing(typed, answer, folder, monkeypatch):
    if any(there and word in typed for word, there in ELSEWHERE.items()):
        pytest.skip("this machine has what is asked for")
    monkeypatch.setattr(sys, "argv", shlex.split(typed))

    with pytest.raises(SystemExit) as ended:
        cli.main()

    said = str(ended.value.code)
    assert shape(answer).match(said), said
    assert "\n" not in said
    assert {p.name for p in folder.iterdir()} == HERE
    assert not list((folder / "EMPTY").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("typed", AT_ONCE)
def test_a_mistake_is_answered_before_torch_is_imported(typed, folder):
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('torch' in sys.modules))\n"
        f"sys.argv = {['frugal-rl', *typed.split()]!r}\n"
        "from frugal_rl import cli\n"
        "cli.main()\n"
    )
    began = time.process_time()
    environ = {"PYTHONPATH": str(ROOT), "HOME": str(folder), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False
    )

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "False"
    assert time.process_time() - began < 5
