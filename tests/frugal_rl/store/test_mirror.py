"""Rows that are decoded on the device, against the same rows walked in memory."""

import copy

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.entry_ring import EntryRing, SlotTable
from frugal_rl.store.replay import DictReplayBuffer, ReplayBuffer
from frugal_rl.store.stacks import FoundStack

CPU = torch.device("cpu")


class Games:
    """Stacks of which a few bytes change; noise, other stacks, ends and shifts now and then."""

    def __init__(self, num_envs, frames, frame, dtype, noise, seed):
        self.rng, self.dtype, self.noise = np.random.default_rng(seed), np.dtype(dtype), noise
        self.frames, self.frame = frames, frame
        self.stacks = np.stack([self.begun() for _ in range(num_envs)])

    def new(self):
        return self.rng.integers(0, 256, self.frame).astype(self.dtype)

    def begun(self):
        newest = self.new()
        old = newest if self.rng.random() < 0.5 else np.zeros_like(newest)
        return np.stack([old] * (self.frames - 1) + [newest])

    def changed(self, frame):
        if self.rng.random() < self.noise:
            return self.new()
        at = self.rng.integers(0, frame.size, self.rng.integers(0, 20))
        frame = frame.copy()
        frame.reshape(-1)[at] = self.rng.integers(0, 256, len(at))
        return frame

    def step(self):
        """What is observed and what it led to, [N, k, *frame]."""
        now = self.stacks
        then = np.stack([np.stack([*s[1:], self.changed(s[-1])]) for s in now])
        self.stacks = then.copy()
        for n in np.flatnonzero(self.rng.random(len(now)) < 0.06):
            self.stacks[n] = self.begun()
        for n in np.flatnonzero(self.rng.random(len(now)) < 0.01):
            then[n] = np.stack([self.new() for _ in range(self.frames)])
        return now, then


def assert_same_rows(column, first, newest, rng, most=200):
    steps, n = rng.integers(first, newest + 1, most), rng.integers(0, column.num_envs, most)
    pairs = zip(column.draw(steps, n), column.draw_there(CPU, steps, n), strict=True)
    for here, there in pairs:
        assert there.shape == here.shape
        assert torch.equal(there, torch.from_numpy(here.copy()))


CASES = {
    "stacks": ((20, 24), np.uint8, 4, 2, 150, 0.0),
    "noise": ((20, 24), np.uint8, 4, 2, 150, 0.3),
    "one frame": ((20, 24), np.uint8, 1, 3, 100, 0.05),
    "no whole words": ((21, 13), np.uint8, 3, 2, 100, 0.05),
    "floats": ((300,), np.float32, 1, 2, 64, 0.05),
    "large rows": ((300, 300), np.uint8, 1, 1, 40, 0.1),
    "a ring of less than a block": ((20, 24), np.uint8, 2, 2, 9, 0.05),
}


@pytest.mark.parametrize(
    ("frame", "dtype", "frames", "envs", "size", "noise"), CASES.values(), ids=CASES
)
def test_what_is_decoded_on_the_device_is_what_is_walked_in_memory(
    frame, dtype, frames, envs, size, noise
):
    rng, games = np.random.default_rng(1), Games(envs, frames, frame, dtype, noise, 0)
    shape = (frames * frame[0], *frame[1:])
    column = FoundStack(shape, np.dtype(dtype), size, envs, frames)
    for step in range(6 * size + 40):
        now, then = games.step()
        column.add(*(x.reshape(envs, *shape) for x in (now, then)))
        if step % 23 == 22:
            assert_same_rows(column, max(0, step - size + 1), step, rng)


def filled(steps=500, size=200, seed=3, **kwargs):
    games = Games(2, 4, (20, 24), np.uint8, 0.05, seed)
    space = spaces.Box(0, 255, (4, 20, 24), np.uint8)
    replay = ReplayBuffer(2 * size, space, spaces.Discrete(2), "cpu", 2, **kwargs)
    play(replay, games, steps)
    return replay, games


def play(replay, games, steps):
    for _ in range(steps):
        replay.add(*games.step(), np.zeros(2, int), np.ones(2), np.zeros(2, bool), [{}, {}])


def drawn(replay, seed=0, size=300):
    np.random.seed(seed)  # noqa: NPY002 - SB3's stream
    return replay.sample(size)


