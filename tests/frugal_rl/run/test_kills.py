"""`kill -9` at any moment, in a save too: nothing is left behind, resumed runs equal whole ones.

Each run is a fork of this process, so that no library is imported twice.
"""

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch
from numba import njit
from rich.console import Console

from frugal_rl.memory.plan import draw_up
from frugal_rl.report.log import open_log
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.finite import not_finite
from frugal_rl.run.keeping import newest_sound
from frugal_rl.run.trainer import train
from frugal_rl.testing.faults import slow_disk

SMALL = ("tracking=disabled", "hardware.device=cpu", "hardware.threads=1", "evaluation.episodes=0",
         "algo.num_envs=2", "algo.n_steps=16", "checkpoint_every_steps=32",
         "agent.actor=[4]")  # fmt: skip
ON_POLICY = (*SMALL, "agent.critic=[4]", "algo.batch_size=16", "algo.n_epochs=1")
OFF_POLICY = (*SMALL, "algo.batch_size=8", "algo.learning_starts=8", "algo.buffer_size=200")
PROBLEMS = {
    "toy": ("env=toy", *ON_POLICY, "algo.total_steps=320"),
    "workers": ("env=toy", *ON_POLICY, "algo.total_steps=320", "vec=shared_memory",
                "vec.workers=2", "vec.start=fork"),
    "nclone": ("env=nclone", "agent=mlp", *ON_POLICY, "algo.total_steps=320"),
    "mine": ("env=mine_daily_small", "agent=mlp", *ON_POLICY, "algo.total_steps=160"),
    "duel": ("env=fighting", "env.obs=ram", *ON_POLICY, "algo.total_steps=320"),
    "gymnasium": ("env=gymnasium", *ON_POLICY, "algo.total_steps=320"),
    "dqn": ("env=toy", "algo=dqn", *OFF_POLICY, "algo.total_steps=320"),
}  # fmt: skip
SHORT = ("env=toy", *ON_POLICY, "algo.total_steps=96")
ANYWHERE = dict.fromkeys(PROBLEMS, 6) | {"mine": 2}
"""Kills of each problem at random moments, 38 in all; a run of the mine takes longest."""
LOOK_SECONDS = 0.005
"""Between two looks at a run; a save is made to last many of them where one is to be hit."""
INSIDE = 2
"""Kills of each problem inside a save, 14 in all."""


def forked(folder, words, resume=None, inside_a_save=False):
    """A run in a process of its own; what it says lies in `said` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pid = os.fork()
    if pid:
        return psutil.Process(pid)
    status = 1
    try:
        os.setsid()
        said = (folder / "said").open("w", buffering=1)
        os.dup2(said.fileno(), 2)
        run = replace(compose_run(words, check=False), run_dir=str(folder), resume=resume)
        with (
            slow_disk(60 * LOOK_SECONDS if inside_a_save else 0),
            open_log(run, draw_up(run)) as log,
        ):
            train(run, log, console=Console(file=said, width=4000))
        status = 0
    finally:
        os._exit(status)


def ended(process):
    return os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])


def begun(folder):
    """Whether a run has trained: what comes before, set-up, is longer on a busy machine."""
    metrics = folder / "metrics.jsonl"
    return metrics.exists() and metrics.stat().st_size > 0


def finished(folder, words, resume=None):
    """A run that nobody kills; seconds that it took since its first update."""
    process, first = forked(folder, words, resume), None
    while process.status() != psutil.STATUS_ZOMBIE:
        if first is None and begun(folder):
            first = time.monotonic()
        time.sleep(LOOK_SECONDS)
    assert ended(process) == 0, (folder / "said").read_text()
    return 0.0 if first is None else time.monotonic() - first


def parts(folder):
    return list((folder / "checkpoints").glob(".*.part"))


def in_save(folder, number):
    """Whether a run writes a checkpoint while it has so many."""
    return parts(folder) and len(list((folder / "checkpoints").glob("*.pt"))) >= number


def killed(folder, words, when, inside_a_save):
    """Kill a run at a moment that `when` tells; its status, children and shared blocks."""
    process = forked(folder, words, inside_a_save=inside_a_save)
    children, blocks = [], set()
    while process.status() != psutil.STATUS_ZOMBIE:
        if when():
            with suppress(psutil.NoSuchProcess):  # it has just ended by itself
                children = process.children(recursive=True)
                blocks = {m.path for m in process.memory_maps() if "/psm_" in m.path}
                process.kill()
            break
        time.sleep(LOOK_SECONDS)
    return ended(process), children, blocks


def same_weights(a, b):
    ours, theirs = (load_checkpoint(f)["learner"]["policy"] for f in (a, b))
    return all(torch.equal(v, theirs[k]) for k, v in ours.items())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nobody killed, and the seconds that it took."""
    kept = {}
    njit(lambda one: one)(1)  # loads what each of the runs would load anew

    def of(words):
        if words not in kept:
            folder = tmp_path_factory.mktemp("whole")
            kept[words] = folder, finished(folder, words)
        return kept[words]

    return of


