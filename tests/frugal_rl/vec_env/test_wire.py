"""Frozen fields cross to the main process as what differs, and are the same rows there."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl.errors import DataError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.found_form import ROWS, read_form
from frugal_rl.observation.found_spec import FoundField, FoundSpec, read_found_spec
from frugal_rl.sb3.workers import Sb3, StartMethod
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.study import study
from frugal_rl.store.found.trial import KINDS
from frugal_rl.vec_env.group import GroupEnv
from frugal_rl.vec_env.registered import Registered
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.shared_memory import SharedMemory, Start
from frugal_rl.vec_env.wire import Wire

STACK = "stack of 4 along 1 x 300 B, differences"


class Stacked(gym.Env):
    """Four pictures in one array that is written over; every fifth step breaks what repeats."""

    observation_space = spaces.Dict(
        {"screen": spaces.Box(0, 255, (4, 15, 20), np.uint8), "place": spaces.Box(-9, 9, (3,))}
    )
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.screen, self.steps = np.zeros((4, 15, 20), np.uint8), 0
        return self.see(), {}

    def see(self):
        return {"screen": self.screen, "place": np.full(3, self.steps, np.float32)}

    def step(self, action):
        self.steps += 1
        self.screen[:-1] = self.screen[1:].copy()
        self.screen[3, self.steps % 15, action] += 1
        if self.steps % 5 == 0:
            self.screen[:] = self.np_random.integers(0, 255, self.screen.shape)
        return self.see(), 1.0, self.steps == 13, self.np_random.random() < 0.1, {}


gym.register("Stacked-v0", Stacked)


@pytest.fixture
def frozen(tmp_path):
    """A study of it in a file."""
    study(Registered(id="Stacked-v0").make(), 128).write(tmp_path / "spec.yaml")
    return tmp_path / "spec.yaml"


def rows_of(config, vec):
    """What 60 steps of three environments show, and their last rows."""
    encoding = Encoding.choose(config.spec())
    vec_env = config.make_vec(3, encoding, MemoryProfile(), vec, "train")
    rng, seen = np.random.default_rng(0), [vec_env.reset(5)]
    seen = [{k: v.copy() for k, v in seen[0].items()}]
    for _ in range(60):
        step = vec_env.step(rng.integers(0, 3, 3))
        for rows in (step.rows, step.final_rows):
            seen.append({k: v.copy() for k, v in rows.items()})
    vec_env.close()
    return vec_env, seen


@pytest.mark.parametrize(
    "vec", [SharedMemory(workers=2, start=Start.fork), Sb3(start=StartMethod.fork)]
)
def test_workers_send_what_differs_and_nothing_else_changes(frozen, vec, monkeypatch):
    sent = []
    take = GroupEnv._take

    def counted(self, first, report):
        sent.extend(len(message) for *_, message in report.rows)
        take(self, first, report)

    monkeypatch.setattr(GroupEnv, "_take", counted)
    plain, wanted = rows_of(Registered(id="Stacked-v0"), Serial())
    crossed, seen = rows_of(Registered(id="Stacked-v0", spec_file=str(frozen)), vec)

    for a, b in zip(wanted, seen, strict=True):
        assert {k: v.tobytes() for k, v in a.items()} == {k: v.tobytes() for k, v in b.items()}
    assert "raw/screen" in plain.layout
    assert "raw/screen" not in crossed.layout
    assert "raw/place" in crossed.layout  # too small to be worth it
    assert len(sent) > 180
    assert np.median(sent) < 30  # of 1,200 bytes


@pytest.mark.parametrize("form", ["differences", STACK, STACK.replace(" B", " B newest first")])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_any_row_crosses_bit_for_bit(form, dtype):
    rng, form = np.random.default_rng(1), read_form(form.replace("300", "288"))
    ends = [Wire((4, 3, 96 // np.dtype(dtype).itemsize), np.dtype(dtype), form) for _ in "ab"]
    row = np.zeros(ends[0].shape, dtype)
    for step in range(300):
        if rng.random() < 0.7:
            row = np.roll(row, rng.choice([-1, 1]), axis=0)
        raw = row.reshape(-1).view(np.uint8)
        some = rng.choice([0, 1, 5, raw.size], p=[0.2, 0.4, 0.3, 0.1])
        raw[rng.integers(0, raw.size, some)] = rng.integers(0, 256, some)
        if step == 150:
            ends[0] = Wire(row.shape, row.dtype, form)  # a worker that takes another's place
        assert ends[1].unpack(ends[0].pack(row)).tobytes() == row.tobytes()


def test_a_study_freezes_what_it_found_and_an_edit_is_honoured(frozen):
    found = read_found_spec(frozen)
    assert found.fields["screen"].form.startswith("stack of 4 along 1 x 300 B, ")
    assert found.fields["screen"].shape == (4, 15, 20)
    text = frozen.read_text()
    for form in ("as it is", "distinct rows", STACK):
        frozen.write_text(text.replace(found.fields["screen"].form, form))
        config = Registered(id="Stacked-v0", spec_file=str(frozen))
        column = columns_of(config)["screen"]
        fill(column, np.random.default_rng(2), broken=False)
        assert [segment.form.name for segment in column.segments] == [form]


def columns_of(config):
    """A found column for each field of 64 steps of two environments."""
    fields = config.spec().fields
    specs = [ColumnSpec(f.name, f.shape, np.dtype(f.dtype), codec=f.codecs[0]) for f in fields]
    return {spec.name: FoundColumn(spec, 64, 2) for spec in specs}


def fill(column, rng, broken):
    """Three rollouts that are, or are not, stacks; every row is given back."""
    row = np.zeros((2, *column.spec.shape), column.spec.dtype)
    for _ in range(3):
        kept = []
        for t in range(64):
            row = np.roll(row, -1, axis=1)
            row[:, -1, t % 15] = t
            if broken:
                row = rng.integers(0, 256, row.shape, row.dtype)
            kept.append(row)
            column.write(t, row, None)
        t, n = np.divmod(np.arange(128), 2)
        assert column.gather(t, n, None, None).tobytes() == np.array(kept).tobytes()


def test_a_frozen_guess_that_fails_stays_exact_and_small(frozen):
    column = columns_of(Registered(id="Stacked-v0", spec_file=str(frozen)))["screen"]
    fill(column, np.random.default_rng(3), broken=True)
    assert column.nbytes < 1.5 * column.spec.dense_bytes(64, 2)
    fill(column, np.random.default_rng(3), broken=False)
    assert column.nbytes < 0.5 * column.spec.dense_bytes(64, 2)


@pytest.mark.parametrize(
    ("field", "match"),
    [
        (FoundField("differences", 1200, 9, (4, 30, 10), "uint8"), "of another environment"),
        (FoundField("differences", 900, 9), "of another environment"),
        (FoundField("stack of 4 along 1 x 299 B, differences", 1200, 9), "cannot be kept as"),
        (FoundField("whole numbers from 0 in 8 bits", 1200, 9), "cannot be kept as"),
        (FoundField("smallest", 1200, 9), "'smallest' is no form; write 'as it is'"),
        (FoundField("delta", 1200, 9), "'pixels in few bits', 'tiles of 7 x 7 pixels' or 'stack"),
        (FoundField("stack of 4 along 1 x 300 B, gzip", 1200, 9), "is no form"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused_in_one_line(tmp_path, field, match):
    file = tmp_path / "spec.yaml"
    file.write_text(FoundSpec({"screen": field}).text())
    with pytest.raises(DataError, match=match) as refused:
        Registered(id="Stacked-v0", spec_file=str(file)).spec()
    assert "\n" not in str(refused.value)


def test_the_words_of_forms_are_those_of_what_keeps_rows():
    assert set(KINDS) == set(ROWS)
    for name, kind in KINDS.items():
        assert read_form(f"stack of 2 along 3 x 4 B newest first, {name}").rows == kind.name


def test_a_frozen_configuration_travels_to_workers(frozen):
    config = Registered(id="Stacked-v0", spec_file=str(frozen))
    assert pickle.loads(pickle.dumps(config)).spec().by_name["screen"].codecs[0].form
