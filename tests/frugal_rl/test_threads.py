"""Threads sleep while they wait, unless somebody said how they shall wait."""

import os

import pytest

from frugal_rl.threads import (
    KERNELS,
    SET_BY_USERS,
    SPINS,
    cores_shared,
    sleep_while_waiting,
)


@pytest.fixture
def nothing_said(monkeypatch):
    for name in (*SET_BY_USERS, KERNELS):
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


@pytest.mark.parametrize(("processes", "threads"), [(1, None), (2, "4"), (3, "2"), (16, "1")])
def test_kernels_of_several_processes_have_their_part_of_the_cores(
    nothing_said, processes, threads
):
    nothing_said.setattr("os.cpu_count", lambda: 8)
    with cores_shared(processes):
        assert os.environ.get(KERNELS) == threads

    assert KERNELS not in os.environ


def test_a_number_of_threads_that_the_user_gave_stays(nothing_said):
    nothing_said.setenv(KERNELS, "7")
    with cores_shared(4):
        assert os.environ[KERNELS] == "7"

    assert os.environ[KERNELS] == "7"
