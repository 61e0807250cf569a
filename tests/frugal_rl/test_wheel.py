"""The wheel alone is enough: built here, put into an empty environment, run from elsewhere."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("train", "env=toy", "algo.num_envs=4", "algo.n_steps=16", "algo.batch_size=32")
WORDS += ("algo.total_steps=128", "evaluation.episodes=4", "tracking=disabled", "--quiet")


def ran(*words, cwd, **options):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment that holds the wheel and finds the libraries of this one, but no checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    built = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    source = folder / "source"
    ran("git", "clone", "-q", "--depth=1", f"file://{ROOT}", str(source), cwd=folder)
    ran(*built, "-w", str(folder), str(source), cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    site = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        names = archive.namelist()
    libraries = sysconfig.get_paths()["purelib"]
    (site / "libraries.pth").write_text(f"{libraries}\n")  # their own .pth files are not followed
    return folder, names


@pytest.mark.slow
def test_the_wheel_brings_configurations_scripts_and_data(installed):
    _, names = installed

    assert "frugal_rl/conf/train.yaml" in names
    assert "frugal_rl/scripts/train.py" in names
    assert any(name.startswith("fighting/rom/") for name in names)
    assert not [n for n in names if n.startswith(("tests/", "benchmarks/")) or "/runs/" in n]


@pytest.mark.slow
def test_the_installed_package_plans_trains_and_reports(installed, tmp_path):
    folder, _ = installed
    python = str(folder / "venv" / "bin" / "python")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    where = ran(
        python, "-c", "import frugal_rl; print(frugal_rl.__file__)", cwd=tmp_path, env=environ
    )
    command = (python, "-m", "frugal_rl")
    run_dir = ran(*command, *WORDS, cwd=tmp_path, env=environ).strip()
    written = ran(*command, "report", f"runs=[{run_dir}]", "--quiet", cwd=tmp_path, env=environ)

    assert str(folder / "venv") in where
    assert Path(run_dir).is_dir()
    assert all(Path(tmp_path, line).is_file() for line in written.splitlines())
    assert len(written.splitlines()) == 2
