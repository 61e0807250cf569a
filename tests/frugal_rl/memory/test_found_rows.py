"""Rows that nothing is declared of are planned as they were kept, in random play or in a run."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory import sizes
from frugal_rl.memory.part import Phase
from frugal_rl.memory.weight import LEAST_STEPS, OF_PLAY, OF_RUN, keep_play, keep_rollout
from frugal_rl.run import play_rollout
from frugal_rl.run.compose import compose_run
from frugal_rl.store.column_spec import FIRST_LOOK
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.store.seen import remember_rows, shares_in

ROW, ENVS = 16, 6
"""Bytes of an observation of CartPole, and how many there are."""
OTHER = "+env.kwargs.render_mode=rgb_array"
"""Another environment with such rows."""


@pytest.fixture(autouse=True)
def _nothing_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)


def made(steps=LEAST_STEPS, *words):
    named = ["env=gymnasium", "env.id=CartPole-v1", f"algo.num_envs={ENVS}"]
    return compose_run([*named, f"algo.n_steps={steps}", *words])


def planned(run, name="rollout: observation"):
    found = {p.name: p.ram_bytes for p in sizes.rollout_parts(run, run.encoding())}
    return found.get(name, 0)


def dense(steps):
    return steps * ENVS * ROW


def test_without_a_look_rows_are_planned_as_they_are():
    assert planned(made(100)) == pytest.approx(dense(100), rel=0.02)
    assert planned(made(100), "rollout: observation, waiting") == 0


def test_more_than_random_play_took_is_planned_and_the_first_rows_as_they_are():
    run = made(100)
    keep_play(run, {"observation": 0.03})

    assert planned(run) == pytest.approx(OF_PLAY * 0.03 * dense(100), abs=1)
    waiting = planned(run, "rollout: observation, waiting")
    assert waiting + planned(run) == dense(FIRST_LOOK)
    parts = {p.name: p for p in sizes.rollout_parts(run, run.encoding())}
    assert parts["rollout: observation, waiting"].phases == {Phase.rollout}


def test_what_a_run_took_is_believed_before_random_play():
    run = made(100)
    keep_play(run, {"observation": 0.03})
    keep_rollout(run, {"observation": 0.4})

    assert planned(run) == pytest.approx(OF_RUN * 0.4 * dense(100), abs=1)
    assert planned(made(100, OTHER)) == pytest.approx(dense(100), rel=0.02)


def test_rows_that_do_not_repeat_are_never_planned_larger_than_they_are():
    run = made(100)
    keep_play(run, {"observation": 0.8})

    assert planned(run) == planned(made(100, OTHER))


def test_a_rollout_that_ends_before_a_look_keeps_its_rows_as_they_are():
    keep_play(made(), {"observation": 0.03})

    assert planned(made(FIRST_LOOK)) == pytest.approx(dense(FIRST_LOOK), rel=0.02)
    assert planned(made(FIRST_LOOK + 1)) < dense(FIRST_LOOK) / 10


def test_a_study_that_was_given_is_believed_before_what_was_seen(tmp_path):
    run = made(100)
    keep_play(run, {"observation": 0.03})
    path = tmp_path / "spec.yaml"
    field = "{form: differences, dense_bytes: 16, found_bytes: 8, shape: [4], dtype: float32}"
    path.write_text(f"fields:\n  observation: {field}\n")

    assert planned(made(100, f"env.spec={path}")) == pytest.approx(dense(100) / 2, rel=0.01)


@pytest.mark.parametrize("steps", [LEAST_STEPS - 1, LEAST_STEPS])
def test_a_run_keeps_what_its_rollout_took_where_that_is_long_enough(steps):
    run = made(steps)
    rollout = RolloutBuffer(
        steps,
        run.env.spec().observation_space,
        run.env.action_space(),
        n_envs=ENVS,
        encoding=run.encoding(),
    )
    column = rollout.columns["observation"]
    for t in range(steps):
        column.write(t, np.ones((ENVS, 4), np.float32), None)

    remember_rows(run, SimpleNamespace(rollout=rollout))

    share = shares_in(rollout)["observation"]
    assert share < 0.5
    known = planned(run) == pytest.approx(OF_RUN * share * dense(steps), abs=1)
    assert known == (steps == LEAST_STEPS)


def test_random_play_answers_with_shares_and_null_where_nothing_can_be_made(monkeypatch, capsys):
    monkeypatch.setattr(play_rollout, "asked_run", made)
    play_rollout.main()
    shares = json.loads(capsys.readouterr().out.splitlines()[-1])

    assert list(shares) == ["observation"]
    assert 0 < shares["observation"] <= 1.1

    def refused():
        raise ConfigError("env.id=NoSuchGame-v0 cannot be made")

    monkeypatch.setattr(play_rollout, "asked_run", refused)
    play_rollout.main()
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) is None
