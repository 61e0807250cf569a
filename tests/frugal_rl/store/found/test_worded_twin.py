"""Rows as names of known words, unit for unit against a twin in plain Python."""

import numpy as np
import pytest

from frugal_rl.store.found import worded
from frugal_rl.store.found.word_kernels import AS_IT_IS, LINKS, MOST_WORDS, NEAR, REWARD, WHOLE
from frugal_rl.store.found.worded import FIRST_CREDIT, Worded


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """A table that need not grow: a row that is tried again finds words that it entered itself."""
    monkeypatch.setattr(worded, "FIRST_WORDS", 8192)


def batches(items, size=16):
    return [items[at : at + size] for at in range(0, len(items), size)]


def bits(flags):
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def units_of(word):
    """A word of eight bytes as four units, the low one first."""
    return [(word >> 16 * q) & 0xFFFF for q in range(4)]


class Twin:
    """The same records, by lists and a dictionary; rows are lists of whole numbers."""

    def __init__(self, envs, width):
        self.width, self.units, self.names = width, [], {}
        self.credit = self.most_credit = FIRST_CREDIT * width
        self.last = [None] * envs
        # place of the newest record and of its root, links and units since it, spent on it, size
        self.state = [[-1, -1, 0, 0, 0, 0] for _ in range(envs)]
        self.rows = {}

    def append(self, n, row):
        state, base = self.state[n], self.state[n][0]
        changed = self.width
        if base >= 0:
            differs = [a != b for a, b in zip(row, self.last[n], strict=True)]
            changed = sum(differs)
            if changed == 0:
                return base
        owner = state if base >= 0 else self.state[0]
        _, root, links, since, spent, size = owner
        late = links >= LINKS or since > 2 * self.width
        if root >= 0 and (base < 0 or late or NEAR * changed > self.width):
            other = [a != b for a, b in zip(row, self.rows[root], strict=True)]
            if base < 0 or late or sum(other) < changed:
                base, changed, differs = root, sum(other), other
        if 2 * changed > self.width or (base == root and spent > size):
            base = -1
        used = len(self.units)
        self.units += self.record(row, None if base < 0 else differs, used - base)
        self.credit = min(self.credit, self.most_credit)
        wrote = len(self.units) - used
        if base < 0:
            state[1:] = used, 0, 0, 0, wrote
        elif base == root:
            state[1:] = root, 1, 0, spent + wrote, size
        else:
            state[2] += 1
            state[3] += wrote
        state[0], self.last[n], self.rows[used] = used, row, row
        return used

    def record(self, row, differs, back):
        """Header and body; `differs` None names the whole row."""
        marked = (
            range(self.width) if differs is None else [w for w in range(self.width) if differs[w]]
        )
        words = {w: self.named(row[w]) for w in marked}
        if differs is None:
            header, body = WHOLE, [unit for w in marked for unit in words[w]]
        else:
            header, body = back, self.changes(differs, words)
        if len(body) >= 4 * self.width:
            header, body = AS_IT_IS, [unit for word in row for unit in units_of(word)]
        return [header & 0xFFFF, header >> 16, *body]

    def named(self, word):
        """The units of a word: its name, or that it has none and itself."""
        if word in self.names:
            self.credit += REWARD
        elif self.credit > 0 and len(self.names) < MOST_WORDS:
            self.names[word] = len(self.names)
            self.credit -= 1
        else:
            return [MOST_WORDS, *units_of(word)]
        return [self.names[word]]

    def changes(self, differs, words):
        """Bitmaps of three levels, depth first, and after each group its words."""
        groups = batches([(w, differ) for w, differ in enumerate(differs)])
        out = []
        for middles in batches(batches(groups)):
            live = [[g for g in middle if any(d for _, d in g)] for middle in middles]
            out.append(bits(live))
            for middle, kept in zip(middles, live, strict=True):
                if not kept:
                    continue
                out.append(bits(any(d for _, d in g) for g in middle))
                for group in kept:
                    out.append(bits(d for _, d in group))
                    out += [unit for w, d in group if d for unit in words[w]]
        return out


