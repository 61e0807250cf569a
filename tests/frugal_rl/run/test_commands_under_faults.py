"""Whole commands under what a machine does to them: control groups, address limits, disks."""

import os
import re
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.keeping import verify_checkpoints

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes groups and mounts disks"),
]
ROOT = Path(__file__).resolve().parents[3]
GROUPS = Path("/sys/fs/cgroup")
WORDS = (
    "env=toy", "tracking=disabled", "algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16",
    "algo.n_epochs=1", "algo.total_steps=3200", "evaluation.episodes=0", "hardware.threads=1",
    "hardware.device=cpu", "checkpoint_every_steps=320", "agent.actor=[4]", "agent.critic=[4]",
)  # fmt: skip


def started(folder, *words, **options):
    command = [sys.executable, "scripts/train.py", *WORDS, *words, f"hydra.run.dir={folder}"]
    options["env"] = {**os.environ, "PYTHONPATH": str(ROOT), **options.get("env", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=ROOT, **pipes, **options)


def ended(process):
    """The exit status of a command and what it said; nothing may be a traceback."""
    said = process.communicate(timeout=240)[0]
    assert "Traceback" not in said, said
    return process.returncode, said


def trained(folder, *words, **options):
    return ended(started(folder, *words, **options))


def saved_once(folder):
    """Wait for a run's first checkpoint."""
    deadline = time.monotonic() + 120
    while not list((folder / "checkpoints").glob("step_*.pt")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    assert trained(folder)[0] == 0
    return folder


def same_weights(a, b):
    ours, theirs = (load_checkpoint(f)["learner"]["policy"] for f in (a, b))
    return all(torch.equal(v, theirs[k]) for k, v in ours.items())


@contextmanager
def memory_group(mib):
    """A control group with a limit; of version 2 where the machine has memory there, else 1."""
    second = (GROUPS / "cgroup.controllers").is_file()
    folder = (GROUPS if second else GROUPS / "memory") / f"frugal_test_{os.getpid()}"
    try:
        folder.mkdir()
        limit = "memory.max" if second else "memory.limit_in_bytes"
        (folder / limit).write_text(str(mib << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield folder
    finally:
        time.sleep(0.1)
        folder.rmdir()


def joining(group):
    """Run in a child before its command begins: it moves itself into the group."""
    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))


def test_a_control_group_below_the_plan_refuses_the_run(tmp_path):
    with memory_group(300) as group:
        status, said = trained(tmp_path / "a", preexec_fn=joining(group))
    assert status == 1
    assert re.search(r"MemoryBudgetError: .*above the 300.0 MiB of control group", said)


def test_a_run_that_fits_its_control_group_trains_and_ends_the_same(tmp_path, whole):
    with memory_group(900) as group:
        status, said = trained(tmp_path / "a", preexec_fn=joining(group))
    assert status == 0, said
    assert same_weights(tmp_path / "a", whole)


@pytest.mark.parametrize(("gib", "status"), [(1.5, 1), (3.5, 0)])
def test_the_address_space_limit_refuses_or_is_kept_to(gib, status, tmp_path, whole):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (int(gib * 2**30), int(gib * 2**30)))

    ended_with, said = trained(tmp_path / "a", preexec_fn=limit)
    assert ended_with == status, said
    if status:
        assert re.search(r"MemoryBudgetError: .*of address space \(ulimit -v", said)
    else:
        assert same_weights(tmp_path / "a", whole)


def test_a_folder_that_can_only_be_read_is_refused(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)], check=True)
    try:
        status, said = trained(tmp_path / "a")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert status == 1
    assert re.search(r"DiskError: .* cannot be written", said)


def test_a_folder_that_becomes_read_only_keeps_its_checkpoints_and_says_how_to_go_on(
    tmp_path, whole
):
    folder = tmp_path / "a"
    process = started(folder)
    saved_once(folder)
    subprocess.run(["mount", "--bind", folder / "checkpoints", folder / "checkpoints"], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder / "checkpoints"], check=True)
    status, said = ended(process)
    subprocess.run(["umount", folder / "checkpoints"], check=True)
    assert status == 1
    assert "Warning: The checkpoint at" in said
    assert "Read-only file system" in said
    assert f"continue with resume={folder}/checkpoints/last.pt" in said.splitlines()[-1]
    assert not [v.problem for v in verify_checkpoints(folder) if v.problem]
    assert trained(tmp_path / "b", f"resume={folder}")[0] == 0
    assert same_weights(tmp_path / "b", whole)
