"""How a stack of frames follows from the rows before it, against a twin that keeps everything."""

import numpy as np
import pytest

from frugal_rl.errors import DataError
from frugal_rl.store.replay_column import ReplayColumn
from frugal_rl.store.replay_kernels import APART, BACK, PAD_REPEATS, WHOLE_NEXT, WHOLE_NOW

STEPS = 24


class Twin:
    """Codes by comparing lists of frames; observations and what they led to, kept whole."""

    def __init__(self, envs, frames):
        self.frames = frames
        self.before, self.codes = [None] * envs, [0] * envs
        self.kept = []

    def add(self, observed, following):
        codes = []
        for n, (now, then) in enumerate(zip(observed, following, strict=True)):
            code = self.code(n, [f.tobytes() for f in now])
            if any((a != b).any() for a, b in zip(then[:-1], now[1:], strict=True)):
                code |= int(WHOLE_NEXT)
            before = self.before[n]
            if before is not None and now[-1].tobytes() != before[-1]:
                code |= int(APART)
            self.before[n] = [f.tobytes() for f in then]
            codes.append(code)
        self.codes = codes
        self.kept.append((observed.copy(), following.copy()))
        return codes

    def code(self, n, now):
        before, last, most = self.before[n], self.codes[n], self.frames - 1
        if before is not None and now[:-1] == before[:-1]:
            if last & WHOLE_NEXT:
                return int(WHOLE_NOW)
            back = (last & int(BACK)) + 1
            return most if back >= most else back | (last & int(PAD_REPEATS | WHOLE_NOW))
        if all(not any(frame) for frame in now[:-1]):
            return 0
        same = all(frame == now[-1] for frame in now[:-1])
        return int(PAD_REPEATS if same else WHOLE_NOW)


class Player:
    """One environment that stacks its frames, and now and then does something odd."""

    def __init__(self, seed, frames, size, odd, zeros):
        self.random, self.odd, self.zeros = np.random.default_rng(seed), odd, zeros
        self.size, self.frames = size, frames
        self.stack = self.begun()

    def frame(self):
        return self.random.integers(1, 256, self.size, np.uint8)

    def begun(self):
        newest = self.frame()
        old = np.zeros_like(newest) if self.zeros else newest
        return np.stack([old] * (self.frames - 1) + [newest])

    def step(self):
        """An observation and what it led to."""
        now = self.stack
        then = np.concatenate([now[1:], self.frame()[None]])
        kind = self.random.random()
        if kind < self.odd / 3:  # an episode ended: the next one begins
            self.stack = self.begun()
        elif kind < self.odd * 2 / 3:  # a stack that follows from nothing
            self.stack = np.stack([self.frame() for _ in range(self.frames)])
        elif kind < self.odd:  # what came next is not this stack shifted
            then = np.stack([self.frame() for _ in range(self.frames)])
            self.stack = then
        else:
            self.stack = then
        return now.copy(), then


def played(seed, frames, size, odd, zeros, steps=3 * STEPS, envs=2):
    """A column and its twin after so many steps; every code is compared on the way."""
    column = ReplayColumn((frames, size), np.uint8, STEPS, envs, frames=frames)
    twin = Twin(envs, frames)
    players = [Player(10 * seed + n, frames, size, odd, zeros) for n in range(envs)]
    for step in range(steps):
        both = [player.step() for player in players]
        now, then = (np.stack(part) for part in zip(*both, strict=True))
        column.add(now, then)
        codes = twin.add(now, then)
        assert column.codes[step % STEPS].tolist() == codes, step
    return column, twin


@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("odd", [0.0, 0.1, 0.6])
@pytest.mark.parametrize(("frames", "size"), [(2, 16), (4, 16), (4, 320), (3, 257)])
def test_codes_and_draws_are_the_twins(frames, size, odd, zeros):
    column, twin = played(frames + size, frames, size, odd, zeros)
    last = len(twin.kept)
    steps = np.arange(last - STEPS, last).repeat(2)
    env = np.tile([0, 1], STEPS)
    order = np.random.default_rng(0).permutation(len(steps))
    now, then = column.draw(steps[order], env[order])
    for b, at in enumerate(order):
        observed, following = twin.kept[steps[at]]
        assert (now[b] == observed[env[at]]).all()
        assert (then[b] == following[env[at]]).all()


def test_a_game_that_goes_on_needs_its_newest_frame_only():
    column, twin = played(1, 4, 320, 0.0, True)
    assert set(column.codes.ravel()) == {3}
    assert (len(column.whole_now), len(column.whole_next)) == (0, 0)
    assert len(twin.kept) == 3 * STEPS


