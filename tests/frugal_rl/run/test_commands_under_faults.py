"""Whole commands under what a machine does to them: limits, disks, /dev/shm, a scheduler."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from frugal_rl.invocation import override, value
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.keeping import verify_checkpoints
from frugal_rl.testing.faults import small_disk

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
    command = [sys.executable, "scripts/train.py", *WORDS, *words, f"hydra.run.dir={value(folder)}"]
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


def saved_once(folder, process):
    """Wait for a run's first checkpoint."""
    deadline = time.monotonic() + 120
    while not list((folder / "checkpoints").glob("step_*.pt")):
        assert process.poll() is None, process.stdout.read()
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
    saved_once(folder, process)
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


DISK_KIB = 65536
"""A run is refused where less than 16 MiB are free."""


def filled_meanwhile(process, small):
    """Let a command find its disk full all at once."""
    process.send_signal(signal.SIGSTOP)
    small.leave(0)
    process.send_signal(signal.SIGCONT)
    return ended(process)


def test_a_disk_that_is_full_at_the_last_save_says_how_to_go_on(tmp_path, whole):
    with small_disk(tmp_path / "a disk", DISK_KIB) as small:
        folder = small.folder / "a"
        process = started(folder)
        saved_once(folder, process)
        status, said = filled_meanwhile(process, small)
        assert status == 1
        assert "DiskError: The checkpoint at 3,200 steps" in said
        assert f"continue with {override('resume', folder / 'checkpoints' / 'last.pt')}" in said
        small.empty()
        assert not [v.problem for v in verify_checkpoints(folder) if v.problem]
        assert trained(tmp_path / "b", f"resume={value(folder)}")[0] == 0
    assert same_weights(tmp_path / "b", whole)


def test_a_disk_that_fills_up_under_a_sweep_ends_it_in_words(tmp_path, whole):
    with small_disk(tmp_path / "small", DISK_KIB) as small:
        words = ("-m", "seed=0,1", f"hydra.sweep.dir={small.folder}/s")
        process = started(tmp_path / "unused", *words)
        first = small.folder / "s" / "0_toy_lossless_seed0"
        saved_once(first, process)
        status, said = filled_meanwhile(process, small)
        assert status == 1
        assert "No space left on device" in said
        small.empty()
        assert not [v.problem for v in verify_checkpoints(first) if v.problem]
        status, said = trained(tmp_path / "unused", *words)  # the same words: what is left
        assert status == 0, said
        assert same_weights(first, whole)


def test_a_sweep_on_a_full_disk_is_refused_before_it_begins(tmp_path):
    with small_disk(tmp_path / "small", DISK_KIB) as small:
        small.leave(0)
        words = ("-m", "seed=1,2", f"hydra.sweep.dir={small.folder}/s")
        status, said = trained(tmp_path / "unused", *words)
        assert list(small.folder.iterdir()) == [small.folder / "ballast"]
    assert status == 1
    assert "choose another hydra.sweep.dir=" in said


def trained_behind(mounts, folder, *words, **env):
    """A command that sees other file systems than we do."""
    asked = ("scripts/train.py", *WORDS, *words, f"hydra.run.dir={folder}")
    quoted = " ".join(f"'{w}'" for w in (sys.executable, *asked))
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{mounts} && exec {quoted}"], cwd=ROOT,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        timeout=400, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def test_a_home_that_can_only_be_read_changes_nothing(tmp_path, whole):
    home = tmp_path / "home"
    home.mkdir()
    done = trained_behind(f"mount -t tmpfs -o ro tmpfs {home}", tmp_path / "a", HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert same_weights(tmp_path / "a", whole)


def test_an_installation_and_a_home_that_can_only_be_read_change_nothing(tmp_path, whole):
    home = tmp_path / "home"
    home.mkdir()
    read_only = f"mount --bind {ROOT} {ROOT} && mount -o remount,bind,ro {ROOT}"
    mounts = f"mount -t tmpfs -o ro tmpfs {home} && {read_only}"
    done = trained_behind(mounts, tmp_path / "a", HOME=str(home), TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Give a folder that keeps them: NUMBA_CACHE_DIR=/a/folder" in done.stderr
    assert not list(tmp_path.glob("frugal_rl_kernels_*"))
    assert same_weights(tmp_path / "a", whole)


def test_a_full_dev_shm_is_refused_before_a_worker_starts(tmp_path):
    workers = ("vec=shared_memory", "vec.workers=2", "algo.num_envs=256")
    done = trained_behind("mount -t tmpfs -o size=4k tmpfs /dev/shm", tmp_path / "a", *workers)
    assert done.returncode == 1, done.stderr
    assert re.search(r"MemoryBudgetError: .*shared block of .*enlarge /dev/shm", done.stderr)


SBATCH = """#!/bin/bash
echo Submitted batch job 7
export SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n
for round in 1 2 3; do
  rm -f "$STATE/requeued"
  bash "$1" >> "$STATE/job.log" 2>&1
  echo "round $round ended with $?" >> "$STATE/rounds"
  [ -e "$STATE/requeued" ] || break
done
"""
SRUN = """#!/bin/bash
"$@" &
child=$!
if [ ! -e "$STATE/warned" ]; then
  until ls "$STATE"/run/checkpoints/step_*.pt > /dev/null 2>&1; do sleep 0.01; done
  touch "$STATE/warned"
  kill -USR1 $child
fi
wait $child; status=$?
while kill -0 $child 2> /dev/null; do wait $child; status=$?; done
exit $status
"""
SCONTROL = """#!/bin/bash
if [ "$1" = requeue ]; then touch "$STATE/requeued"; else echo localhost; fi
"""


def test_a_job_that_slurm_warns_saves_asks_for_more_and_ends_the_same(tmp_path, whole):
    (tmp_path / "bin").mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "STATE": str(tmp_path)}
    status, said = trained(tmp_path / "run", "launch=slurm", env=env)
    assert status == 0, said
    log = (tmp_path / "job.log").read_text()
    assert "Traceback" not in log
    rounds = (tmp_path / "rounds").read_text().splitlines()
    assert rounds == ["round 1 ended with 75", "round 2 ended with 0"], log
    assert "Resumed" in log
    assert same_weights(tmp_path / "run", whole)
