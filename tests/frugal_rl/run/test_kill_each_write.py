"""`kill -9` before each write of a run in turn, the very first save and pruning among them."""

import os
import signal

import pytest
import torch

from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.finite import not_finite
from frugal_rl.run.keeping import newest_sound, verify_checkpoints
from frugal_rl.run.lock import locked
from frugal_rl.run.replay_aside import compared
from frugal_rl.testing.faults import FullDisk, disk
from frugal_rl.testing.quiet_runs import quiet_run

SMALL = ("env=toy", "tracking=disabled", "hardware.device=cpu", "hardware.threads=1",
         "algo.num_envs=2", "algo.n_steps=8", "algo.total_steps=48", "checkpoint_every_steps=16",
         "keep_checkpoints=2", "agent.actor=[4]", "evaluation.episodes=1", "evaluation.num_envs=1",
         "evaluation.every_steps=16")  # fmt: skip
PROBLEMS = {
    "ppo": (*SMALL, "agent.critic=[4]", "algo.batch_size=16", "algo.n_epochs=1"),
    "dqn": (*SMALL, "algo=dqn", "algo.batch_size=8", "algo.learning_starts=8",
            "algo.buffer_size=40"),
}  # fmt: skip


def whole_run(name, folder, resume=None):
    return quiet_run(PROBLEMS[name], folder, resume)


class KilledAt(FullDisk):
    """Ends the process at one of the calls that reach the disk, before it is done."""

    def __call__(self):
        if self.calls == self.fails_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls += 1


def killed_at(name, folder, call):
    """A run in a fork of this process that is killed at one of its calls."""
    pid = os.fork()
    if not pid:
        try:
            with disk(KilledAt(call)):
                whole_run(name, folder)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def calls_of_a_run(name, folder):
    whole_run(name, folder / "warm")
    count = FullDisk()
    with disk(count):
        whole_run(name, folder / "whole")
    return count.calls


def goes_on(name, folder, on):
    """Resume what was saved; begin in the same folder again where nothing was."""
    saved = list((folder / "checkpoints").glob("*.pt"))
    if saved:
        assert not [v.problem for v in verify_checkpoints(folder, compared) if v.problem]
        assert not list(not_finite(newest_sound(folder).content["learner"]))
    whole_run(name, on if saved else folder, str(folder) if saved else None)
    with locked(folder):  # another run may have the folder
        return on if saved else folder, bool(saved)


def killed_at_each(name, share, folder):
    """Calls of a run, and how many kills came before and after its first checkpoint."""
    calls = calls_of_a_run(name, folder)
    before = after = 0
    for call in range(0, calls, max(1, calls // share)):
        at = folder / f"{call}"
        killed_at(name, at, call)
        end, saved = goes_on(name, at, folder / f"{call}_on")
        assert same_weights(end, folder / "whole"), call
        before, after = before + (not saved), after + saved
    return calls, before, after


def same_weights(a, b):
    ours, theirs = (load_checkpoint(f)["learner"]["policy"] for f in (a, b))
    return all(torch.equal(v, theirs[k]) for k, v in ours.items())


def test_a_kill_at_any_write_resumes_to_the_same_bits(tmp_path):
    _, before, after = killed_at_each("ppo", 2, tmp_path)
    assert min(before, after) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_kill_at_each_write_in_turn_resumes_to_the_same_bits(name, tmp_path, capsys):
    calls, before, after = killed_at_each(name, 10**9, tmp_path)
    with capsys.disabled():
        print(f"\n{name}: {calls} writes, killed before each in turn: {before} before its first"
              f" checkpoint, {after} after it, all equal to the bit")  # fmt: skip
