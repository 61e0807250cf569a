"""The loop: exact resume, good order at the end, one folder with everything."""

import io
import json
import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
import torch
from rich.console import Console

from frugal_rl.errors import CheckpointError, MemoryBudgetError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.schedules import Linear, WarmUp
from frugal_rl.memory import MemoryProfile, process
from frugal_rl.memory.choices import LibraryPages
from frugal_rl.memory.part import Phase
from frugal_rl.memory.process import give_back_pages
from frugal_rl.observation.history import History
from frugal_rl.run import trainer
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.config import Evaluation, Hardware, RunConfig
from frugal_rl.run.evaluate import evaluate
from frugal_rl.run.keeping import verify_checkpoints
from frugal_rl.run.signals import asked_to_stop
from frugal_rl.run.trainer import Trainer, crosses, train
from frugal_rl.testing.toy import Toy, ToyBatch

ALGO = PpoConfig(
    num_envs=4, n_steps=8, batch_size=16, n_epochs=2, total_steps=32 * 6, reward_normalisation=True
)


class Kept:
    """A log that keeps what it is given."""

    def __init__(self):
        self.rows, self.end, self.files = [], {}, []

    def metrics(self, step, values):
        self.rows.append((step, dict(values)))

    def summary(self, values):
        self.end = dict(values)

    def file(self, path):
        self.files.append(path)


def toy_run(folder, **changes):
    run = RunConfig(
        Toy(), MlpAgent(actor=(16,), critic=(16,)), ALGO, MemoryProfile(), None,
        evaluation=Evaluation(episodes=8, num_envs=4), hardware=Hardware("cpu", 1), seed=3,
        run_dir=str(folder), resolved={"seed": 3},
    )  # fmt: skip
    return replace(run, **changes)


def quiet():
    return Console(file=io.StringIO(), width=200)


def weights(folder):
    return load_checkpoint(folder)["learner"]["policy"]


