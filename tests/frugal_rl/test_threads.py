"""Threads sleep while they wait, unless somebody said how they shall wait."""

import os

import pytest

from frugal_rl.threads import SET_BY_USERS, SPINS, sleep_while_waiting


@pytest.fixture
def nothing_said(monkeypatch):
    for name in SET_BY_USERS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


def test_threads_spin_shortly(nothing_said):
    sleep_while_waiting()

    assert os.environ["GOMP_SPINCOUNT"] == SPINS


def test_what_the_user_said_stays(nothing_said):
    nothing_said.setenv("OMP_WAIT_POLICY", "active")
    sleep_while_waiting()

    assert "GOMP_SPINCOUNT" not in os.environ
