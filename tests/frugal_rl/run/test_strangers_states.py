"""Learners' states of strangers, whose checksums are right: refused, or learned from."""

import copy
import os
import pickle
import signal
import traceback
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from frugal_rl.errors import FrugalError
from frugal_rl.run.compose import compose_run
from frugal_rl.run.resuming import check_form, understood
from frugal_rl.run.trainer import no_meter

SMALL = ("tracking=disabled", "hardware.device=cpu", "hardware.threads=1", "evaluation.episodes=0",
         "algo.num_envs=2", "algo.n_steps=16", "algo.batch_size=16",
         "algo.total_steps=3200")  # fmt: skip
NETWORKS = ("agent.actor=[4]", "agent.critic=[4]")
OFF = ("algo=dqn", "agent.actor=[4]", "algo.learning_starts=8", "algo.buffer_size=64")
RUNS = {
    "ppo": ("env=toy", *NETWORKS, *SMALL, "algo.n_epochs=1"),
    "dqn": ("env=toy", *OFF, *SMALL),
    "prioritised": ("env=toy", *OFF, "algo.prioritised=true", *SMALL),
    "gymnasium": ("env=gymnasium", *OFF, *SMALL),
    "mine": ("env=mine_daily_small", "agent=mlp", *NETWORKS, *SMALL, "algo.n_epochs=1"),
    "mine_dqn": ("env=mine_daily_small", "agent=mlp", *OFF, *SMALL),
    "duel_dqn": ("env=fighting", "agent=mlp", "env.obs=ram", *OFF, *SMALL),
    "nclone": ("env=nclone", "agent=mlp", *NETWORKS, *SMALL, "algo.n_epochs=1"),
    "nclone_dqn": ("env=nclone", "agent=mlp", *OFF, *SMALL),
}
ODD = (-1, 0, 1, 5, 21, 255, 4096, 65535, 1 << 24, (1 << 31) - 1, -(1 << 31), 1 << 40)
ODD_FLOATS = (np.nan, np.inf, -1e30, 1e6)
PATIENCE_SECONDS = 60
"""Two iterations take less than a second."""


@cache
def composed(name):
    return compose_run(list(RUNS[name]), check=False)


def learner_of(name):
    run = composed(name)
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, env)


@cache
def kept(name):
    learner = learner_of(name)
    for _ in range(4):
        learner.iterate(no_meter)
    return pickle.dumps(learner.state())


@cache
def ready(name):
    """A learner that each child has for itself, as it was before its first step."""
    return learner_of(name)


def go_on(learner, state, iterations=2):
    """Load a state as a resume does, and learn on."""
    try:
        with understood(Path("last.pt")):
            check_form(learner.state(), state, "last.pt")
            learner.load(state)
        for _ in range(iterations):
            learner.iterate(no_meter)
    finally:
        learner.vec_env.close()


def in_a_child(name, state):
    """What else than words became of a state: a signal or another error; empty if nothing."""
    learner = ready(name)
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        said = "it ended"
        signal.alarm(PATIENCE_SECONDS)  # ends it, also inside a kernel
        try:
            go_on(learner, state)
            said = ""
        except FrugalError as error:
            said = "refused" if str(error).isprintable() else repr(error)
        except BaseException:
            said = traceback.format_exc()[-400:]
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    end = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"ended with {end}" if end else said


