"""A resume forgets nothing, takes the newest sound checkpoint, and refuses what does not fit."""

import io
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from rich.console import Console

from frugal_rl.errors import CheckpointError, DiskError, FrugalError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.off_policy_kinds import DqnConfig
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks
from frugal_rl.memory import MemoryProfile
from frugal_rl.run import saves as saves_module
from frugal_rl.run import trainer as trainer_module
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.config import Evaluation, Hardware, RunConfig
from frugal_rl.run.evaluate import Result, Score
from frugal_rl.run.generators import rng_state, set_rng_state
from frugal_rl.run.resuming import check_form, snapshot
from frugal_rl.run.saves import Saves
from frugal_rl.run.trainer import Trainer, train
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.episodes import Episodes
from frugal_rl.vec_env.group import GroupEnv
from frugal_rl.vec_env.serial import Serial, SerialEnv

ALGO = PpoConfig(
    num_envs=4, n_steps=8, batch_size=16, n_epochs=2, total_steps=32 * 3, reward_normalisation=True
)


class Nowhere:
    def metrics(self, step, values):
        pass

    summary = file = lambda self, values: None


def toy_run(folder, **changes):
    run = RunConfig(
        Toy(episode_steps=5), MlpAgent(actor=(16,), critic=(16,)), ALGO, MemoryProfile(), None,
        evaluation=Evaluation(episodes=0), hardware=Hardware("cpu", 1), seed=3,
        run_dir=str(folder), resolved={"seed": 3},
    )  # fmt: skip
    return replace(run, **changes)


def quiet():
    return Console(file=io.StringIO(), width=200)


def learner_of(run):
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, env)


def same(a, b, where="state"):
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}.{i}")
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype, where
        assert torch.equal(a, b), where
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        assert_array_equal(a, b, where)
    else:
        assert a == b, where


def without_phases(phase):
    return trainer_module.no_meter(phase)


@pytest.mark.parametrize("vec", [None, Episodes()], ids=["steps", "episodes"])
def test_a_learner_that_loads_a_state_has_that_state_to_the_bit(tmp_path, vec):
    algo = replace(ALGO, reward_normalisation=vec is None)
    run = toy_run(tmp_path, vec=vec, algo=algo)
    first, second = learner_of(run), learner_of(run)
    for _ in range(2):
        first.iterate(without_phases)
    if vec is None:  # an episode that begins with the next step, beside others that go on
        first.collector.starts[:] = [True, False, True, False]
    state = load_checkpoint(save_checkpoint(tmp_path / "c.pt", first.state()))
    second.load(state)
    same(second.state(), first.state())


DQN = DqnConfig(
    num_envs=4, n_steps=8, batch_size=8, learning_starts=8, buffer_size=200, total_steps=96
)


@pytest.mark.parametrize("algo", [ALGO, DQN], ids=["ppo", "dqn"])
def test_single_environments_go_on_with_the_static_rows_that_stored_ones_name(tmp_path, algo):
    run = toy_run(tmp_path, vec=Serial(), algo=algo)
    torch.manual_seed(0)  # episodes end at different steps, so that environments hold two maps
    first, second = learner_of(run), learner_of(replace(run, seed=4))
    for _ in range(3):
        first.iterate(without_phases)
    assert len(set(first.collector.obs["map_id"].tolist())) > 1
    second.load(load_checkpoint(save_checkpoint(tmp_path / "c.pt", first.state())))
    same(second.state(), first.state())
    set_all = rng_state()
    first.iterate(without_phases)
    set_rng_state(set_all)
    second.iterate(without_phases)
    same(second.state()["policy"], first.state()["policy"])