def test_a_begun_stack_counts_back_to_its_beginning():
    column, _ = played(2, 4, 16, 0.0, False, steps=5)
    pads = int(PAD_REPEATS)
    assert column.codes[:5, 0].tolist() == [pads, pads | 1, pads | 2, 3, 3]


def never_shifted(steps, follows):
    """A column in which no stack is another one shifted, and what it was given."""
    column, random = ReplayColumn((4, 320), np.uint8, STEPS, 2, frames=4), np.random.default_rng(0)
    shown = random.integers(1, 256, (steps + 1, 2, 2, 4, 320), np.uint8)
    pairs = [(shown[t, 0], shown[t + 1, 0 if follows else 1]) for t in range(steps)]
    for now, then in pairs:
        column.add(now, then)
    return column, pairs


def test_what_the_ring_overwrote_is_forgotten():
    column, _ = played(3, 3, 16, 0.9, True, steps=10 * STEPS)
    assert 0 < len(column.whole_now) <= 2 * STEPS
    apart, _ = never_shifted(10 * STEPS, follows=False)
    assert (len(apart.whole_now), len(apart.whole_next)) == (2 * STEPS, 2 * STEPS)


@pytest.mark.parametrize("follows", [True, False])
def test_stacks_that_never_shift_come_back_exactly_also_from_a_copy(follows):
    column, pairs = never_shifted(3 * STEPS, follows)
    other = ReplayColumn((4, 320), np.uint8, STEPS, 2, frames=4)
    other.load(column.state())
    steps, env = np.divmod(np.random.default_rng(1).permutation(2 * STEPS) + 4 * STEPS, 2)
    for held in (column, other):
        now, then = held.draw(steps, env)
        assert (now == np.array([pairs[t][0][n] for t, n in zip(steps, env, strict=True)])).all()
        assert (then == np.array([pairs[t][1][n] for t, n in zip(steps, env, strict=True)])).all()


def test_a_stack_that_was_led_to_and_then_seen_is_kept_once():
    column, _ = never_shifted(3 * STEPS, follows=True)
    dense = 2 * STEPS * 2 * 4 * 320
    assert (len(column.whole_now), len(column.whole_next)) == (2 * STEPS, 2)
    assert sum(column.parts().values()) < dense


def test_a_file_that_lacks_a_shared_stack_is_refused():
    column, _ = never_shifted(3 * STEPS, follows=True)
    state = column.state()
    for name in ("keys", "values"):
        state["whole_now"][name] = np.delete(state["whole_now"][name], 7, axis=0)
    other = ReplayColumn((4, 320), np.uint8, STEPS, 2, frames=4)
    with pytest.raises(DataError, match="lacks what its rows say"):
        other.load(state)


def test_a_saved_column_goes_on_as_if_it_had_not_been():
    column, twin = played(4, 4, 320, 0.3, False)
    other = ReplayColumn((4, 320), np.uint8, STEPS, 2, frames=4)
    other.load(column.state())
    players = [Player(90 + n, 4, 320, 0.3, False) for n in range(2)]
    for _ in range(STEPS // 2):
        now, then = (np.stack(part) for part in zip(*[p.step() for p in players], strict=True))
        column.add(now, then)
        other.add(now, then)
    assert (column.codes == other.codes).all()
    steps, env = np.arange(len(twin.kept) - 5, len(twin.kept) + 7), np.zeros(12, np.int64)
    for ours, theirs in zip(column.draw(steps, env), other.draw(steps, env), strict=True):
        assert (ours == theirs).all()


@pytest.mark.parametrize("size", [16, 320])
def test_without_stacks_no_code_is_kept(size):
    column = ReplayColumn((size,), np.uint8, STEPS, 2)
    random, kept = np.random.default_rng(5), []
    now = random.integers(0, 256, (2, size), np.uint8)
    for step in range(2 * STEPS):
        then = random.integers(0, 256, (2, size), np.uint8)
        column.add(now, then)
        kept.append((now, then))
        now = random.integers(0, 256, (2, size), np.uint8) if step % 5 == 4 else then
    assert column.codes.size == 0
    steps = np.arange(STEPS, 2 * STEPS)
    for n in range(2):
        found = column.draw(steps, np.full(STEPS, n))
        for b, step in enumerate(steps):
            assert (found[0][b] == kept[step][0][n]).all()
            assert (found[1][b] == kept[step][1][n]).all()
