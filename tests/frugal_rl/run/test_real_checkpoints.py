"""Checkpoints as each learner writes them: no flipped bit and no missing end is accepted."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from frugal_rl.errors import CheckpointError
from frugal_rl.run.checkpoint_file import pieces_of
from frugal_rl.run.checkpoints import find_checkpoint, load_checkpoint
from frugal_rl.run.compose import compose_run, folder
from frugal_rl.run.replay_aside import brought_back
from frugal_rl.run.trainer import no_meter, train
from frugal_rl.testing import reach  # noqa: F401 - registers Reach-v0
from frugal_rl.testing.faults import damages

SMALL = ("tracking=disabled", "hardware.device=cpu", "hardware.threads=1", "evaluation.episodes=0")
ON_POLICY = ("algo.num_envs=2", "algo.n_steps=16", "algo.batch_size=16", "algo.n_epochs=1",
             "algo.total_steps=32")  # fmt: skip
OFF_POLICY = ("algo.num_envs=2", "algo.n_steps=16", "algo.batch_size=8", "algo.learning_starts=8",
              "algo.total_steps=32", "algo.buffer_size=64")  # fmt: skip
WHOLE = ("env=mine_cpit", "env.data=porphyry_tiny", "agent=priority", "algo.threads=1",
         "algo.total_steps=1")  # fmt: skip
CONTINUOUS = ("env=gymnasium", "env.id=Pendulum-v1", "agent.actor=[4]")
NETWORKS = ("agent.actor=[4]", "agent.critic=[4]")
DUEL = ("env=fighting", *NETWORKS, *ON_POLICY)
TEACHER = "algo.teacher=TEACHER"
RUNS = {
    "ppo": ("env=toy", "agent.actor=[4]", "agent.critic=[4]", *ON_POLICY),
    "episodes": ("env=toy", "vec=episodes", "agent.actor=[4]", "agent.critic=[4]", *ON_POLICY),
    "dqn": ("env=gymnasium", "algo=dqn", "agent.actor=[4]", *OFF_POLICY),
    "prioritised": (
        "env=gymnasium",
        "algo=dqn",
        "algo.prioritised=true",
        "agent.actor=[4]",
        *OFF_POLICY,
    ),
    "her": (
        "env=gymnasium",
        "env.id=Reach-v0",
        "agent.actor=[4]",
        "algo=sac",
        "algo.her=true",
        *OFF_POLICY,
        "algo.learning_starts=24",
    ),
    "compiled": ("env=toy", *NETWORKS, *ON_POLICY, "algo.engine=compiled"),
    "normalised": ("env=toy", *NETWORKS, *ON_POLICY, "algo.reward_normalisation=true"),
    "sac": (*CONTINUOUS, "algo=sac", *OFF_POLICY),
    "qr_dqn": ("env=gymnasium", "algo=qr_dqn", "agent.actor=[4]", *OFF_POLICY),
    "td3": (*CONTINUOUS, "algo=td3", *OFF_POLICY),
    "tqc": (*CONTINUOUS, "algo=tqc", *OFF_POLICY),
    "crossq": (*CONTINUOUS, "algo=crossq", *OFF_POLICY),
    "cloned_ppo": (
        "env=nclone",
        "agent=mlp",
        "agent.actor=[4]",
        "agent.critic=[4]",
        "env.levels=[drawn]",
        "algo=cloned_ppo",
        "algo.cloning.epochs=0",
        *ON_POLICY,
    ),
    "dagger_ppo": (
        "env=nclone",
        "agent=mlp",
        "agent.actor=[4]",
        "agent.critic=[4]",
        "env.levels=[drawn]",
        "algo=dagger_ppo",
        "algo.cloning.epochs=0",
        "algo.teacher.rounds=0",
        *ON_POLICY,
    ),
    "evolution": (*WHOLE, "algo=evolution"),
    "schedule_gradient": (*WHOLE, "algo=schedule_gradient"),
    "self_play": (
        "env=fighting",
        "algo=fighting_self_play",
        "env.obs=ram",
        "env.opponent=self_play",
        "agent.actor=[4]",
        "agent.critic=[4]",
        *ON_POLICY,
    ),
    "taught": (*DUEL, "algo=fighting_taught", "env.actions=macros", "env.frame_skip=6", TEACHER),
    "nclone": ("env=nclone", "agent=mlp", "agent.actor=[4]", "agent.critic=[4]", *ON_POLICY),
}
QUICK = ("ppo", "dqn")


def words_of(name, folder):
    """What a run is composed of; a teacher is made where one is named."""
    words = RUNS[name]
    if TEACHER not in words:
        return [*words, *SMALL]
    teacher = [w for w in words if w not in (TEACHER, "algo=fighting_taught")] + ["env.obs=ram"]
    trained(compose_run([*teacher, *SMALL], check=False), folder / "teacher")
    return [*(w for w in words if w != TEACHER), *SMALL, f"algo.teacher={folder / 'teacher'}"]


def trained(run, folder):
    train(replace(run, run_dir=str(folder)), Nowhere(), console=Console(file=io.StringIO()))


def test_every_algorithm_that_is_offered_is_among_the_learners():
    offered = {file.stem for file in (folder("conf") / "algo").glob("*.yaml")}
    tried = {w.removeprefix("algo=") for run in RUNS.values() for w in run if w.startswith("algo=")}
    assert offered == tried | {"ppo"}


class Nowhere:
    def metrics(self, step, values):
        pass

    summary = file = lambda self, values: None


def nothing_damaged_is_accepted(name, folder, flips, cuts):
    """The files that were damaged: a checkpoint, and the segment in which its replay lies."""
    trained(compose_run(words_of(name, folder), check=False), folder / "run")
    newest = find_checkpoint(folder / "run")
    files = [newest, *newest.parent.rglob("*.segment")]
    wrong = []
    for file in files:
        raw = file.read_bytes()
        for what, damaged in damages(raw, flips, cuts, len(name)):
            file.write_bytes(damaged)
            try:
                brought_back(load_checkpoint(newest), newest)
                wrong.append(f"{what} was accepted")
            except CheckpointError as error:
                wrong += [f"{what}: {error}"] * (not str(error).isprintable())
        file.write_bytes(raw)
    assert wrong == []
    assert brought_back(load_checkpoint(newest), newest)["num_steps"] >= 1
    return [file.suffix for file in files]


@pytest.mark.parametrize("name", QUICK)
def test_damage_anywhere_in_a_learners_checkpoint_is_refused(name, tmp_path):
    files = nothing_damaged_is_accepted(name, tmp_path, 40, 10)
    assert files == [".pt", ".segment"][: 1 + (name == "dqn")]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_thousand_flips_and_two_hundred_cuts_of_each_learners_are_refused(name, tmp_path, capsys):
    files = nothing_damaged_is_accepted(name, tmp_path, 1000, 200)
    with capsys.disabled():
        print(f"\n{name}: 1,000 flips and 200 cuts of each of {files}, none accepted")


def learner_of(name, folder):
    run = compose_run(words_of(name, folder), check=False)
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, env)


def a_loaded_state_is_shared_with_nobody(name, folder):
    first, second = learner_of(name, folder), learner_of(name, folder)
    try:
        for _ in range(2):
            first.iterate(no_meter)
        state = first.state()
        kept = [bytes(piece) for piece in pieces_of(state)]
        second.load(state)
        second.iterate(no_meter)
        assert [bytes(piece) for piece in pieces_of(state)] == kept
    finally:
        first.vec_env.close()
        second.vec_env.close()


@pytest.mark.parametrize("name", QUICK)
def test_what_a_learner_loads_is_never_changed_by_it(name, tmp_path):
    a_loaded_state_is_shared_with_nobody(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_what_each_learner_loads_is_never_changed_by_it(name, tmp_path):
    a_loaded_state_is_shared_with_nobody(name, tmp_path)
