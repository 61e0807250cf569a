"""Profiles, cartridges, states, replays, marks: changed, they are read or refused in one line."""

import json

import pytest

from fighting.cartridge.reading import FOLDER, load_profile
from fighting.cartridge.start_states import StartStates, read_state, write_state
from fighting.machine import duel, trial
from fighting.machine.emulator import Emulator, StateError, read_rom
from fighting.machine.trial import try_states
from fighting.opponents.saved_player import saved_player
from fighting.rom import ROM_PATH
from fighting.tools.marks import Mark, Moment, read_marks, write_marks
from fighting.tools.replay import CartridgeReplay, Replay, ReplayError, load_replay
from frugal_rl.errors import ConfigError
from frugal_rl.run.checkpoints import save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.identity import identity
from frugal_rl.testing.fuzz import Reading, mutations


@pytest.fixture(scope="module")
def rom():
    return ROM_PATH.read_bytes()


@pytest.fixture(scope="module")
def running(rom):
    emulator = Emulator(rom)
    emulator.tick(60)
    yield emulator
    emulator.close()


def profile(path):
    load_profile(str(path)).check_trainable(True)


def written(name, folder, rom, running):
    """A sound file of each kind, and how it is read."""
    path = folder / name
    if name.endswith(".yaml"):
        path.write_bytes((FOLDER / name).read_bytes())
        return path, profile
    if name == "a.gb":
        path.write_bytes(rom)
        return path, read_rom
    if name == "a.state":
        write_state(path, running, rom)
        return path, lambda p: read_state(p, rom, "start[0]")
    if name == "marks.csv":
        write_marks(path, [Moment(f, mark) for f, mark in enumerate([*Mark] * 4)])
        return path, lambda p: read_marks(p, 12, "game.replay")
    replay = Replay(duel.MatchSettings()) if name == "duel.replay" else None
    replay = replay or CartridgeReplay(rom, running.save())
    for buttons in range(20):
        replay.add(*((buttons, 1) if name == "duel.replay" else (buttons,)))
    replay.save(path, running)
    return path, lambda p: load_replay(p, None)


NAMES = (
    "duel.yaml",
    "street_fighter_2.yaml",
    "a.gb",
    "a.state",
    "duel.replay",
    "game.replay",
    "marks.csv",
)


def fuzzed(name, folder, rom, running, count, monkeypatch):
    """Trials take a process each: few are run, and their own test below runs the rest."""
    path, read = written(name, folder, rom, running)
    tried = []
    monkeypatch.setattr(trial.subprocess, "run", lambda *a, **k: tried.append(a) or Sound)
    reading = Reading(path, read, name=path.name)
    assert reading.problems(mutations(path.read_bytes(), count, 1, text=name[0] != "a")) == []
    assert reading.refused > 0


class Sound:
    """A trial that went well."""

    returncode = 0