def test_a_replay_keeps_its_static_rows_where_environments_begin_anew(tmp_path, monkeypatch):
    run = toy_run(tmp_path, vec=Serial(), algo=DQN)
    first, second = learner_of(run), learner_of(replace(run, seed=4))
    for _ in range(3):
        first.iterate(without_phases)

    def walls(learner):
        table, replay = learner.collector.vec_env.tables["map"], learner.collector.replay
        return [table["walls"][rows["map_id"]] for rows in replay.held({"map_id"})]

    with monkeypatch.context() as patch:
        patch.setattr(SerialEnv, "_states", GroupEnv._states)
        state = load_checkpoint(save_checkpoint(tmp_path / "c.pt", first.state()))
    assert state["collector"]["vec_env"] is None
    second.load(state)
    same(walls(second), walls(first))
    second.iterate(without_phases)
    own = [env.game for env in second.collector.vec_env.singles.cores]
    shown = second.collector.vec_env.tables["map"]["walls"][second.collector.obs["map_id"]]
    assert_array_equal(shown, [g.tables["map"]["walls"][g.map_id[0]] for g in own])


def test_best_score_and_generators_come_back(tmp_path):
    run = toy_run(tmp_path)
    save_checkpoint(tmp_path / "last.pt", snapshot(run, learner_of(run), 17.5))
    drawn = torch.rand(2), np.random.rand(2), random.random()  # noqa: NPY002
    assert Saves(run, learner_of(run)).resume(str(tmp_path)).best == 17.5
    again = torch.rand(2), np.random.rand(2), random.random()  # noqa: NPY002
    assert torch.equal(drawn[0], again[0])
    assert_array_equal(drawn[1], again[1])
    assert drawn[2] == again[2]


def test_another_number_of_processes_goes_on_with_different_random_numbers(tmp_path):
    run = toy_run(tmp_path)
    Saves(run, learner_of(run)).save()

    def drawn(ranks):
        trainer = Trainer(run, Nowhere(), console=quiet())
        trainer.ranks, trainer.learner = ranks, learner_of(run)
        trainer.saves = Saves(run, trainer.learner, ranks)
        trainer.go_on(str(tmp_path))
        return (*torch.rand(2).tolist(), np.random.rand(), random.random())  # noqa: NPY002

    alone, *parts = [drawn(ranks) for ranks in (Ranks(), *(Ranks(n, 3) for n in range(3)))]

    assert alone == parts[0]
    assert len({number for part in parts for number in part}) == 4 * 3
    assert drawn(Ranks(2, 3)) == parts[2]


class OneOfTwo(Ranks):
    """A process of two that hears nobody."""

    def at_first(self, value):
        return [value, value] if self.first else []


@pytest.mark.parametrize("rank", [0, 1])
def test_every_process_knows_alike_what_is_not_saved_yet(rank, tmp_path):
    """A process that would save once more alone would wait for the others for ever."""
    run = toy_run(tmp_path)
    learner = learner_of(run)
    saves = Saves(run, learner, OneOfTwo(rank, 2))
    assert saves.stale
    saves.save()
    assert not saves.stale
    assert (tmp_path / "checkpoints").is_dir() is (rank == 0)
    learner.num_steps += 1
    assert saves.stale


def test_a_save_that_the_disk_refused_is_still_to_be_made(tmp_path, monkeypatch):
    saves = Saves(run := toy_run(tmp_path), learner_of(run))

    def full(*file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saves_module, "save_newest", full)
    with pytest.raises(DiskError, match="No space left"):
        saves.save()
    assert saves.stale


def test_a_process_saves_once_more_with_one_that_could_not(tmp_path, monkeypatch):
    """Each saves with all others, so that one alone would wait for ever."""
    mine, saved, save = [], [], Saves.save
    monkeypatch.setattr(Saves, "stale", property(lambda self: mine))  # nothing is new here
    monkeypatch.setattr(Saves, "save", lambda self: saved.append(0) or save(self))
    ways = {"checkpoint_every_steps": 32, "evaluation": Evaluation(episodes=4, num_envs=4)}
    train(toy_run(tmp_path / "a", **ways), Nowhere(), console=quiet())
    alone = len(saved)
    monkeypatch.setattr(
        Ranks, "any", lambda self, *flags: tuple(flag is mine or bool(flag) for flag in flags)
    )
    train(toy_run(tmp_path / "b", **ways), Nowhere(), console=quiet())
    assert len(saved) == 2 * alone + 1