def changing(seed, steps, envs, width, distinct, share):
    """Rows [T, N, W] of so many distinct words, of which a share changes from step to step."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 63, distinct, np.uint64)
    row = words[rng.integers(distinct, size=(envs, width))]
    rows = np.zeros((steps, envs, width), np.uint64)
    for t in range(steps):
        new = words[rng.integers(distinct, size=(envs, width))]
        row = np.where(rng.random((envs, width)) < share, new, row)
        rows[t] = row
    return rows


def both(rows):
    """The store and its twin after these rows, and the handles that each gave."""
    steps, envs, width = rows.shape
    store, twin = Worded(envs, width), Twin(envs, width)
    ours, theirs = np.zeros((steps, envs), np.int64), np.zeros((steps, envs), np.int64)
    for t in range(steps):
        store.append(rows[t], np.arange(envs), ours[t])
        theirs[t] = [twin.append(n, [int(w) for w in rows[t, n]]) for n in range(envs)]
    return store, twin, ours, theirs


@pytest.mark.parametrize("width", [1, 16, 17, 100, 300])
@pytest.mark.parametrize("distinct", [2, 30, 3000])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_every_record_is_the_twins(width, distinct, share):
    rows = changing(width + distinct, 60, 2, width, distinct, share)
    store, twin, ours, theirs = both(rows)
    assert ours.tolist() == theirs.tolist()
    assert store.units[: store.end].tolist() == twin.units
    assert store.counts.tolist() == [len(twin.units), len(twin.names), twin.credit]
    known = [int(w) for w in store.table[: len(twin.names)]]
    assert known == list(twin.names)
    assert store.state.tolist() == twin.state


def test_an_environment_s_first_row_is_compared_with_the_first_of_all():
    rows = np.random.default_rng(0).integers(0, 1 << 63, (1, 1, 64), np.uint64).repeat(3, axis=1)
    rows[0, 1, 5] ^= np.uint64(1)
    store, twin, ours, _ = both(rows)
    assert ours[0, 0] == 0
    first_size = int(ours[0, 1])
    assert store.units[first_size : first_size + 2].tolist() == [first_size, 0]
    assert int(ours[0, 2]) - first_size < 20
    assert store.units[: store.end].tolist() == twin.units


def test_a_row_that_comes_again_is_no_new_record():
    rows = changing(1, 1, 2, 40, 9, 1.0).repeat(5, axis=0)
    store, _, ours, _ = both(rows)
    assert (ours == ours[0]).all()
    assert store.end <= 2 * (2 + 4 * 40)


def test_after_so_many_records_a_row_rests_on_the_whole_one_again():
    rows = np.zeros((LINKS + 3, 1, 200), np.uint64)
    rows[0] = np.arange(200)
    for t in range(1, len(rows)):
        rows[t] = rows[t - 1]
        rows[t, 0, t] += np.uint64(1000)
    store, _, ours, _ = both(rows)
    places = [int(h) for h in ours[:, 0]]
    backs = [
        place - int(store.units[place]) - (int(store.units[place + 1]) << 16) for place in places
    ]
    assert backs[1 : LINKS + 1] == places[:LINKS]
    assert backs[LINKS + 1] == places[0]
    assert backs[LINKS + 2] == places[LINKS + 1]


def test_a_full_credit_is_as_many_words_as_at_the_beginning():
    store, twin, _, _ = both(changing(3, 40, 1, 30, 4, 0.5))
    assert store.counts[2] == twin.credit == FIRST_CREDIT * 30


def test_without_credit_words_are_written_out_until_known_ones_come_again():
    rng = np.random.default_rng(4)
    noise = rng.integers(0, 1 << 63, (6, 1, 50), np.uint64)
    store, twin, _, _ = both(noise)
    assert store.counts[1] == len(twin.names) == FIRST_CREDIT * 50
    assert store.counts[2] == 0
    store.append(noise[0], np.zeros(1, int), np.zeros(1, np.int64))
    assert store.counts[2] == FIRST_CREDIT * 50


def test_a_cleared_store_begins_anew():
    rows = changing(5, 30, 2, 40, 50, 0.3)
    store, twin, ours, _ = both(rows)
    store.clear()
    again = np.zeros_like(ours)
    for t in range(30):
        store.append(rows[t], np.arange(2), again[t])
    assert again.tolist() == ours.tolist()
    assert store.units[: store.end].tolist() == twin.units