def places(node, at=()):
    """Arrays and numbers of what a learner learns from; environments' own states left out."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key != "vec_env":
                yield from places(value, (*at, key))
    elif isinstance(node, list | tuple):
        for i, value in enumerate(node):
            yield from places(value, (*at, i))
    elif type(node) in (int, float) or (isinstance(node, np.ndarray) and node.size):
        yield at


def held_at(state, at):
    for key in at:
        state = state[key]
    return state


def changed_at(state, at, value):
    """The state with another value in one place; all else is shared, as a child changes its own."""
    if not at:
        return value
    changed = copy.copy(state)
    changed[at[0]] = changed_at(state[at[0]], at[1:], value)
    return changed


def spoilt(value, rng):
    """The same with odd numbers in some or all places."""
    if not isinstance(value, np.ndarray):
        return type(value)(rng.choice(ODD))
    changed = value.copy()
    flat = changed.reshape(-1)
    begin = int(rng.integers(len(flat)))
    some = slice(None) if rng.random() < 0.5 else slice(begin, begin + int(rng.integers(1, 64)))
    if value.dtype.kind == "f":
        flat[some] = rng.choice(ODD_FLOATS)
    elif value.dtype.kind == "b":
        flat[some] = rng.random() < 0.5
    else:
        bounds = np.iinfo(value.dtype)
        flat[some] = np.clip(int(rng.choice(ODD)), bounds.min, bounds.max).astype(value.dtype)
    return changed


def fuzzed(name, count, patch):
    """How many of so many changed states were learned from, refused, and anything else."""
    state = pickle.loads(kept(name))
    if name.startswith("duel"):  # its machines are as they were, and a trial of them takes a second
        patch.setattr("fighting.machine.emulators.try_states", lambda rom, states: None)
    assert in_a_child(name, state) == ""
    everywhere = list(places(state["collector"], ("collector",)))
    rng, ends, wrong = np.random.default_rng(len(name)), {"": 0, "refused": 0}, []
    for _ in range(count):
        at = everywhere[rng.integers(len(everywhere))]
        end = in_a_child(name, changed_at(state, at, spoilt(held_at(state, at), rng)))
        if end in ends:
            ends[end] += 1
        else:
            wrong.append(f"{at}: {end}")
    assert wrong == []
    return ends[""], ends["refused"]


def test_a_changed_state_is_learned_from_or_refused_in_words(monkeypatch):
    assert min(fuzzed("dqn", 4, monkeypatch)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_five_hundred_changed_states_are_learned_from_or_refused_in_words(
    name, capsys, monkeypatch
):
    learned, refused = fuzzed(name, 500, monkeypatch)
    with capsys.disabled():
        print(f"\n{name}: 500 changed states, {learned} learned from, {refused} refused")


def changed_to(name, path, value):
    """A state one of whose arrays holds a value everywhere."""
    state = pickle.loads(kept(name))
    held_at(state, ("collector", *path))[...] = value
    return state


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("obs", "age"), 21, "'age' holds 21 to 21, outside of 0 to 20"),
        (("obs", "age"), 20, "'age' differs between what is observed and its history"),
        (("history", "age"), -1, "'age' holds -1 to -1"),
        (("obs", "position"), 5, "'position' holds 5 to 5, outside of 0 to 4"),
        (("obs", "speed"), np.nan, "'speed' holds a value that is not finite"),
        (("obs", "map_id"), 99, "id of table 'map' lies outside"),
        (("history", "windows", "moves"), 9, "'moves' holds 9 to 9"),
    ],
)
def test_what_is_observed_is_looked_at_before_anything_follows_it(path, value, words):
    with pytest.raises(FrugalError, match=words):
        go_on(learner_of("ppo"), changed_to("ppo", path, value), 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("_actions",), 4, "actions outside of 0 to 3"),
        (("rewards",), np.inf, "action or a reward that is not finite"),
        (("columns", "position", "column", "before"), 251, "'position' holds .* to 251"),
        (("columns", "map_id", "column", "before"), 255, "id of table 'map'"),
        (("columns", "age", "column", "before"), 7, "'age' holds .* outside of 0 to 20"),
    ],
)
def test_what_a_replay_holds_is_looked_at_before_anything_follows_it(path, value, words):
    with pytest.raises(FrugalError, match=words):
        go_on(learner_of("dqn"), changed_to("dqn", ("replay", 0, *path), value), 0)


def test_priorities_are_those_of_what_is_held():
    for change in ({"highest": np.nan}, {"priorities": np.full(64, -1.0)}):
        state = pickle.loads(kept("prioritised"))
        state["collector"]["replay"][0] |= change
        with pytest.raises(FrugalError, match="priorities are not those of what it holds"):
            go_on(learner_of("prioritised"), state, 0)