def scored(success, returned):
    stats = {"success": np.array([success]), "return": np.array([returned])}
    return Result(Score.of(stats))


def test_the_best_policy_has_most_success_and_the_return_breaks_ties(tmp_path, monkeypatch):
    played = [scored(0.5, 1.0), scored(0.25, 100.0), scored(0.5, 2.0)]
    scores = iter([*played, scored(0.0, 0.0)])  # the last is random play
    monkeypatch.setattr(trainer_module, "evaluate", lambda *_, **__: next(scores))
    often = Evaluation(every_steps=32, episodes=4, num_envs=4)
    best = tmp_path / "checkpoints" / "best.pt"
    kept, real = [], Trainer.try_out

    def watched(self):
        real(self)
        kept.append(load_checkpoint(best)["num_steps"])

    monkeypatch.setattr(Trainer, "try_out", watched)
    train(toy_run(tmp_path, evaluation=often), Nowhere(), console=quiet())
    assert kept == [32, 32, 96]


def test_a_resumed_run_keeps_the_best_policy_of_the_run_before(tmp_path, monkeypatch):
    often = Evaluation(every_steps=32, episodes=4, num_envs=4)
    monkeypatch.setattr(trainer_module, "evaluate", lambda *_, **__: scored(0.75, 1.0))
    train(toy_run(tmp_path / "a", evaluation=often), Nowhere(), console=quiet())
    monkeypatch.setattr(trainer_module, "evaluate", lambda *_, **__: scored(0.5, 9.0))
    longer = replace(ALGO, total_steps=32 * 5)
    second = toy_run(tmp_path / "b", evaluation=often, algo=longer, resume=str(tmp_path / "a"))
    train(second, Nowhere(), console=quiet())
    assert not (tmp_path / "b" / "checkpoints" / "best.pt").exists()
    assert load_checkpoint(tmp_path / "b")["best"] == 0.75e6 + 1


def test_a_damaged_newest_checkpoint_is_passed_over_in_words_and_the_run_ends_the_same(tmp_path):
    whole = toy_run(tmp_path / "whole", checkpoint_every_steps=32)
    train(whole, Nowhere(), console=quiet())
    last = tmp_path / "whole" / "checkpoints" / "last.pt"
    raw = bytearray(last.read_bytes())
    raw[-40] ^= 16
    (tmp_path / "damaged").mkdir()
    for file in last.parent.iterdir():
        (tmp_path / "damaged" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "damaged" / "last.pt").write_bytes(raw)
    console = quiet()
    resumed = toy_run(tmp_path / "again", resume=str(tmp_path / "damaged"))
    train(resumed, Nowhere(), console=console)
    said = console.file.getvalue()
    assert "Passed over" in said
    assert "another checksum" in said
    assert "step_000000000096.pt at 96 steps" in said
    same(load_checkpoint(tmp_path / "again")["learner"], load_checkpoint(last)["learner"])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda c: c.pop("learner"), "does not hold"),
        (lambda c: c.pop("identity"), "does not hold"),
        (lambda c: c["learner"].pop("policy"), "does not hold"),
        (lambda c: c["learner"]["policy"].update({"network.value.bias": torch.ones(9)}), "builds"),
        (lambda c: c["learner"].update(optimizer={"moments": 3}), "optimizer.moments"),
        (lambda c: c["learner"]["collector"].update(starts=np.ones(4)), "collector.starts"),
        (lambda c: c["learner"].update(policy=3), "builds a mapping"),
        (lambda c: c["learner"]["collector"]["vec_env"]["game"].update(maps=None), "does not hold"),
        (lambda c: c.update(best="x"), "does not hold"),
    ],
)
def test_content_that_does_not_fit_the_run_is_refused_in_one_line(spoil, words, tmp_path):
    run = toy_run(tmp_path)
    content = snapshot(run, learner_of(run), 0.0)
    spoil(content)
    save_checkpoint(tmp_path / "last.pt", content)
    with pytest.raises(CheckpointError, match=words) as refused:
        Saves(run, learner_of(run)).resume(str(tmp_path))
    assert "\n" not in str(refused.value)


