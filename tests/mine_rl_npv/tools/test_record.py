"""Schedules as a Minari data set: dug as they were planned, and read back."""

from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.report.recording import RecordOptions
from frugal_rl.run.compose import compose_run
from frugal_rl.store.offline import read_dataset
from mine_rl_npv.config import MineConfig
from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.data.synthetic import Deposit
from mine_rl_npv.rules.choices import Actions, Clock, Kind
from mine_rl_npv.tools.record import record
from mine_rl_npv.tools.risk import toposort_plan

DEPOSIT = Deposit(6, 5, 4, seed=3, richness=0.6)


def run_of(**options):
    given = {"kind": Kind.cpit, "clock": Clock.period, "max_steps": 200} | options
    config = MineConfig(data="synthetic", deposit=DEPOSIT, **given)
    return replace(compose_run(["env=mine_cpit"]), env=config)


def test_a_schedule_is_dug_as_it_was_planned_and_read_back(tmp_path, capsys):
    pytest.importorskip("minari")
    run = run_of()

    assert run.env.record(run, RecordOptions(dataset=str(tmp_path / "data"))) == 0

    assert "1 mines" in capsys.readouterr().out
    mines = run.env.mines()
    instance = mines.layouts[0].instance
    period = toposort_plan(instance)
    dug = np.flatnonzero(period != NEVER)
    worth = float(instance.value[dug] @ instance.discount[period[dug]])
    replay = read_dataset(tmp_path / "data")
    held = replay.rewards[: replay.size(), 0]
    assert held.sum() * mines.references[0] == pytest.approx(worth, rel=1e-5)
    assert replay.size() == len(dug) + period.max()  # with what closes a period


def test_what_is_not_dug_block_by_block_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"env\.actions=column"):
        record(
            run_of(actions=Actions.cone, clock=Clock.earliest), RecordOptions(dataset=str(tmp_path))
        )
    for asked in (RecordOptions(), RecordOptions(dataset=str(tmp_path), verify="here")):
        with pytest.raises(ConfigError, match="records dataset=FOLDER"):
            record(run_of(), asked)