@pytest.mark.parametrize("rate", [3e-4, Linear(1e-3)], ids=["constant", "linear"])
def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(tmp_path, rate):
    algo = replace(ALGO, learning_rate=rate)
    whole, first, second = (tmp_path / name for name in ("whole", "first", "second"))
    train(toy_run(whole, algo=algo), Kept(), console=quiet())
    stopped = Trainer(toy_run(first, algo=algo), Kept(), console=quiet(), watch=after(3))
    with pytest.raises(MemoryBudgetError, match="resume="):
        stopped.train()
    train(toy_run(second, algo=algo, resume=str(first)), Kept(), console=quiet())
    for a, b in zip(weights(whole).values(), weights(second).values(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(
        weights(whole)["network.value.bias"], weights(first)["network.value.bias"]
    )


def test_a_run_gives_pages_of_libraries_back_and_learns_the_same(tmp_path, monkeypatch):
    gone: list[int] = []
    monkeypatch.setattr(process, "give_back_pages", lambda: gone.append(give_back_pages()))
    kept, given_back = tmp_path / "kept", tmp_path / "given back"
    memory = MemoryProfile(library_pages=LibraryPages.kept)
    train(toy_run(kept, memory=memory), Kept(), console=quiet())
    assert gone == []
    train(toy_run(given_back), Kept(), console=quiet())
    assert len(gone) == 1 + len({Phase.rollout, Phase.update, Phase.evaluation, Phase.checkpoint})
    assert sum(gone) > 1 << 20 or platform.system() != "Linux"
    for a, b in zip(weights(kept).values(), weights(given_back).values(), strict=True):
        assert torch.equal(a, b)


def test_environments_without_a_state_begin_new_episodes_and_the_run_says_so(tmp_path, monkeypatch):
    def refuse(self):
        raise NotImplementedError

    monkeypatch.setattr(ToyBatch, "state", refuse)
    train(toy_run(tmp_path / "a"), Kept(), console=quiet())
    console, longer = quiet(), replace(ALGO, total_steps=32 * 8)
    run = toy_run(tmp_path / "b", algo=longer, resume=str(tmp_path / "a"))
    assert train(run, Kept(), console=console)["num_steps"] == 32 * 8
    assert "begin new episodes" in console.file.getvalue()


def after(iterations):
    """A watch that gives advice from the given call on."""
    calls = iter(range(1, 1000))
    return lambda: "Memory is nearly used up." if next(calls) >= iterations else ""


def test_ctrl_c_sigterm_and_a_closed_terminal_save_and_end_in_order(tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # below nohup a hang-up is ignored
        folder, log = tmp_path / str(number), Kept()
        signals = iter([0, number])

        def watch(signals=signals):
            os.kill(os.getpid(), next(signals))  # signal 0 does nothing
            return ""

        summary = Trainer(toy_run(folder), log, console=quiet(), watch=watch).train()
        assert summary["interrupted"] is True
        assert load_checkpoint(folder)["num_steps"] == 64
        assert signal.getsignal(number) is not None


@pytest.mark.parametrize("every_steps", [0, 64])
def test_an_evaluation_is_cut_off_where_the_run_is_asked_to_stop(
    every_steps, tmp_path, monkeypatch
):
    """Slurm and a terminal wait for seconds or minutes, and what was learned is not saved yet."""

    def asking(run, env, player, stopped):
        calls = iter(range(10**9))

        def play(rows):
            os.kill(os.getpid(), signal.SIGTERM if next(calls) == 5 else 0)
            return player(rows)

        return evaluate(run, env, play, stopped)

    monkeypatch.setattr(trainer, "evaluate", asking)
    asked = Evaluation(episodes=10**9, every_steps=every_steps)
    summary = train(toy_run(tmp_path, evaluation=asked), Kept(), console=quiet())
    monkeypatch.undo()
    assert summary["interrupted"] is True
    assert not [name for name in summary if name.startswith(("eval/", "random/"))]
    assert load_checkpoint(tmp_path)["num_steps"] == (every_steps or 192)
    few = toy_run(tmp_path, evaluation=Evaluation(episodes=2), resume=str(tmp_path))
    summary = train(few, Kept(), console=quiet())
    assert (summary["interrupted"], summary["num_steps"]) == (False, 192)
    assert summary["eval/episodes"] == 2


def test_what_was_learned_is_saved_before_the_last_evaluation(tmp_path, monkeypatch):
    """A kill -9 inside it, which nobody is told of, loses nothing."""
    kept = []

    def last_words(run, env, player, stopped):
        kept.append(load_checkpoint(tmp_path)["num_steps"])
        return evaluate(run, env, player, stopped)

    monkeypatch.setattr(trainer, "evaluate", last_words)
    train(toy_run(tmp_path, evaluation=Evaluation(episodes=2)), Kept(), console=quiet())
    assert kept[0] == 192


@pytest.mark.parametrize("moment", range(4))
def test_ctrl_c_twice_inside_a_save_keeps_the_checkpoint_before_and_names_it(
    moment, tmp_path, monkeypatch
):
    real, calls = os.fsync, iter(range(1000))

    def fsync(number):
        if next(calls) == 8 + moment:  # of a later checkpoint than the first
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    run = toy_run(tmp_path, checkpoint_every_steps=32)
    with pytest.raises(KeyboardInterrupt) as stopped:
        train(run, Kept(), console=quiet())
    assert f"resume={tmp_path / 'checkpoints' / 'last.pt'}" in stopped.value.__notes__[0]
    assert not [v.problem for v in verify_checkpoints(tmp_path) if v.problem]
    assert not list(tmp_path.rglob("*.part"))
    monkeypatch.undo()
    assert train(replace(run, resume=str(tmp_path)), Kept(), console=quiet())["num_steps"] == 192


def test_a_closed_terminal_ends_no_run_below_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with asked_to_stop() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_set()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_folder_holds_summary_and_checkpoint_and_the_log_is_told(tmp_path):
    log, console = Kept(), quiet()
    summary = train(toy_run(tmp_path, checkpoint_every_steps=64), log, console=console)
    written = json.loads((tmp_path / "summary.json").read_text())
    assert written == json.loads(json.dumps(summary))
    assert log.end == summary
    assert log.files == [tmp_path / "checkpoints" / "last.pt"]
    assert [step for step, row in log.rows if "train/loss" in row] == [32 * i for i in range(1, 7)]
    assert log.rows[-1][1]["eval/episodes"] == 8
    assert load_checkpoint(tmp_path)["config"] == {"seed": 3}


def test_the_meter_hears_every_phase(tmp_path):
    heard = []

    @contextmanager
    def listen(phase):
        heard.append(phase)
        yield

    train(toy_run(tmp_path), Kept(), console=quiet(), phase=listen)
    assert heard[:2] == [Phase.rollout, Phase.update]
    # The policy, the checkpoint, then random play beside it: nothing is lost if that fails.
    assert heard[-3:] == [Phase.evaluation, Phase.checkpoint, Phase.evaluation]


def test_evaluations_keep_the_best_policy_and_change_no_parameter(tmp_path):
    often = Evaluation(every_steps=64, episodes=8, num_envs=4, deterministic=False)
    train(toy_run(tmp_path / "often", evaluation=often), Kept(), console=quiet())
    train(toy_run(tmp_path / "once"), Kept(), console=quiet())
    assert (tmp_path / "often" / "checkpoints" / "best.pt").is_file()
    for a, b in zip(
        weights(tmp_path / "often").values(), weights(tmp_path / "once").values(), strict=True
    ):
        assert torch.equal(a, b)


def test_no_episodes_are_no_evaluation_on_the_way_either(tmp_path):
    none = Evaluation(every_steps=64, episodes=0)
    train(toy_run(tmp_path, evaluation=none), Kept(), console=quiet())
    assert (tmp_path / "checkpoints" / "last.pt").is_file()
    assert not (tmp_path / "checkpoints" / "best.pt").is_file()


def test_a_checkpoint_of_another_run_is_refused_by_the_value_that_differs(tmp_path):
    train(toy_run(tmp_path), Kept(), console=quiet())
    other = toy_run(tmp_path / "b", algo=replace(ALGO, gamma=0.9), resume=str(tmp_path))
    with pytest.raises(CheckpointError, match=r"algo\.gamma=0\.99"):
        train(other, Kept(), console=quiet())


def test_a_multiple_is_crossed_once():
    assert [crosses(n, n + 30, 100) for n in range(0, 300, 30)] == [
        False, False, False, True, False, False, True, False, False, True,
    ]  # fmt: skip
    assert not crosses(0, 10**9, 0)


def test_warm_up_rises_and_then_falls():
    rate = WarmUp(peak=3.0, start=1.0, end=0.0, warm=0.25)
    assert [rate.at(d) for d in (0.0, 0.125, 0.25, 0.625, 1.0)] == [1.0, 2.0, 3.0, 1.5, 0.0]


@dataclass(frozen=True)
class PaintingToy(Toy):
    """A toy that can be drawn."""

    def draw(self, vec_env, player, folder):
        folder.mkdir()
        history = History(vec_env.encoding, vec_env.num_envs, self.episode_steps)
        actions = player(history.reset(vec_env.reset(0)))
        (folder / "actions.png").write_bytes(bytes(actions.tolist()))
        return [folder / "actions.png"]


def test_visualization_draws_the_policy_at_the_end(tmp_path):
    log = Kept()
    train(toy_run(tmp_path, env=PaintingToy(), visualization=True), log, console=quiet())
    assert tmp_path / "pictures" / "actions.png" in log.files
    plain = quiet()
    train(toy_run(tmp_path / "b", visualization=True), Kept(), console=plain)
    assert "env=toy has no pictures" in plain.file.getvalue()


@pytest.mark.parametrize("follow", ["stop_with(os.getppid())", "stop_where_told(sys.argv)"])
def test_a_process_is_asked_to_stop_when_its_parent_was_killed(tmp_path, follow):
    child = (
        "import os, signal, sys, time; from frugal_rl.run.signals import *;"
        "signal.signal(signal.SIGTERM, lambda *_: (open(sys.argv[1], 'w').close(), sys.exit()));"
        f"{follow}; print(len(sys.argv), flush=True); time.sleep(60)"
    )
    start = (
        "import subprocess, sys, time; from frugal_rl.run.signals import stops_with_this;"
        f"told = stops_with_this() if {'told' in follow} else [];"
        f"subprocess.Popen([sys.executable, '-c', {child!r}, *told, sys.argv[1]]); time.sleep(60)"
    )
    asked = tmp_path / "asked"
    parent = subprocess.Popen([sys.executable, "-c", start, asked], stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"2\n"  # the word is taken away
    parent.kill()
    parent.wait()
    until = time.monotonic() + 20
    while not asked.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert asked.exists()
    parent.stdout.close()
