"""How long a run takes: arithmetic on what was timed, remembered by kind, refused above a limit."""

import re
from dataclasses import replace

import pytest

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.learn import timing
from frugal_rl.memory import auto
from frugal_rl.memory.auto import prepare
from frugal_rl.memory.duration import (
    Duration,
    Line,
    Pace,
    estimate,
    keep_pace,
    spelled,
    stop_when_too_long,
)
from frugal_rl.memory.part import Phase
from frugal_rl.memory.probe import Probe
from frugal_rl.run.compose import compose_run
from frugal_rl.run.stopwatch import Stopwatch
from frugal_rl.run.trainer import no_meter

SIZES = ["algo.num_envs=10", "algo.n_steps=20", "algo.batch_size=50", "algo.n_epochs=3"]
PROBE = Probe(0, 0.0, 0, 0, 0, pace=Pace(Line(0.1, 0.002), Line(0.01, 0.001)))


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)


def run_of(*words):
    return compose_run(["env=toy", *SIZES, "algo.total_steps=1000", *words])


def keep(run, seconds, steps):
    """A run that kept one and a half cores busy."""
    keep_pace(run, seconds, {phase: 1.5 * s for phase, s in seconds.items()}, steps)


def test_seconds_add_up_over_steps_minibatches_and_epochs():
    took = estimate(run_of(), PROBE)

    assert took.collect_seconds == pytest.approx(20 * (0.01 + 10 * 0.001))
    assert took.update_seconds == pytest.approx(3 * 4 * (0.1 + 50 * 0.002))
    assert took.iterations == 5
    assert took.hours * 3600 == pytest.approx(5 * took.iteration_seconds)
    assert "for its network alone" in took.words
    assert "not timed yet" in took.words


def test_micro_batches_pay_the_fixed_cost_each():
    took = estimate(run_of("memory.micro_batch=10"), PROBE)

    assert took.update_seconds == pytest.approx(3 * 4 * 5 * (0.1 + 10 * 0.002))


def test_nothing_timed_is_no_duration():
    assert estimate(run_of(), None) is None
    assert estimate(run_of(), replace(PROBE, pace=None)) is None


def test_the_last_run_of_the_kind_counts_more_than_the_trial():
    run = run_of("evaluation.every_steps=400")
    keep(run, {Phase.rollout: 4.0, Phase.update: 6.0, Phase.evaluation: 7.0}, 200)
    took = estimate(run, PROBE)

    assert (took.collect_seconds, took.update_seconds) == (pytest.approx(4), pytest.approx(6))
    assert took.evaluation_seconds == pytest.approx(
        28
    )  # at 400, at 800, at the end, and random play
    assert took.hours * 3600 == pytest.approx(5 * 10 + 28)
    assert took.processor_seconds == pytest.approx(1.5 * 10)
    assert "about" in took.words
    assert estimate(run_of("evaluation.episodes=0"), None).evaluation_seconds == 0


def timed(*words):
    """Four seconds of 20 steps of 10 environments, six of 12 minibatches of 50."""
    keep(run_of(*words), {Phase.rollout: 4.0, Phase.update: 6.0, Phase.evaluation: 7.0}, 200)


def test_longer_rollouts_and_more_passes_take_longer_in_proportion():
    timed()
    took = estimate(run_of("algo.n_steps=60", "algo.n_epochs=5"), PROBE)

    assert took.collect_seconds == pytest.approx(3 * 4.0)
    assert took.update_seconds == pytest.approx(3 * 6.0 * 5 / 3)


def test_other_environments_share_what_a_step_costs_whatever_their_number():
    timed()
    took = estimate(run_of("algo.num_envs=15", "algo.batch_size=60"), PROBE)
    alone = estimate(run_of("algo.num_envs=15", "algo.batch_size=60"), None)

    acting = PROBE.pace.acting
    assert took.collect_seconds == pytest.approx(
        20 * ((0.2 - acting.at(10)) * 1.5**0.5 + acting.at(15))
    )
    assert took.update_seconds == pytest.approx(3 * 5 * 0.5 * (0.1 + 0.12) / (0.1 + 0.1))
    assert alone.collect_seconds == pytest.approx(4 * 1.5**0.5)
    assert alone.update_seconds == pytest.approx(3 * 5 * 0.5 * 1.2**0.5)


def test_learning_from_a_replay_takes_as_long_as_it_learns_often():
    few = ["algo=dqn", "algo.train_freq=4", "algo.gradient_steps=1", "algo.buffer_size=500"]
    run = compose_run(
        ["env=toy", *few, "algo.num_envs=10", "algo.n_steps=20", "algo.batch_size=50"]
    )
    keep(run, {Phase.rollout: 0.4, Phase.update: 0.1, Phase.evaluation: 7.0}, 40)
    more = compose_run([*run.overrides, "algo.gradient_steps=3", "algo.train_freq=2"])

    once, thrice = estimate(run, None), estimate(more, None)
    assert (once.collect_seconds, once.update_seconds) == (pytest.approx(2), pytest.approx(0.5))
    assert (thrice.collect_seconds, thrice.update_seconds) == (pytest.approx(2), pytest.approx(3))


