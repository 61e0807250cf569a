"""The curriculum draws levels of its stage, moves on by results, can be repeated and resumed."""

import numpy as np
import pytest

from frugal_rl.testing.ranks import together
from nclone.errors import LevelError
from nclone.levels.curriculum import CurriculumConfig, replay_log
from nclone.levels.sampler import LevelSampler
from nclone.levels.sources import pool_places

NAMES = ("simplest", "simplest_few_mines", "simple")


def played(sampler, episodes, success, seed=0):
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(episodes):
        places = sampler.next(rng.random(8))
        sampler.steps += 8
        sampler.record(places, rng.random(8) < success)
        seen.append(places)
    return np.concatenate(seen)


def test_levels_come_from_the_present_stage_and_success_leads_on():
    sampler, places = LevelSampler(pool_places(NAMES), CurriculumConfig()), pool_places(NAMES)
    first = sampler.next(np.random.default_rng(0).random(50))
    assert {places[p][0] for p in first} == {"simplest"}

    played(sampler, 40, success=1.0)

    assert sampler.stage > 0
    later = sampler.next(np.random.default_rng(0).random(50))
    assert "simplest" not in {places[p][0] for p in later} or sampler.curriculum.mix > 0


def test_failure_stays_where_it_is():
    sampler = LevelSampler(pool_places(NAMES), CurriculumConfig())
    played(sampler, 40, success=0.1)
    assert sampler.stage == 0


def test_a_log_repeats_the_decisions():
    log = []
    sampler = LevelSampler(pool_places(NAMES), CurriculumConfig(), log.append)
    played(sampler, 120, success=0.95)
    changes = [e for e in log if e["event"] == "change"]
    again = replay_log(log, CurriculumConfig(), sampler.curriculum.stages)
    assert [c.stage for c in again] == [e["stage"] for e in changes]
    assert changes


def test_a_restored_sampler_goes_on_alike():
    ours, theirs = (LevelSampler(pool_places(NAMES), CurriculumConfig()) for _ in range(2))
    played(ours, 30, success=0.8)
    theirs.load(ours.state())
    np.testing.assert_array_equal(played(ours, 20, 0.8, seed=1), played(theirs, 20, 0.8, seed=1))
    assert ours.state() == theirs.state()


def test_levels_that_are_no_categories_are_refused():
    with pytest.raises(LevelError, match="needs categories"):
        LevelSampler(
            pool_places(
                "walk",
            ),
            CurriculumConfig(),
        )


def test_ranks_share_one_curriculum_decided_by_the_episodes_of_all():
    places = pool_places(NAMES)
    first = places[0][0]
    easy = np.flatnonzero([stage == first for stage, _ in places])
    rng = np.random.default_rng(2)
    ended = [rng.choice(easy, (2, 40, 3)) for _ in range(3)]  # of rollouts: rank, step, episode
    won = [rng.random((2, 40, 3)) < 0.97 for _ in range(3)]
    whole = LevelSampler(places, CurriculumConfig())
    for rollout, successes in zip(ended, won, strict=True):
        for step in range(40):
            whole.steps += 6
            for rank in range(2):
                whole.record(rollout[rank, step], successes[rank, step])

    def shared(ranks):
        sampler = LevelSampler(places, CurriculumConfig())
        sampler.agree(ranks)
        for rollout, successes in zip(ended, won, strict=True):
            for step in range(40):
                sampler.steps += 3
                sampler.record(rollout[ranks.rank, step], successes[ranks.rank, step])
            sampler.agree(ranks)
        return sampler.state()

    one, other = together(2, shared)

    assert one == other == whole.state()
    assert whole.stage > 0
