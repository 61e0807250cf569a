"""What a player digs is drawn as the schedule that it is."""

import numpy as np
import pytest

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.compose import compose_run
from frugal_rl.run.evaluate import RandomPlayer
from mine_rl_npv.config import MineConfig
from mine_rl_npv.data.economics import Economics, MinePlan
from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.data.synthetic import Deposit
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.rules.choices import Actions, Kind
from mine_rl_npv.tools import show
from mine_rl_npv.tools.show import SPANS, in_spans, play_schedule, shares_of
from mine_rl_npv.verify.__main__ import main

DEPOSIT = Deposit(6, 5, 4, seed=3, richness=0.6)
KINDS = {
    "cpit": {"kind": Kind.cpit},
    "pcpsp": {"kind": Kind.pcpsp},
    "daily": {"kind": Kind.daily},
    "cone": {"kind": Kind.cpit, "actions": Actions.cone},
}


def played(kind):
    config = MineConfig(data="synthetic", deposit=DEPOSIT, **KINDS[kind])
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    game = config.game(1)
    player = RandomPlayer(encoding, game.tables, config.action_space(), 0)
    return game, *play_schedule(game, encoding, 0, player)


@pytest.mark.parametrize("kind", ["cpit", "pcpsp", "cone"])
def test_the_schedule_is_feasible_and_worth_what_the_episode_earned(kind):
    game, period, sent = played(kind)
    layout = game.mines.layouts[0]
    shares = shares_of(period, sent, layout.value.shape[1], layout.instance.periods)
    verdict = check_shares(layout.instance, shares)
    assert verdict.feasible, verdict.faults
    assert verdict.value == pytest.approx(float(game.pits.money[0]), rel=1e-9)


@pytest.mark.parametrize("kind", [Kind.cpit, Kind.pcpsp])
def test_what_a_policy_digs_is_written_for_the_independent_program(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(show, "draw_schedule", lambda *_: [])
    config = MineConfig(
        data="synthetic",
        deposit=DEPOSIT,
        kind=kind,
        economics=Economics(stockpile_cost=0.5 if kind is Kind.pcpsp else -1.0),
        plan=MinePlan(milling_rate=30_000.0),
    )
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    vec_env = config.make_vec(1, encoding, compose_run(["env=mine_cpit"]).memory, None, "eval")
    player = RandomPlayer(encoding, vec_env.tables, config.action_space(), 0)
    config.draw(vec_env, player, tmp_path)
    config.generate(str(tmp_path), 1, DEPOSIT.seed)
    flags = ["--pcpsp"] if kind is Kind.pcpsp else []
    files = [str(tmp_path / f"deposit_{DEPOSIT.seed}"), str(tmp_path / "schedule.sol")]
    assert main([*files, *flags]) == 0


def test_days_become_equal_spans_that_keep_the_order():
    game, day, _ = played("daily")
    timed, period = in_spans(game.mines.layouts[0].instance, day, 0.12)
    mined = np.flatnonzero(day != NEVER)
    assert len(mined) == game.pits.steps[0]
    assert timed.periods == SPANS
    assert period[mined].max() < SPANS
    order = mined[np.argsort(day[mined], kind="stable")]
    assert (np.diff(period[order]) >= 0).all()
    assert (period[day == NEVER] == NEVER).all()


@pytest.mark.slow
def test_realisations_add_a_picture_of_the_risk(tmp_path):
    config = MineConfig(data="porphyry_tiny", kind=Kind.cpit, realisations=3)
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    vec_env = config.make_vec(1, encoding, compose_run(["env=mine_cpit"]).memory, None, "eval")
    player = RandomPlayer(encoding, vec_env.tables, config.action_space(), 0)
    drawn = {path.name for path in config.draw(vec_env, player, tmp_path)}
    assert {"risk.png", "sections.png", "periods.png", "voxels.png", "life.gif"} <= drawn
    assert all((tmp_path / name).stat().st_size > 1000 for name in drawn)


@pytest.mark.parametrize(
    ("profile", "agent", "grid", "transitions"),
    [
        ("baseline", "cnn3d", (49, 71, 58), 8192),
        ("optimized", "cnn3d_small", (50, 50, 30), 1024),
        ("ultra_light", "cnn3d_tiny", (20, 20, 10), 128),
        ("small", "cnn3d_test", (10, 10, 5), 256),
        ("lossless", "column2d", (49, 71, 58), 8192),
    ],
)
def test_the_guides_configurations_are_overlays_with_their_networks(
    profile, agent, grid, transitions
):
    run = compose_run(["env=mine", f"memory={profile}"])
    assert run.agent.name == agent
    assert run.env.spec().by_name["pit"].shape[1:] == grid
    assert run.algo.num_envs * run.algo.n_steps == transitions
    typed = compose_run(["env=mine", f"memory={profile}", "agent=column2d", "agent.width=4"])
    assert (typed.agent.name, typed.agent.width) == ("column2d", 4)


def test_the_guides_test_network_has_its_610149_parameters():
    run = compose_run(["env=mine", "memory=small"])
    vec_env = run.env.make_vec(1, run.encoding(), run.memory, run.vec, "train")
    network = run.agent.build(vec_env.encoding, vec_env.tables, vec_env.action_space)
    assert sum(p.numel() for p in network.parameters()) == 610_149
