"""One run on two hosts that are network namespaces of this machine."""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.testing.hosts import missing, two_hosts

ROOT = Path(__file__).resolve().parents[3]
WORDS = ["env=toy", "tracking=disabled", "algo.num_envs=8", "algo.n_steps=16", "agent=mlp"]
WORDS += ["algo.batch_size=64", "evaluation.episodes=2", "launch=torchrun", "launch.nodes=2"]
WORDS += ["launch.processes=1", "checkpoint_every_steps=512", "sweep.ledger=''"]

pytestmark = pytest.mark.slow


@pytest.fixture
def hosts():
    why = missing()
    if why:
        pytest.skip(why)
    with two_hosts(1, 1000) as both:
        yield both


def started(hosts, folder, *words):
    meet = f"launch.meet={hosts[0].address}:29400"
    command = [sys.executable, "scripts/train.py", *WORDS, meet, f"hydra.run.dir={folder}", *words]
    return [host.start([*command, f"launch.address={host.address}"], cwd=ROOT) for host in hosts]


def ended(runs):
    said = [run.communicate(timeout=300)[0] for run in runs]
    return [run.returncode for run in runs], said


def until_saved(folder, runs):
    while not (folder / "checkpoints" / "last.pt").exists():
        assert all(run.poll() is None for run in runs), ended(runs)
        time.sleep(0.05)


def test_two_hosts_train_one_run_through_a_cut_of_five_seconds(hosts, tmp_path):
    runs = started(hosts, tmp_path, "algo.total_steps=8192")
    until_saved(tmp_path, runs)
    hosts[0].cut()
    time.sleep(5)
    hosts[0].mend()

    codes, said = ended(runs)

    assert codes == [0, 0], said
    content = load_checkpoint(tmp_path)
    assert content["num_steps"] == 8192
    assert len(content["ranks"]) == 1
    assert hosts[0].sent_bytes() > 100_000


def test_a_cable_that_stays_cut_ends_the_run_in_words(hosts, tmp_path):
    runs = started(hosts, tmp_path, "algo.total_steps=100000000", "launch.timeout_s=15")
    until_saved(tmp_path, runs)
    hosts[0].cut()
    began = time.monotonic()

    codes, said = ended(runs)

    assert codes == [1, 1]
    assert time.monotonic() - began < 120
    assert all("RankError: " in words for words in said), said
    assert f"resume={tmp_path}" in said[0]
    assert load_checkpoint(tmp_path)["num_steps"] > 0


def names_left():
    said = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return said.stdout


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_hosts_go_with_a_process_that_is_ended_or_with_the_next_that_makes_some(ending):
    if why := missing():
        pytest.skip(why)
    script = (
        "from frugal_rl.testing.hosts import two_hosts\n"
        "with two_hosts(1, 1000) as (a, b):\n"
        "    run = a.start(['sleep', '600']); print(run.pid, flush=True); run.wait()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    inside = int(process.stdout.readline())
    assert f"frugal-{process.pid}-a" in names_left()
    process.send_signal(ending)
    process.communicate()
    if ending is signal.SIGKILL:
        with two_hosts(1, 1000):
            pass

    assert f"frugal-{process.pid}-" not in names_left()
    with suppress(psutil.NoSuchProcess):
        psutil.Process(inside).wait(timeout=10)
