"""The curriculum deals levels of its stage, moves on by results, can be repeated and resumed."""

import numpy as np
import pytest

from nclone.errors import LevelError
from nclone.levels.curriculum import CurriculumConfig, replay_log
from nclone.levels.deal import CurriculumDeal, pool_places

NAMES = ("simplest", "simplest_few_mines", "simple")


def played(deal, episodes, success, seed=0):
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(episodes):
        places = deal.next(rng.random(8))
        deal.steps += 8
        deal.record(places, rng.random(8) < success)
        seen.append(places)
    return np.concatenate(seen)


def test_levels_come_from_the_present_stage_and_success_leads_on():
    deal, places = CurriculumDeal(NAMES, CurriculumConfig()), pool_places(NAMES)
    first = deal.next(np.random.default_rng(0).random(50))
    assert {places[p][0] for p in first} == {"simplest"}

    played(deal, 40, success=1.0)

    assert deal.stage > 0
    later = deal.next(np.random.default_rng(0).random(50))
    assert "simplest" not in {places[p][0] for p in later} or deal.curriculum.mix > 0


def test_failure_stays_where_it_is():
    deal = CurriculumDeal(NAMES, CurriculumConfig())
    played(deal, 40, success=0.1)
    assert deal.stage == 0


def test_a_log_repeats_the_decisions():
    log = []
    deal = CurriculumDeal(NAMES, CurriculumConfig(), log.append)
    played(deal, 120, success=0.95)
    changes = [e for e in log if e["event"] == "change"]
    again = replay_log(log, CurriculumConfig(), deal.curriculum.stages)
    assert [c.stage for c in again] == [e["stage"] for e in changes]
    assert changes


def test_a_restored_deal_goes_on_alike():
    ours, theirs = (CurriculumDeal(NAMES, CurriculumConfig()) for _ in range(2))
    played(ours, 30, success=0.8)
    theirs.load(ours.state())
    np.testing.assert_array_equal(played(ours, 20, 0.8, seed=1), played(theirs, 20, 0.8, seed=1))
    assert ours.state() == theirs.state()


def test_levels_that_are_no_categories_are_refused():
    with pytest.raises(LevelError, match="needs categories"):
        CurriculumDeal(("walk",), CurriculumConfig())