def assert_same_draw(ours, theirs):
    for a, b in zip(drawn(ours), drawn(theirs), strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


def test_only_the_newest_rows_and_whole_stacks_are_drawn_in_memory(monkeypatch):
    replay, _ = filled(location="device")
    column, asked = replay.columns["obs"].decided(), []
    draw = column.draw
    monkeypatch.setattr(column, "draw", lambda s, n: asked.append(s) or draw(s, n))
    drawn(replay, size=4000)
    in_memory = np.concatenate(asked)
    codes = column.codes[in_memory % column.steps]

    assert 0 < len(in_memory) < 1200
    assert all(s >= 500 - 33 or (codes[i] & 0x60).any() for i, s in enumerate(in_memory))


@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_replay_draws_the_same_there_as_here(n_steps):
    there, here = (filled(location=place, n_steps=n_steps)[0] for place in ("device", "ram"))

    assert_same_draw(there, here)


def test_a_dictionary_is_decoded_entry_by_entry():
    space = spaces.Dict(
        {"frame": spaces.Box(0, 255, (4, 20, 24), np.uint8), "at": spaces.Box(-1, 1, (2,))}
    )
    replays = [
        DictReplayBuffer(400, space, spaces.Discrete(2), "cpu", 2, location=place)
        for place in ("device", "ram")
    ]
    for replay in replays:
        games, rng = Games(2, 4, (20, 24), np.uint8, 0.05, 3), np.random.default_rng(0)
        for _ in range(300):
            at = rng.uniform(-1, 1, (2, 2, 2)).astype(np.float32)
            pairs = zip(games.step(), at, strict=True)
            now, then = ({"frame": x, "at": y} for x, y in pairs)
            replay.add(now, then, np.zeros(2, int), np.ones(2), np.zeros(2, bool), [{}, {}])
    ours, theirs = map(drawn, replays)

    for name in space:
        assert torch.equal(ours.observations[name], theirs.observations[name])
        assert torch.equal(ours.next_observations[name], theirs.next_observations[name])


@pytest.mark.parametrize("again", ["loaded", "copied", "begun anew"])
def test_a_replay_that_is_filled_anew_forgets_what_lay_on_the_device(again):
    replay, games = filled(location="device")
    drawn(replay)
    if again == "loaded":
        other, _ = filled(steps=500, seed=4, location="device")
        drawn(other)
        other.load(replay.state())
        replay = other
    elif again == "copied":
        replay = copy.deepcopy(replay)
    else:
        replay.reset()
    play(replay, games, 250)
    here = ReplayBuffer(400, replay.observation_space, replay.action_space, "cpu", 2)
    here.load(replay.state())

    assert_same_draw(replay, here)


def test_what_lies_on_the_device_is_bounded_over_many_turns():
    replay, games = filled(location="device")
    held = []
    for _ in range(8):
        play(replay, games, 400)
        drawn(replay)
        parts = replay.parts()
        held.append([parts[f"replay/obs/{name}"] for name in ("on the device", "device tables")])

    assert (np.array(held[2:]) <= 1.3 * np.array(held[1])).all()


def test_replays_lie_where_a_word_says_or_are_refused():
    space = spaces.Box(0, 255, (300,), np.uint8)
    for place in ("pinned", RolloutLocation.pinned, "disk"):
        with pytest.raises(ConfigError, match="Choose ram, device, memmap"):
            ReplayBuffer(10, space, spaces.Discrete(2), "cpu", location=place)
    replay = ReplayBuffer(10, space, spaces.Discrete(2), "cpu", location="memmap")

    assert replay.columns["obs"].decided().rows.pool.in_file


def test_blocks_of_any_size_keep_their_entries_while_the_ring_turns_and_grows():
    rng, ring, held = np.random.default_rng(0), EntryRing(torch.int32, 12, CPU), {}
    for block in range(200):
        while len(held) > rng.integers(1, 12):
            held.pop(min(held))
            ring.drop_oldest()
        entries = rng.integers(0, 1000, rng.integers(0, 60)).astype(np.int32)
        ring.put(block, entries)
        held[block] = entries
        for number, kept in held.items():
            base = ring.bases[number % 12]
            assert np.array_equal(ring.values[base : base + len(kept)].numpy(), kept)


def test_whole_rows_keep_their_numbers_while_their_table_grows():
    table, rng, held = SlotTable(3, CPU), np.random.default_rng(0), {}
    for count in (1, 4, 2, 9):
        slots = table.take(count)
        rows = rng.integers(0, 9, (count, 3)).astype(np.uint16)
        table.put(slots, rows)
        held |= dict(zip(slots, rows, strict=True))
    freed = next(iter(held))
    table.free.append(freed)

    assert len(held) == 16
    assert all((table.values[slot].numpy() == row).all() for slot, row in held.items())
    assert table.take(1) == [freed]
