"""Expert data from stored solutions, and a clone that learns from it."""

from dataclasses import astuple, replace

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from frugal_rl.errors import DataError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.ranks import together
from nclone.config import NppConfig
from nclone.levels.pool import Split, load_pool
from nclone.spec import Observation
from npp_rl.choices import GraphEncoding, ObjectiveValues, Readout
from npp_rl.config import AttentionAgent
from npp_rl.teaching.cloning import clone, split_levels
from npp_rl.teaching.config import Cloning
from npp_rl.teaching.demonstrations import record
from npp_rl.teaching.shares import recorded
from npp_rl.teaching.solutions import solutions

CONFIG = NppConfig(obs=Observation.graph, levels=("simplest",))
ENCODING = Encoding.choose(CONFIG.spec(), Storage.lossless)


@pytest.fixture(scope="module")
def demos():
    return record(CONFIG, ENCODING, solutions(CONFIG), gamma=0.99)


@pytest.fixture
def policy(small, demos):
    agent = AttentionAgent(
        graph=GraphEncoding(**small.graph, readout=(Readout.pool, Readout.path)),
        objectives=ObjectiveValues(**small.objectives),
        window_features=16,
        **small.agent,
    )
    torch.manual_seed(0)
    return FrugalPolicy(
        ENCODING.policy_space(), CONFIG.action_space(), lambda _: 1e-3, agent=agent,
        encoding=ENCODING, tables=demos.tables,
    )  # fmt: skip


def test_every_stored_solution_wins_when_it_is_replayed(demos):
    members = load_pool().of(["simplest"], Split.train).members

    assert demos.lost == ()
    assert demos.forbidden < 0.3 * len(demos)
    steps = np.bincount(demos.level, minlength=len(members))
    for count, member in zip(steps, members, strict=True):
        assert 0 < count <= len(member.inputs.per_step(4))


def test_recorded_rows_are_what_the_environment_shows(demos):
    level = 5
    actions = solutions(CONFIG)[level]
    env = CONFIG.make_vec(level + 1, ENCODING, MemoryProfile(), None, "train")
    env.game.config = NppConfig(obs=Observation.graph, levels=("simplest",), start_frames=0)
    env.game.order = "in turn"
    rows = env.reset(0)
    seen = []
    for action in actions:
        seen.append(rows["game_state"][level].copy())
        rows = env.step(np.full(level + 1, action)).rows
    recorded = demos.rows["game_state"][demos.level == level]
    places = [np.flatnonzero((np.array(seen) == row).all(axis=1)) for row in recorded]
    assert all(len(p) for p in places)
    assert len(recorded) > 0.7 * len(actions)


def test_returns_are_the_discounted_sum_of_what_follows(demos):
    complete = [n for n in range(20) if (demos.level == n).sum() == len(solutions(CONFIG)[n])]
    own = demos.returns[demos.level == complete[0]]
    rewards = own[:-1] - 0.99 * own[1:]
    assert own[-1] > 10  # completing the level pays last
    np.testing.assert_allclose(own[0], sum(rewards * 0.99 ** np.arange(len(rewards)))
                               + 0.99 ** len(rewards) * own[-1], rtol=1e-4)  # fmt: skip


def test_no_level_is_on_both_sides_of_the_split(demos):
    learn, judge = split_levels(demos, 0.2, seed=0)
    assert not set(demos.level[learn]) & set(demos.level[judge])
    assert len(learn) + len(judge) == len(demos)
    assert 0.1 < len(np.unique(demos.level[judge])) / len(np.unique(demos.level)) < 0.3


@pytest.mark.slow
def test_a_clone_predicts_held_out_experts_better_than_their_favourite_action(policy, demos):
    torch.set_num_threads(2)
    history = clone(policy, demos, Cloning(epochs=3, learning_rate=2e-3))
    _, judge = split_levels(demos, 0.1, 0)
    favourite = np.bincount(demos.actions[judge]).max() / len(judge)

    assert history[-1].validation_accuracy > favourite + 0.05
    assert history[-1].loss < history[0].loss


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_clone_what_one_does_from_all_levels(size):
    levels = ("walk", "jump", "fall", "mines")
    config = NppConfig(obs=Observation.state, levels=levels, frame_skip=1)
    encoding, inputs = Encoding.choose(config.spec(), Storage.lossless), solutions(config)
    settings = Cloning(epochs=3, batch_size=64, validation=0.25, learning_rate=1e-3)
    whole = record(config, encoding, inputs, gamma=0.99)
    students = []
    for _ in range(size + 1):
        torch.manual_seed(0)
        space = (encoding.policy_space(), config.action_space(), lambda _: 1e-3)
        student = FrugalPolicy(
            *space,
            agent=MlpAgent(actor=(16,), critic=(16,)),
            encoding=encoding,
            tables=whole.tables,
        )
        students.append(student)
    start = parameters_to_vector(students[0].parameters()).detach().clone()
    expected = clone(students[-1], whole, settings)

    def learn(ranks):
        own = recorded(config, encoding, inputs, 0.99, MemoryProfile(), ranks)
        return len(own), clone(students[ranks.rank], own, settings, ranks=ranks)

    results = together(size, learn)

    assert sum(count for count, _ in results) == len(whole)
    assert max(count for count, _ in results) < 0.75 * len(whole)
    weights = [parameters_to_vector(s.parameters()).detach() for s in students]
    assert all(torch.equal(weights[0], own) for own in weights[:-1])
    assert (weights[0] - weights[-1]).abs().max() < 1e-5
    assert (weights[-1] - start).abs().max() > 1e-3
    for _, history in results:
        for told, alone in zip(history, expected, strict=True):
            np.testing.assert_allclose(astuple(told), astuple(alone), atol=1e-5)


def test_a_rank_without_levels_of_its_own_holds_no_samples():
    config = NppConfig(obs=Observation.state, levels=("walk",))
    encoding = Encoding.choose(config.spec(), Storage.lossless)

    parts = together(
        2, lambda ranks: recorded(config, encoding, solutions(config), 0.99, MemoryProfile(), ranks)
    )

    assert len(parts[0]) > 0
    assert len(parts[1]) == 0


def test_levels_from_files_are_searched_and_what_is_not_won_is_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("title: a\n@..S..X\n")
    (tmp_path / "b.txt").write_text("title: b\n@..S#X\n")
    config = NppConfig(obs=Observation.state, levels=(str(tmp_path),))
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    found = solutions(config)
    assert [len(actions) > 0 for actions in found] == [True, False]
    demos = record(config, encoding, found, gamma=0.99)
    assert demos.lost == (1,)
    assert set(demos.level) == {0}
    (tmp_path / "a.txt").unlink()
    with pytest.raises(DataError, match="wins none of the 1 levels"):
        solutions(config)


def test_pool_files_and_mirror_images_come_with_solutions(tmp_path):
    from nclone.levels.growing import grow_pool

    grow_pool(tmp_path / "pool.npz", 3, 1, ["simplest"], show=False)
    names = (f"{tmp_path / 'pool.npz'}:simplest", "mirrored:simplest")
    config = replace(CONFIG, levels=names)
    assert len(solutions(config)) == len(config.open_levels("train"))


def test_a_curriculum_deals_levels_to_learners_not_to_demonstrations():
    config = NppConfig(obs=Observation.state, levels=("simplest", "simple"), curriculum=True)
    encoding = Encoding.choose(config.spec(), Storage.lossless)

    demos = record(config, encoding, solutions(config), gamma=0.99)

    assert demos.lost == ()
    assert len(np.unique(demos.level)) == 640