def test_a_checkpoint_with_the_parameters_twice_as_older_versions_wrote_it_goes_on(tmp_path):
    run = toy_run(tmp_path)
    first, second = learner_of(run), learner_of(run)
    first.iterate(without_phases)
    content = snapshot(run, first, 0.0)
    content["learner"]["optimizer"]["flat"] = first.optimizer.flat.detach().clone()
    save_checkpoint(tmp_path / "last.pt", content)
    Saves(run, second).resume(str(tmp_path))
    same(second.state(), first.state())


def test_forms_are_compared_before_anything_is_copied():
    check_form({"a": np.ones(2), "new": 3}, {"a": np.zeros(2), "other": 1}, "c.pt")
    with pytest.raises(CheckpointError, match=r"array float64 \[2\] as 'learner\.a'.*float32"):
        check_form({"a": np.ones(2, np.float32)}, {"a": np.ones(2)}, "c.pt")


@pytest.mark.parametrize("where", ["policy", "optimizer", "scale"])
def test_a_checkpoint_never_holds_a_value_that_is_not_finite(where, tmp_path):
    run = toy_run(tmp_path)
    learner = learner_of(run)
    if where == "policy":
        learner.policy.network.value.bias.data[0] = float("nan")
    elif where == "optimizer":
        learner.optimizer.flat.data[0] = float("inf")
    else:
        learner.collector.scale.returns[1] = float("nan")
    with pytest.raises(CheckpointError, match="not finite"):
        snapshot(run, learner, 0.0)


@pytest.mark.parametrize("value", [-1, 4, 2**31 - 1])
def test_ids_of_rows_that_no_table_has_never_reach_a_kernel(value, tmp_path):
    run = toy_run(tmp_path)
    content = snapshot(run, learner_of(run), 0.0)
    content["learner"]["collector"]["obs"]["map_id"][2] = value
    save_checkpoint(tmp_path / "last.pt", content)
    with pytest.raises(FrugalError, match="id of table 'map' lies outside its"):
        Saves(run, learner_of(run)).resume(str(tmp_path))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda worlds: worlds.update(position=np.zeros((3, 2), np.uint8)),
        lambda worlds: worlds.update(position=np.zeros((4, 2))),
        lambda worlds: worlds.update(advance=np.zeros(1)),
        lambda worlds: worlds.pop("steps"),
    ],
)
def test_environments_take_only_the_arrays_that_they_give(spoil, tmp_path):
    run = toy_run(tmp_path)
    content = snapshot(run, learner_of(run), 0.0)
    spoil(content["learner"]["collector"]["vec_env"]["game"]["worlds"])
    save_checkpoint(tmp_path / "last.pt", content)
    with pytest.raises(CheckpointError, match=r"vec_env\.game\.worlds"):
        Saves(run, learner_of(run)).resume(str(tmp_path))


@pytest.mark.parametrize("steps", [float("inf"), float("nan"), "many", [1], None])
def test_steps_that_are_no_number_are_refused_in_a_line(steps, tmp_path):
    run = toy_run(tmp_path)
    content = snapshot(run, learner_of(run), 0.0)
    content["learner"]["num_steps"] = steps
    save_checkpoint(tmp_path / "last.pt", content)
    with pytest.raises(CheckpointError, match="does not hold what this run continues from"):
        Saves(run, learner_of(run)).resume(str(tmp_path))
