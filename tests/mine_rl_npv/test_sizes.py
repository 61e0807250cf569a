"""Sizes that a plan takes for known are those of the mines when they are opened."""

import json
import time
import tracemalloc
from dataclasses import asdict, replace

import pytest

from frugal_rl import remembered
from frugal_rl.errors import FrugalError
from frugal_rl.run.planning import compose
from mine_rl_npv import config
from mine_rl_npv.data.synthetic import Deposit
from mine_rl_npv.rules import sizes
from mine_rl_npv.rules.mines import MineSource, open_mines
from mine_rl_npv.rules.room import least_bytes
from mine_rl_npv.rules.sizes import MineSizes, key_of, sizes_of

SHIPPED = [
    "env=mine env.data=porphyry_tiny",
    "env=mine_cpit",
    "env=mine_cpit env.kind=pcpsp",
    pytest.param("env=mine_daily_small", marks=pytest.mark.slow),
    pytest.param("env=mine env.data=porphyry", marks=pytest.mark.slow),
    pytest.param("env=mine env.data=porphyry_50k", marks=pytest.mark.slow),
    pytest.param("env=mine", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("words", SHIPPED)
def test_shipped_sizes_are_those_of_the_opened_mines(words):
    source = compose(words).env.source

    assert key_of(source) in json.loads(sizes.SHIPPED.read_text())
    assert sizes_of(source) == MineSizes.of(open_mines(source))


def test_the_whole_deposit_is_planned_without_being_opened(monkeypatch):
    monkeypatch.setattr(sizes, "open_mines", lambda source: pytest.fail("opened"))

    assert compose("env=mine").env.spec().by_name["pit"].shape == (2, 49, 71, 58)


@pytest.mark.parametrize("words", ["env=mine_cpit", "env=mine_cpit env.kind=pcpsp"])
def test_actions_on_blocks_have_the_same_pits_and_nothing_is_opened(words, monkeypatch):
    source = compose(f"{words} env.obs=volume env.actions=block").env.source
    opened = MineSizes.of(open_mines(source))
    monkeypatch.setattr(sizes, "open_mines", lambda source: pytest.fail("opened"))
    sizes_of.cache_clear()

    assert sizes_of(source) == opened
    assert opened.units == max(opened.blocks)


def test_a_learner_of_whole_schedules_is_planned_without_a_mine(monkeypatch):
    monkeypatch.setattr(config, "open_mines", lambda source: pytest.fail("opened"))
    run = compose("env=mine_cpit agent=priority algo=evolution")
    planned = {part.name: part.ram_bytes for part in run.algo.learner_parts(run)}
    known = sizes_of(run.env.source)

    assert planned["schedule graphs"] == 8 * sum(known.arcs)
    assert planned["features"] % sum(known.blocks) == 0


@pytest.fixture
def unknown(tmp_path, monkeypatch):
    """A source whose sizes are neither shipped nor remembered."""
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    source = compose("env=mine env.data=porphyry_tiny").env.source
    sizes_of.cache_clear()
    yield replace(source, plan=replace(source.plan, periods=7))
    sizes_of.cache_clear()


def test_unknown_mines_are_opened_once(unknown, monkeypatch):
    found = sizes_of(unknown)
    sizes_of.cache_clear()
    monkeypatch.setattr(sizes, "open_mines", lambda source: pytest.fail("opened again"))

    assert sizes_of(unknown) == found
    assert found.periods == 7


@pytest.mark.parametrize("wrong", [{"blocks": [2**31]}, {"grid": [10, 10]}, {"arcs": []}, {"x": 1}])
def test_remembered_sizes_out_of_bounds_are_not_believed(unknown, tmp_path, wrong):
    found = sizes_of(unknown)
    (file,) = tmp_path.glob("mine_*.json")
    file.write_text(json.dumps({**asdict(found), **wrong}))
    sizes_of.cache_clear()

    assert sizes_of(unknown) == found


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("env.deposits=1000000", r"1,000,016 deposits \(env\.deposits.*20 x 20 x 10 cells"),
        ("env.eval_deposits=1000000000", "deposits"),
        ("env.deposit.nx=100000000", "100000000 x 20 x 10 cells would take"),
        ("env.deposits=1000001", "seeds are those of held-out"),
        ("env.deposit.lobes=1000000000", r"env\.deposit\.lobes is 1000000000; use a number"),
        ("env.plan.periods=1000000000", r"env\.plan\.periods is 1000000000; use a number"),
    ],
)
def test_numbers_that_no_machine_holds_are_refused_before_a_deposit_is_grown(word, said):
    began = time.process_time()
    with pytest.raises(FrugalError, match=said):
        compose(f"env=mine_daily_small {word}").env.sizes()
    assert time.process_time() - began < 5


def test_more_realisations_than_fit_are_refused():
    words = "env=mine env.data=porphyry_tiny env.realisations=1000000000"
    with pytest.raises(FrugalError, match=r"env\.realisations=1,000,000,000 would take"):
        compose(words).env.sizes()


def test_mines_that_fit_are_never_refused_for_their_number():
    source = MineSource("synthetic", Deposit(10, 10, 8), deposits=2)
    tracemalloc.start()
    open_mines(source)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert least_bytes(800, 2, 10) < peak
    assert 2 * least_bytes(800, 1, 10) > held  # and the bound is not far below the truth
