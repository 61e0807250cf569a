"""Rows that nothing is declared of are planned as they were kept, in random play or in a run."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory import first_look, once, plan, sizes
from frugal_rl.memory.part import Phase
from frugal_rl.memory.weight import LEAST_STEPS, OF_PLAY, OF_RUN, keep_rollout, rows_name
from frugal_rl.run import play_rollout
from frugal_rl.run.compose import compose_run
from frugal_rl.store.column_spec import FIRST_LOOK
from frugal_rl.store.layout import columns_of
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


def keep_play(run, shares):
    remembered.write(rows_name(run), shares)


def test_without_a_look_rows_are_planned_as_they_are():
    assert planned(made(100)) == pytest.approx(dense(100), rel=0.02)
    assert planned(made(100), "rollout: observation, waiting") == 0


def test_more_than_random_play_took_is_planned_and_the_first_rows_as_they_are():
    run = made(100)
    keep_play(run, {"observation": 0.03})

    assert planned(run) == pytest.approx(OF_PLAY * 0.03 * dense(100) + dense(1), abs=1)
    waiting = planned(run, "rollout: observation, waiting")
    assert waiting + planned(run) == dense(FIRST_LOOK)
    parts = {p.name: p for p in sizes.rollout_parts(run, run.encoding())}
    assert parts["rollout: observation, waiting"].phases == {Phase.rollout}


def test_what_a_run_took_is_believed_before_random_play():
    run = made(100)
    keep_play(run, {"observation": 0.03})
    keep_rollout(run, {"observation": 0.4})

    assert planned(run) == pytest.approx(OF_RUN * 0.4 * dense(100) + dense(1), abs=1)
    assert planned(made(100, OTHER)) == pytest.approx(dense(100), rel=0.02)


def test_rows_that_do_not_repeat_are_never_planned_larger_than_they_are():
    run = made(100)
    keep_play(run, {"observation": 0.8})

    assert planned(run) == planned(made(100, OTHER))


def test_a_rollout_that_ends_before_a_look_keeps_its_rows_as_they_are():
    keep_play(made(), {"observation": 0.03})

    assert planned(made(FIRST_LOOK)) == pytest.approx(dense(FIRST_LOOK), rel=0.02)
    steps = FIRST_LOOK + 1
    assert planned(made(steps)) == pytest.approx(0.06 * dense(steps) + dense(1), abs=1)


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
    known = planned(run) == pytest.approx(OF_RUN * share * dense(steps) + dense(1), abs=1)
    assert known == (steps == LEAST_STEPS)


def test_a_run_keeps_what_its_largest_rollout_took():
    (spec,) = columns_of(made().encoding())
    column = SimpleNamespace(spec=spec, nbytes=dense(8), most_bytes=dense(32))
    rollout = SimpleNamespace(buffer_size=64, n_envs=ENVS, columns={"observation": column})

    assert shares_in(rollout) == {"observation": 0.5}


def test_an_environment_is_played_once_and_only_for_rollouts_that_find_out(monkeypatch):
    asked = []
    monkeypatch.setattr(once, "failed", set())
    monkeypatch.setattr(
        once, "ask_child", lambda *words: asked.append(words[0]) or {"observation": 0.03}
    )

    for _ in range(2):
        first_look.look_at_rows(made())
    first_look.look_at_rows(made(LEAST_STEPS, "algo=dqn"))  # its replay is looked at by itself
    first_look.look_at_rows(compose_run(["env=toy"]))  # declares its fields

    assert asked == ["frugal_rl.run.play_rollout"]
    assert planned(made(100)) == pytest.approx(OF_PLAY * 0.03 * dense(100) + dense(1), abs=1)


def test_one_that_cannot_be_played_is_planned_as_it_is(monkeypatch, capsys):
    def fails(*words):
        raise ConfigError("Playing at random fails: no such action.")

    monkeypatch.setattr(once, "failed", set())
    monkeypatch.setattr(once, "ask_child", fails)
    first_look.look_at_rows(made())

    assert "no such action. The plan goes without it." in capsys.readouterr().err
    assert planned(made(100)) == pytest.approx(dense(100), rel=0.02)


def test_a_tiny_run_is_measured_after_its_rows_were_looked_at(monkeypatch):
    order = []
    for name in ("weigh_environment", "weigh_workers", "look_at_play", "look_at_rows"):
        monkeypatch.setattr(plan, name, lambda run, name=name: order.append(name))
    peaks = dict.fromkeys(Phase, 1 << 30)
    monkeypatch.setattr(plan, "measured_peaks", lambda run: order.append("measured") or peaks)
    run = compose_run(["env=toy", "plan=probe"])

    plan.measured_base(run, None)

    assert order[-2:] == ["look_at_rows", "measured"]


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


def test_rows_that_an_environment_codes_are_played_as_a_rollout_keeps_them(monkeypatch):
    """Pictures of a cartridge are packed before they are kept: shares are of the packed rows."""
    words = ["env=fighting_game_boy", "env.profile=hop", "env.obs=gray", "env.threads=1"]
    run = compose_run([*words, "env.max_pool=false", "env.stack=2", "algo.n_steps=64"])
    (spec, *_) = columns_of(run.encoding())
    shares = play_rollout.shares(run)

    assert list(shares) == ["frame"]
    assert 0 < shares["frame"] < 0.1  # most of the screen stands still
    monkeypatch.setattr(first_look, "rows_name", lambda run: "hop_rows")
    monkeypatch.setattr(once, "failed", set())
    monkeypatch.setattr(once, "ask_child", lambda *words: shares)
    first_look.look_at_rows(run)
    assert remembered.read("hop_rows") == shares
    assert spec.row_bytes == 2 * 160 * 144 // 4
