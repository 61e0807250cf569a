"""The curriculum's rules one by one, and that its log repeats its decisions."""

import json

import numpy as np
import pytest

from nclone.levels.curriculum import Curriculum, CurriculumConfig, Decision, Episode, replay_log
from nclone.levels.generators import CATEGORIES

STAGES = list(CATEGORIES)


def play(curriculum, results, stage=None, source="a/b", steps=0):
    """Record results one after the other until something changes; returns the change."""
    for k, success in enumerate(results):
        change = curriculum.record(
            Episode(stage or curriculum.stage, source, bool(success), steps + k)
        )
        if change is not None:
            return change
    return None


def pattern(share, count):
    """`count` results whose success over every window is close to `share`, evenly spread."""
    return [int((k + 1) * share) > int(k * share) for k in range(count)]


def test_a_stage_is_left_at_its_threshold_and_not_before_its_minimum():
    curriculum = Curriculum()
    assert play(curriculum, pattern(0.76, 99)) is None
    change = play(curriculum, pattern(0.76, 2))
    assert (change.decision, change.stage) == (Decision.advance, STAGES[1])
    assert change.episodes == CATEGORIES[STAGES[0]].min_episodes


def test_below_the_threshold_nothing_happens():
    assert play(Curriculum(), pattern(0.66, 1000)) is None


def test_a_stage_that_is_mastered_is_left_early():
    change = play(Curriculum(), [True] * 80)
    assert (change.decision, change.episodes) == (Decision.early_advance, 50)


def test_a_rising_trend_just_below_the_threshold_is_enough_after_most_of_the_minimum():
    results = [False] * 40 + [k % 5 < 2 for k in range(25)] + [True] * 24 + [False]
    results[65:90] = [True] * 24 + [False]
    curriculum = Curriculum()
    assert play(curriculum, results[:89]) is None
    change = play(curriculum, results[89:])
    assert change.decision is Decision.trend_advance
    assert change.success == pytest.approx(0.68)


def test_without_a_trend_just_below_the_threshold_is_not_enough():
    assert play(Curriculum(), pattern(0.68, 99)) is None


def test_a_learner_falls_back_after_200_bad_episodes():
    curriculum = Curriculum(start=STAGES[2])
    assert play(curriculum, pattern(0.2, 199)) is None
    change = play(curriculum, [False])
    assert (change.decision, curriculum.stage) == (Decision.regress, STAGES[1])
    assert play(Curriculum(), [False] * 500) is None  # the first stage has nothing to fall back to


def test_the_last_stage_is_never_left_upwards():
    assert play(Curriculum(start=STAGES[-1]), [True] * 500) is None


def test_the_threshold_is_lowered_only_if_asked_for_and_never_below_its_floor():
    results = [False] * 20
    for lower in (False, True):
        curriculum = Curriculum(CurriculumConfig(lower_threshold=lower))
        for k in range(20):
            play(curriculum, results, steps=50_000 * (k + 1))
        assert curriculum.threshold == (0.40 if lower else 0.70)


@pytest.mark.parametrize(
    ("success", "share"), [(0.3, 0.40), (0.5, 0.25), (0.7, 0.15), (0.8, 0.05), (0.86, 0.05)]
)
def test_earlier_stages_are_mixed_in_by_success(success, share):
    curriculum = Curriculum(CurriculumConfig(early_success=2.0), start=STAGES[1])
    play(curriculum, pattern(success, 50))
    assert curriculum.success == pytest.approx(success, abs=0.02)
    assert curriculum.mix == share
    stages = [stage for stage, _ in curriculum.draw(np.random.default_rng(0), 4000)]
    assert stages.count(STAGES[0]) / 4000 == pytest.approx(share, abs=0.03)


def test_sources_that_are_not_solved_come_more_often():
    curriculum = Curriculum()
    sources = list(curriculum.weights(STAGES[0]))
    assert len(set(curriculum.weights(STAGES[0]).values())) == 1
    for source, success in zip(sources, (True, True, False), strict=True):
        play(curriculum, [success] * 10, source=source)
    weights = curriculum.weights(STAGES[0])
    assert sum(weights.values()) == pytest.approx(1)
    assert weights[sources[2]] > 5 * weights[sources[0]] > 0


def test_results_of_earlier_stages_do_not_move_the_present_one():
    curriculum = Curriculum(start=STAGES[1])
    assert play(curriculum, [True] * 300, stage=STAGES[0]) is None
    assert curriculum.success == 0


def random_run(log=None, **config):
    rng = np.random.default_rng(3)
    curriculum = Curriculum(CurriculumConfig(**config), log=log)
    changes = []
    for k in range(4000):
        (stage, source), skill = curriculum.draw(rng)[0], 0.5 + 0.45 * np.sin(k / 300)
        change = curriculum.record(Episode(stage, source, bool(rng.random() < skill), 40 * k))
        changes += [change] if change else []
    return curriculum, changes


def test_decisions_can_be_repeated_from_the_event_log():
    lines = []
    _, changes = random_run(log=lambda event: lines.append(json.dumps(event)))
    events = [json.loads(line) for line in lines]

    assert len({change.decision for change in changes}) >= 2
    assert replay_log(events) == changes
    logged = [e for e in events if e["event"] == "change"]
    assert [e["stage"] for e in logged] == [c.stage for c in changes]


def test_a_loaded_state_goes_on_like_the_original():
    original, _ = random_run(lower_threshold=True)
    copy = Curriculum(CurriculumConfig(lower_threshold=True))
    copy.load(json.loads(json.dumps(original.state())))
    rng = np.random.default_rng(9)
    for k in range(1000):
        episode = Episode(original.stage, "x/y", bool(rng.random() < 0.8), 160_000 + k)
        assert original.record(episode) == copy.record(episode)
        assert original.mix == copy.mix
    assert original.state() == copy.state()


def test_unknown_stages_are_named():
    with pytest.raises(ValueError, match="simplest"):
        Curriculum(start="hardest")
    with pytest.raises(ValueError, match="no stage"):
        Curriculum().record(Episode("hardest", "a/b", True, 0))
    with pytest.raises(ValueError, match="mix_shares"):
        CurriculumConfig(mix_shares=(0.1,))