class After:
    """Whether a time has passed since a run's first update."""

    def __init__(self, folder, seconds):
        self.folder, self.seconds, self.due = folder, seconds, None

    def __call__(self):
        if self.due is None and begun(self.folder):
            self.due = time.monotonic() + self.seconds
        return self.due is not None and time.monotonic() > self.due


@pytest.fixture(scope="module")
def tally(request):
    """What the kills of this command came to, printed behind the last of them."""
    counted: Counter[str] = Counter()
    yield counted
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        print("\n" + ", ".join(f"{number} {what}" for what, number in counted.items()))


def a_kill_loses_nothing(words, moment, inside_a_save, tmp_path, whole, tally):
    uninterrupted, seconds = whole(words)
    share = random.Random(f"{words} {moment} {inside_a_save}").uniform(0, 0.95)
    for attempt in range(5):  # on a machine that others use a run may end before its moment
        folder = tmp_path / f"killed_{attempt}"
        due = After(folder, share * seconds / 2**attempt)
        when = partial(in_save, folder, 1 + moment) if inside_a_save else due
        status, children, blocks = killed(folder, words, when, inside_a_save)
        assert status in (0, -signal.SIGKILL), (folder / "said").read_text()
        if status and bool(parts(folder)) >= inside_a_save:
            break
    else:
        raise AssertionError("each run ended before its moment")
    assert not psutil.wait_procs(children, timeout=20)[1]
    deadline = time.monotonic() + 10
    while any(Path(b).exists() for b in blocks) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [b for b in blocks if Path(b).exists()]
    saved = list((folder / "checkpoints").glob("*.pt"))
    if saved:
        assert not list(not_finite(newest_sound(folder).content["learner"]))
    finished(tmp_path / "resumed", words, str(folder) if saved else None)
    assert same_weights(tmp_path / "resumed", uninterrupted)
    tally["kills"] += 1
    tally["of them inside a save"] += bool(parts(folder))
    tally["before the first checkpoint"] += not saved
    tally["equal to the bit"] += 1


def test_a_run_that_is_killed_inside_a_save_resumes_to_the_same_bits(tmp_path, whole, tally):
    a_kill_loses_nothing(SHORT, 0, True, tmp_path, whole, tally)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "moment"), [(n, k) for n in PROBLEMS for k in range(ANYWHERE[n])])
def test_a_kill_at_a_random_moment_loses_nothing(name, moment, tmp_path, whole, tally):
    a_kill_loses_nothing(PROBLEMS[name], moment, False, tmp_path, whole, tally)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(INSIDE))
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_kill_inside_a_save_loses_nothing(name, moment, tmp_path, whole, tally):
    a_kill_loses_nothing(PROBLEMS[name], moment, True, tmp_path, whole, tally)
