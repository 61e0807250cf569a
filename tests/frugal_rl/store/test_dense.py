"""A minibatch rebuilt in kept memory equals the decoded rows, draw after draw."""

import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl.observation.bounded import BoundedTable
from frugal_rl.observation.choices import FrameStack, Storage
from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.observation.codecs.pooled import DeltaCodec
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import ObservationSpec, Padding, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.store.dense import DenseMinibatch, StaticSlots
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.testing.toy import Toy

STEPS, ENVS, BATCH = 12, 5, 16


def played(env, encoding, buffer, history, rng):
    """Fill one rollout with random play."""
    buffer.reset()
    zeros = np.zeros(ENVS, np.float32)
    for _ in range(STEPS):
        buffer.add(played.shown, zeros, zeros, zeros, zeros, zeros)
        step = env.step(rng.integers(0, 4, ENVS))
        played.shown, _ = history.push(step.rows, step.done)


@pytest.mark.parametrize("storage", list(Storage))
@pytest.mark.parametrize("stack", list(FrameStack))
def test_every_draw_equals_the_decoded_rows(storage, stack):
    toy = Toy(episode_steps=9)
    encoding = Encoding.choose(toy.spec(), storage, stack)
    env = toy.make_vec(ENVS, encoding, _memory(), None, "train")
    buffer = RolloutBuffer(
        STEPS, encoding.policy_space(9), env.action_space, "cpu", n_envs=ENVS, encoding=encoding,
        episode_steps=9,
    )  # fmt: skip
    history, rng = History(encoding, ENVS, 9), np.random.default_rng(1)
    played.shown = history.reset(env.reset(0))
    dense = DenseMinibatch(buffer, env.tables, BATCH)
    for _ in range(3):
        played(env, encoding, buffer, history, rng)
        for count in (BATCH, 7, BATCH):
            indices = rng.integers(0, STEPS * ENVS, count)
            n, t = np.divmod(indices, STEPS)
            rows = {k: v.numpy() for k, v in buffer.observations_at(t, n).items()}
            expected = decode(encoding, rows, env.tables)
            got = dense.draw(indices)
            assert set(got) == set(expected)
            for name, value in expected.items():
                np.testing.assert_array_equal(got[name], value, err_msg=name)


def _memory():
    from frugal_rl.memory.profile import MemoryProfile

    return MemoryProfile()


@pytest.mark.parametrize("padding", list(Padding))
def test_frames_of_packed_differences_are_read_without_unpacking_them(padding):
    shape, rng = (16, 24), np.random.default_rng(0)
    codec = DeltaCodec(PackedCodec(shape))
    field = Stored("frame", shape, np.uint8, 0, 3, codecs=(codec,), window=3, padding=padding)
    encoding = Encoding.choose(ObservationSpec((field,)), Storage.lossless)
    buffer = RolloutBuffer(
        STEPS, encoding.policy_space(), spaces.Discrete(2), "cpu", n_envs=ENVS, encoding=encoding
    )
    history, zeros = History(encoding, ENVS), np.zeros(ENVS, np.float32)
    dense = DenseMinibatch(buffer, Tables(), BATCH)
    frames = rng.integers(0, 4, (ENVS, *shape), np.uint8)
    for rollout in range(3):
        buffer.reset()
        for t in range(STEPS):
            changed = rng.random(frames.shape) < (0.6 if t == 5 else 0.02)
            frames = np.where(changed, rng.integers(0, 4, frames.shape, np.uint8), frames)
            done = rng.random(ENVS) < 0.2 if rollout or t else np.ones(ENVS, np.bool_)
            shown, _ = history.push({"frame": codec.encode(frames)}, done)
            buffer.add(shown, zeros, zeros, zeros, zeros, zeros)
        indices = rng.permutation(STEPS * ENVS)[:BATCH]
        n, t = np.divmod(indices, STEPS)
        expected = codec.decode(buffer.observations_at(t, n)["frame"].numpy())
        np.testing.assert_array_equal(dense.draw(indices)["frame"], expected)