def test_a_replay_is_learned_from_in_whole_rounds():
    words = ["env=toy", "algo=dqn", "algo.train_freq=16", "algo.num_envs=10", "algo.n_steps=22"]
    run = compose_run([*words, "algo.batch_size=50", "algo.buffer_size=500"])
    keep(run, {Phase.rollout: 1.6, Phase.update: 0.5, Phase.evaluation: 7.0}, 160)

    took = estimate(run, None)

    assert (took.collect_seconds, took.update_seconds) == (pytest.approx(1.6), pytest.approx(0.5))
    assert took.iterations == -(-run.algo.total_steps // 160)


def test_an_evaluation_takes_as_long_as_it_plays_episodes():
    timed("evaluation.episodes=10")

    assert estimate(run_of("evaluation.episodes=40"), None).evaluation_seconds == pytest.approx(56)


@pytest.mark.parametrize(
    "other", ["agent.actor=[128,128]", "env.levels=9", "algo.num_envs=99", "memory.storage=dense"]
)
def test_another_kind_of_run_was_not_timed(other):
    keep(run_of(), dict.fromkeys(Phase, 1.0), 200)

    assert estimate(run_of(), None) is not None
    assert estimate(run_of(other), None) is None


def test_a_run_that_takes_too_long_is_refused_with_what_fits():
    run = run_of("memory.max_hours=0.001")
    stop_when_too_long(run, Duration(0.3, 0.4, 0.0, 5, True))
    stop_when_too_long(run, None)
    words = r"0\.00194 h, above memory\.max_hours=0\.001.*updating \(57%\).*algo.total_steps=514,"
    with pytest.raises(ConfigError, match=words):
        stop_when_too_long(run, Duration(0.6, 0.8, 0.0, 5, True))
    with pytest.raises(ConfigError, match="a smaller agent or rollout"):
        stop_when_too_long(run, Duration(8.0, 6.0, 0.0, 5, True))
    with pytest.raises(ConfigError, match="max_hours"):
        run_of("memory.max_hours=0")


def test_a_run_that_takes_too_long_is_refused_before_it_is_tried_out(monkeypatch):
    def measured(run, found):
        pytest.fail("nothing needs to run of what is refused")

    monkeypatch.setattr(auto, "is_ready", lambda run: False)
    monkeypatch.setattr(auto, "measured_base", measured)
    with pytest.raises(ConfigError, match=r"its network alone.*above memory\.max_hours=0\.001"):
        prepare(run_of("memory.max_hours=0.001"), lambda run: PROBE)


def test_seconds_are_told_as_people_say_them():
    said = [spelled(s) for s in (0.0123, 0.71, 42.3, 100, 5399, 7200, 3.6e6)]
    assert said == ["0.012 s", "0.71 s", "42 s", "2 min", "90 min", "2 h", "1,000 h"]


def test_a_line_goes_through_what_was_timed(monkeypatch):
    clock, waited = [0.0], [0.0]  # of which a core was waited for
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(timing, "waited_seconds", lambda: waited[0])

    def call(samples):
        def once():
            waited[0] += 0.5
            clock[0] += 0.5 + 0.01 + 0.001 * samples

        return once

    found = timing.line(call, 100)
    assert (found.fixed, found.per_sample) == (pytest.approx(0.01), pytest.approx(0.001))
    assert found.at(1000) == pytest.approx(1.01)


def test_what_takes_long_is_not_tried_in_its_full_size(monkeypatch):
    clock, sizes = [0.0], []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def call(samples):
        def once():
            sizes.append(samples)
            clock[0] += samples * 1.0

        return once

    assert timing.line(call, 4096).at(4096) == pytest.approx(4096)
    assert max(sizes) == 1


def test_the_first_time_of_a_phase_counts_only_alone(monkeypatch):
    from frugal_rl.run import stopwatch

    ticks = iter([0, 10, 10, 12, 12, 16])
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: next(ticks))
    watch = Stopwatch(no_meter)
    with watch.phase(Phase.update):
        pass
    assert (watch.times[Phase.update].mean, watch.times[Phase.rollout].mean) == (10, 0.0)
    for _ in range(2):
        with watch.phase(Phase.update):
            pass
    update = watch.times[Phase.update]
    assert (update.mean, update.last, update.count, update.total) == (3, 4, 3, 16)


def test_waiting_for_a_core_is_no_time_of_the_run(monkeypatch):
    from frugal_rl.run import stopwatch

    clock, used, waited = iter([0, 10]), iter([0, 3]), iter([1, 5])
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(stopwatch.time, "process_time", lambda: next(used))
    monkeypatch.setattr(stopwatch, "waited_seconds", lambda: next(waited))
    watch = Stopwatch(no_meter)
    with watch.phase(Phase.update):
        pass

    seen = watch.times[Phase.update], watch.alone[Phase.update], watch.processor[Phase.update]
    assert [times.total for times in seen] == [10, 6, 3]


def test_where_the_kernel_tells_nothing_nobody_waited(monkeypatch, tmp_path):
    from frugal_rl.memory import waiting

    empty = tmp_path / "empty"
    empty.touch()
    for path in (tmp_path / "none", empty):
        monkeypatch.setattr(waiting, "SCHEDULE", str(path))
        assert waiting.waited_seconds() == 0.0


def test_a_real_learner_is_timed_in_its_stored_form():
    pace = timing.pace_of(run_of())
    kept = Probe.of_json(replace(PROBE, pace=pace).as_json())

    assert kept.pace == pace
    assert 0 < pace.update.at(50) < 5
    assert re.fullmatch(
        r"takes about .* alone: .* per iteration, 5 iterations .*", estimate(run_of(), kept).words
    )
