"""What a study tells is what the store takes; the array stands in any loop."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl import FoundArray, study
from frugal_rl.errors import ConfigError
from frugal_rl.observation.found_spec import read_found_spec
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.study import FieldStudy
from frugal_rl.vec_env.leaves import Leaf


class Room(gym.Env):
    """A map per episode, a walker's stacked pictures, noise."""

    observation_space = spaces.Dict(
        {
            "map": spaces.Box(0, 255, (20, 20), np.uint8),
            "noise": spaces.Box(-1, 1, (8,), np.float64),
            "stack": spaces.Box(0, 255, (4, 16, 16), np.uint8),
        }
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.map = self.np_random.integers(0, 256, (20, 20), np.uint8)
        self.stack = np.zeros((4, 16, 16), np.uint8)
        return self.see(), {}

    def see(self):
        self.stack[:-1] = self.stack[1:]
        self.stack[-1] = 0
        self.stack[-1, self.np_random.integers(16), 3] = 200
        return {"map": self.map, "noise": self.np_random.random(8), "stack": self.stack}

    def step(self, action):
        return self.see(), 0.0, bool(self.np_random.random() < 0.02), False, {}


def test_a_study_names_the_form_of_each_field_and_its_file_is_read_back(tmp_path):
    found = study(Room(), steps=400)
    fields = {f.name: f for f in found.fields}

    assert "stack of 4" in fields["stack"].form
    assert fields["stack"].found_bytes < fields["stack"].dense_bytes / 10
    assert fields["map"].found_bytes < fields["map"].dense_bytes / 10
    assert fields["noise"].form == "as it is"
    assert fields["noise"].found_bytes == fields["noise"].dense_bytes
    assert "0% equal to the row before" in fields["noise"].evidence
    found.write(tmp_path / "room.yaml")
    assert read_found_spec(tmp_path / "room.yaml") == found.spec


def test_a_study_counts_pairs_of_rows_that_are_equal_and_the_bytes_that_change():
    spec = ColumnSpec("row", (4,), np.dtype(np.uint8))
    field = FieldStudy(Leaf("row", (), (4,), np.dtype(np.uint8)), FoundColumn(spec, 4, 1))
    for t, row in enumerate([[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 9, 4], [5, 6, 7, 8]]):
        field.watch(t, np.array(row, np.uint8))

    assert (field.repeated, field.changed_bytes, len(field.distinct)) == (1, 0 + 1 + 4, 3)
    assert (
        field.evidence(4) == "33% equal to the row before, 41.7% of bytes change, 3 of 4 distinct"
    )


def test_what_is_no_single_environment_is_told():
    with pytest.raises(ConfigError, match="one environment, not 'CartPole-v1'"):
        study("CartPole-v1")
    with pytest.raises(ConfigError, match="one environment, not a SyncVectorEnv"):
        study(gym.vector.SyncVectorEnv([Room]))


def test_an_array_of_any_loop_reads_as_it_was_written():
    rng = np.random.default_rng(0)
    store = FoundArray(40, 3, spaces.Box(0, 255, (5, 6), np.uint8))
    for _ in range(2):
        dense = np.zeros((40, 3, 5, 6), np.uint8)
        for step in range(40):
            dense[step] = rng.integers(0, 2, (3, 5, 6)) if step % 3 else dense[step - 1]
            store[step] = dense[step]
    index = rng.permutation(120)
    assert (store.flat[index] == dense.reshape(120, 5, 6)[index]).all()
    assert (store[3:9, 1] == dense[3:9, 1]).all()
    assert (store[7] == dense[7]).all()


def test_an_array_refuses_steps_out_of_order_and_spaces_without_a_shape():
    store = FoundArray(4, 1, spaces.Box(0, 1, (2,), np.uint8))
    store[0] = np.zeros((1, 2))
    with pytest.raises(IndexError, match="Step 2 follows step 0"):
        store[2] = np.zeros((1, 2))
    with pytest.raises(IndexError, match="Step 1 is not written"):
        store[1]
    with pytest.raises(ConfigError, match="not a Text space"):
        FoundArray(4, 1, spaces.Text(3))