@pytest.mark.parametrize("repeated", [False, True])
def test_rows_of_a_bounded_table_are_found_wherever_they_lie(repeated):
    """Places follow the order of reading and move when something is dropped; ids do not."""
    nodes = Static("nodes", (6, 2), np.float32, table="map", ragged=True)
    encoding = Encoding.choose(ObservationSpec((nodes,)), Storage.lossless)
    field = TableField("nodes", (6, 2), np.float32, ragged=True, repeated=repeated)
    table = BoundedTable("map", (field,), 340 if repeated else 170)
    buffer = RolloutBuffer(
        8, encoding.policy_space(), spaces.Discrete(2), "cpu", n_envs=1, encoding=encoding
    )
    zero = np.zeros(1, np.float32)
    for i in range(8):
        rows = np.full((1 + i % 6, 2), i + 1, np.float32)
        table.intern(i, lambda rows=rows: {"nodes": rows})
        buffer.add({"map_id": np.array([i], np.int32)}, zero, zero, zero, zero, zero)
    dense = DenseMinibatch(buffer, Tables({"map": table}), 2)
    for draw in ([7, 2], [0, 7], [5, 1], [2, 3], [6, 4], [7, 0]):
        shown = dense.draw(np.array(draw))["nodes"]
        for b, i in enumerate(draw):
            expected = np.zeros((6, 2), np.float32)
            expected[: 1 + i % 6] = i + 1
            np.testing.assert_array_equal(shown[b], expected)
    assert table.drops > 0


@pytest.mark.parametrize(("items", "ids"), [(0, [0, 0]), (3, [])])
def test_where_nothing_is_drawn_or_there_is_no_item_nothing_is_shown(items, ids):
    table = StaticTable("map", (TableField("nodes", (6, 2), np.float32, ragged=True),))
    table.intern(0, lambda: {"nodes": np.ones((items, 2))})
    out = np.zeros((len(ids), 6, 2), np.float32)
    StaticSlots(2).show(table, "nodes", np.array(ids, np.int64), out)

    assert not out.any()


def test_fields_can_lie_side_by_side_in_one_array_of_the_caller():
    planes = Static("planes", (2, 3), np.float32, table="map")
    more = Static("more", (3, 2), np.float32, table="map", ragged=True)
    kinds = Static("kinds", (3,), np.int32, table="map", ragged=True)
    spec = ObservationSpec((planes, more, kinds, Stored("x", (3,), np.float32)))
    encoding = Encoding.choose(spec, Storage.lossless)
    columns = (
        TableField("planes", (2, 3), np.float32), TableField("more", (3, 2), np.float32, True),
        TableField("kinds", (3,), np.uint8, True),
    )  # fmt: skip
    table = StaticTable("map", columns)
    for i in range(3):
        rows = {"planes": np.full((2, 3), i + 1.0), "more": np.full((i + 1, 2), i + 1.0)}
        rows["kinds"] = np.full(i + 1, 200 + i)
        table.intern(i, lambda rows=rows: rows)
    buffer = RolloutBuffer(
        3, encoding.policy_space(), spaces.Discrete(2), "cpu", n_envs=1, encoding=encoding
    )
    zero = np.zeros(1, np.float32)
    for i in (2, 0, 1):
        rows = {"map_id": np.array([i], np.int32), "x": np.full((1, 3), 10.0 + i, np.float32)}
        buffer.add(rows, zero, zero, zero, zero, zero)
    whole, side = np.zeros((2, 3, 3), np.float32), np.zeros((2, 10), np.float32)
    into = {"planes": whole[:, :2], "x": whole[:, 2], "more": side[:, 2:8].reshape(2, 3, 2)}
    dense = DenseMinibatch(buffer, Tables({"map": table}), 2, into)
    for draw, ids in (([0, 1], (2, 0)), ([1, 2], (0, 1)), ([2, 0], (1, 2))):
        dict(dense.draw(np.array(draw)))
        for b, i in enumerate(ids):
            np.testing.assert_array_equal(whole[b], [[i + 1] * 3, [i + 1] * 3, [10 + i] * 3])
            expected = np.zeros((3, 2), np.float32)
            expected[: i + 1] = i + 1
            np.testing.assert_array_equal(side[b, 2:8].reshape(3, 2), expected)
            np.testing.assert_array_equal(dense["kinds"][b], [200 + i] * (i + 1) + [0] * (2 - i))
            assert not side[b, :2].any()
            assert not side[b, 8:].any()
