"""Lessons: a pupil follows a teacher who sees memory, then the reward; mixed self-play."""

import shutil
from contextlib import nullcontext

import numpy as np
import pytest
from stable_baselines3.common.utils import set_random_seed

from fighting.choices import Actions, Rival
from fighting.config import DuelConfig
from fighting.machine import duel
from fighting.teaching.config import TaughtPpo
from fighting.vec_env import DuelVecEnv
from frugal_rl.errors import ConfigError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.checkpoints import save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.identity import identity

NATIVE = [
    "env=fighting",
    "env.emulator=native",
    "env.threads=1",
    "env.round_seconds=4",
    "env.actions=macros",
    "env.frame_skip=6",
    "algo.num_envs=8",
    "algo.n_steps=32",
    "algo.batch_size=64",
    "algo.n_epochs=4",
    "hardware.device=cpu",
    "hardware.threads=1",
]
WAVE = 16
"""The first macro."""
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def learner_of(overrides):
    run = compose_run([*NATIVE, *overrides])
    set_random_seed(0)
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run, run.algo.build(run, env)


@pytest.fixture
def teacher(tmp_path):
    """The checkpoint of a policy that throws waves when it stands far off and else guards."""
    run, learner = learner_of([])
    weights = dict(learner.policy.state_dict())
    weights["network.logits.bias"] = weights["network.logits.bias"].clone()
    weights["network.logits.bias"][WAVE] = 4.0
    content = {
        "identity": identity(run),
        "config": dict(run.resolved),
        "overrides": list(run.overrides),
        "num_steps": 0,
        "learner": {"policy": weights},
    }
    learner.vec_env.close()
    return str(save_checkpoint(tmp_path / "teacher.pt", content))


def test_the_reward_takes_the_teachers_place_as_the_run_goes_on():
    algo = TaughtPpo(imitate=0.5, fade=0.25)
    assert [algo.weight(done) for done in (0, 0.5, 0.625, 0.75, 1)] == [1, 1, 0.5, 0, 0]


@needs_compiler
def test_a_pupil_comes_to_do_what_its_teacher_does(teacher):
    words = ["algo=fighting_taught", f"algo.teacher={teacher}", "algo.imitate=1.0"]
    run, learner = learner_of([*words, "algo.learning_rate=3e-3", "algo.total_steps=10000"])
    errors = []
    for _ in range(8):
        metrics = learner.iterate(lambda phase: nullcontext())
        errors.append(metrics["train/lesson_error"])
    assert metrics["train/teacher"] == 1
    assert errors[-1] < 0.75 * errors[0]
    assert np.mean(learner.rollout.actions == WAVE) > 0.4
    lessons, held = learner.rollout.labels["lesson"], learner.parts()["rollout/labels"]
    assert run.algo.parts(run)[0].ram_bytes == lessons.nbytes == held
    free = lessons.sum(axis=-1)
    assert set(np.round(np.unique(free), 3)) == {0, 1}
    assert 0.1 < free.mean() < 0.9  # while a wave is thrown nobody chooses
    learner.vec_env.close()


@needs_compiler
def test_without_a_teacher_the_loss_is_ppos(teacher):
    plain, own = learner_of(["algo=ppo"])[1], None
    words = ["algo=fighting_taught", f"algo.teacher={teacher}", "algo.imitate=0.0"]
    own = learner_of([*words, "algo.fade=1e-9"])[1]
    for learner in (plain, own):
        set_random_seed(1)
        learner.iterate(lambda phase: nullcontext())
        learner.vec_env.close()
    pairs = zip(plain.policy.parameters(), own.policy.parameters(), strict=True)
    assert all(np.array_equal(a.detach(), b.detach()) for a, b in pairs)


@needs_compiler
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "needs algo.teacher=RUN"),
        (["algo.teacher=TEACHER", "env.frame_skip=4"], "plays with env.frame_skip=6"),
        (["algo.teacher=TEACHER", "env.actions=combos"], "set env.actions=macros"),
        (["algo.teacher=TEACHER", "algo.engine=compiled"], "choose algo.engine=exact"),
    ],
)
def test_lessons_that_mean_nothing_are_refused(teacher, words, told):
    words = [word.replace("TEACHER", teacher) for word in words]
    with pytest.raises(ConfigError, match=told):
        learner_of(["algo=fighting_taught", *words])


def batch(**options):
    config = DuelConfig(opponent=Rival.mixed, levels=(1, 7), threads=1, round_seconds=1, **options)
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    return DuelVecEnv(config, 8, encoding, MemoryProfile())


def test_mixed_fights_meet_the_computer_and_others():
    env = batch(pool_share=0.75, cpu_share=0.5, actions=Actions.combos)
    env.reset(0)
    game, met = env.game, set()
    assert len(game.emulators.machines) == 7  # one pair and six alone
    for _ in range(60):
        env.step(np.zeros(8, np.int64))
        for m, machine in enumerate(game.emulators.machines):
            mode = machine.memory[duel.MODE]
            assert mode == (duel.HOST_CPU if game.computer[m] else duel.HOST_HOST)
            if game.computer[m]:
                assert game.seats[game.rows_of[m]].tolist() == [0]
                met.add(int(machine.memory[duel.LEVEL]))
            else:
                met.add("past self or script" if len(game.rows_of[m]) == 1 else "itself")
    assert met == {1, 7, "past self or script", "itself"}
    env.close()


def test_mixed_without_the_computer_is_refused():
    with pytest.raises(ConfigError, match=r"env\.pool_share times env\.cpu_share"):
        DuelConfig(opponent=Rival.mixed, cpu_share=0.0)