@pytest.mark.parametrize("name", NAMES)
def test_changed_files_are_read_or_refused_in_one_line(name, tmp_path, rom, running, monkeypatch):
    fuzzed(name, tmp_path, rom, running, 30, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_five_hundred_changed_files_are_read_or_refused(name, tmp_path, rom, running, monkeypatch):
    fuzzed(name, tmp_path, rom, running, 500, monkeypatch)


def test_a_state_is_tried_in_a_child_that_may_hang_or_refuse(rom, running, monkeypatch):
    state = running.save()
    try_states(rom, [state])
    with pytest.raises(StateError, match="has 153,523 bytes; this cartridge's have 153,524"):
        try_states(rom, [state[:-1]])
    monkeypatch.setattr(trial, "CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(trial, "TRIAL_SECONDS", 0.2)
    with pytest.raises(StateError, match="hangs"):
        try_states(rom, [state])
    monkeypatch.setattr(trial, "TRIAL_SECONDS", 30.0)
    monkeypatch.setattr(trial, "CHILD", "import os; os.kill(os.getpid(), 11)")
    with pytest.raises(StateError, match="fails"):
        try_states(rom, [state])


@pytest.mark.slow
def test_states_that_would_hang_or_end_the_process_are_refused(rom, running, monkeypatch):
    """Counters far ahead of the machine: whatever is accepted plays on here."""
    monkeypatch.setattr(trial, "TRIAL_SECONDS", 5.0)
    for _, changed in mutations(running.save(), 100, 3):
        try:
            try_states(rom, [changed])
        except StateError:
            continue
        emulator = Emulator(rom)
        emulator.load(changed)
        emulator.tick(5, True)
        emulator.close()


BASE = (FOLDER / "duel.yaml").read_text()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rules: {round_seconds: many}", "rules.round_seconds: 'many' is no whole number"),
        ("rules: {round_seconds: 1.0e+400}", "rules.round_seconds"),
        ("rules: {ko_values: [300]}", "rules.ko_values: must be a list of bytes"),
        ("rules: 7", "rules: must be names with values"),
        ("fastest_startup: -1", "fastest_startup: -1 is no whole number from 0 to 255"),
        ("roms: [7]", "roms.0.: must be like"),
        ("roms: 7", "roms: must be a list"),
        ("commands: {new: 7}", "commands: unknown key commands"),
        ("rules: {ko_value: [0]}", "rules.ko_value: unknown key ko_value; there are ko_values"),
        ("start: 7", "start: must be a list"),
    ],
)
def test_values_of_a_wrong_kind_are_refused_by_place(line, words, tmp_path):
    key = line.split(":")[0]
    kept, skipping = [], False
    for text in BASE.splitlines():
        skipping = text.startswith(f"{key}:") or (skipping and text[:1] in (" ", "#", "-"))
        kept += [] if skipping else [text]
    path = tmp_path / "mine.yaml"
    path.write_text("\n".join([*kept, line]))
    with pytest.raises(ConfigError, match=rf"mine\.yaml, line \d+: {words}"):
        load_profile(str(path))


@pytest.mark.parametrize("change", [{"level": 300}, {"level": "x"}, {"hp": [1]}, {"more": 1}])
def test_a_match_that_the_mailbox_cannot_hold_is_refused(change, tmp_path):
    path = tmp_path / "a.replay"
    Replay(duel.MatchSettings()).save(path)
    head, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), **change}).encode() + b"\n" + rest)
    with pytest.raises(ReplayError, match="how a match began"):
        load_replay(path, None)


def test_a_checkpoints_machines_are_tried_in_a_child_before_they_are_loaded(monkeypatch):
    run = compose_run(["env=fighting", "env.obs=ram", "env.opponent=still"], check=False)
    env = run.env.make_vec(1, run.encoding(), run.memory, None, "train")
    env.reset(0)
    state = env.state()
    monkeypatch.setattr(trial, "TRIAL_SECONDS", -1.0)
    monkeypatch.setattr(trial, "CHILD", "import time; time.sleep(60)")
    with pytest.raises(StateError, match="hangs"):
        env.load(state)
    monkeypatch.undo()
    assert env.load(state)
    env.close()


def test_kept_start_states_are_tried_in_a_child(tmp_path, rom, running, monkeypatch):
    game = load_profile("duel")
    StartStates(str(tmp_path), running, rom, game)
    assert StartStates(str(tmp_path), running, rom, game).states
    monkeypatch.setattr(trial, "CHILD", "import os; os.kill(os.getpid(), 11)")
    with pytest.raises(StateError, match="Without the file the states are made again"):
        StartStates(str(tmp_path), running, rom, game)


def test_a_rival_may_have_had_a_rival_of_its_own_that_is_gone(tmp_path):
    words = ["env=fighting", "env.obs=ram", "env.actions=combos"]
    run = compose_run([*words, "agent.actor=[4]", "agent.critic=[4]"], check=False)
    env = run.env.make_vec(1, run.encoding(), run.memory, None, "train")
    weights = run.algo.build(run, env).policy.state_dict()
    env.close()
    config = dict(run.resolved)
    config["env"] = {**config["env"], "opponent": "policy", "rival": str(tmp_path / "a.pt")}
    content = {"config": config, "identity": identity(run), "learner": {"policy": weights}}
    assert saved_player(str(save_checkpoint(tmp_path / "a.pt", content))).digest
