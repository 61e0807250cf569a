"""A replay's segments by arithmetic, beside those that are written: array by array."""

from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl import remembered
from frugal_rl.memory import replay_file
from frugal_rl.memory.facts import replay_on_disk
from frugal_rl.memory.replay import KEY_EVERY, rows_of
from frugal_rl.memory.replay_data import MOST, Data
from frugal_rl.memory.replay_file import file_bytes, saved_arrays
from frugal_rl.memory.replay_saves import BLOCK_BYTES, LISTED_BYTES
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Stored
from frugal_rl.run import segments
from frugal_rl.run.compose import compose_run
from frugal_rl.run.segments import Segments
from frugal_rl.store import chain
from frugal_rl.store.priorities import PrioritisedDictReplayBuffer
from frugal_rl.store.replay import DictReplayBuffer, HerReplayBuffer

SMALL = (
    Stored("speed", (3,), np.float32, -1, 1),
    Stored("pair", (2,), np.int16, 0, 99, window=3),
    Stored("moves", (2,), np.int8, 0, 4, window=EPISODE),
)
LARGE = (*SMALL, Stored("frame", (20, 30), np.uint8, 0, 255, window=4))
LENGTH = 9
KINDS = {
    "plain": (DictReplayBuffer, {}),
    "her": (HerReplayBuffer, {"her": True}),
    "prioritised": (PrioritisedDictReplayBuffer, {"prioritised": True}),
}


def run_of(fields, total, num_envs, every=0, **algo):
    encoding = Encoding.choose(ObservationSpec(fields))
    action = spaces.Box(-1, 1, (2,), np.float32)
    env = SimpleNamespace(episode_steps=LENGTH, action_space=lambda: action)
    learner = {"num_envs": num_envs, "total_steps": total, "n_steps": 1, "train_freq": 1} | algo
    return SimpleNamespace(
        encoding=lambda: encoding,
        env=env,
        algo=SimpleNamespace(**learner),
        checkpoint_every_steps=every,
        evaluation=SimpleNamespace(every_steps=0),
        keep_checkpoints=3,
    )


def filled(run, kind, size, folder, length=LENGTH, share=50):
    """A replay whose episodes all end at once, saved as often as the run says.

    One part of `share` of each row is new in each step.
    """
    n, total, every = run.algo.num_envs, run.algo.total_steps, run.checkpoint_every_steps
    space, stacks = {}, {}
    for name, nbytes, frames in rows_of(run):
        space[name] = spaces.Box(0, 255, (frames, nbytes) if frames > 1 else (nbytes,), np.uint8)
        stacks |= {name: frames} if frames > 1 else {}
    replay = KINDS[kind][0](
        size, spaces.Dict(space), run.env.action_space(), device="cpu", n_envs=n, frame_stack=stacks
    )
    dice, now = np.random.default_rng(3), {name: np.zeros((n, *s.shape), np.uint8)
                                           for name, s in space.items()}  # fmt: skip
    written, kept = Segments(folder), []
    for step in range(1, -(-total // n) + 1):
        following = {name: shifted(rows, name in stacks, dice, share) for name, rows in now.items()}
        done = np.full(n, step % length == 0)
        action, reward = dice.random((n, 2)).astype(np.float32), dice.random(n)
        replay.store(now, following, action, reward, done, False)
        now = following
        if done.any():
            now = {name: begun(rows, name in stacks, dice, share) for name, rows in now.items()}
        crossed = bool(every) and step * n % every == 0
        for _ in range(crossed + (step * n >= total)):  # as a run does, whose end is saved besides
            kept.append(written.save({"replay": [replay.state()]}).number)
            written.keep(kept[-run.keep_checkpoints :])
    return written, replay


def held_of(run):
    """Steps of each environment that a run of these tests makes."""
    return -(-run.algo.total_steps // run.algo.num_envs)


def begun(rows, stacked, dice, share):
    new = shifted(rows, stacked, dice, share)
    if stacked:
        new[:, :-1] = 0
    return new


def shifted(rows, stacked, dice, share):
    new = rows.copy()
    if stacked:
        new[:, :-1] = rows[:, 1:]
    newest = new[:, -1] if stacked else new
    where = (..., slice(0, max(4, newest.shape[-1] // share)))
    newest[where] = dice.integers(0, 256, newest[where].shape)
    return new


CASES = [
    ("plain", SMALL, 700, 4, 300),
    ("plain", SMALL, 700, 1, 5_000),
    ("plain", SMALL, 36_000, 60, 33_001),
    ("plain", SMALL, 60_000, 60, 90_000),
    ("plain", LARGE, 1_500, 3, 800),
    ("plain", LARGE, 1_200, 2, 40_000),
    ("her", SMALL, 900, 5, 1_003),
    ("prioritised", SMALL, 900, 7, 777),
]


@pytest.mark.parametrize(("kind", "fields", "total", "num_envs", "size"), CASES)
def test_a_segment_holds_the_arrays_that_were_planned(
    kind, fields, total, num_envs, size, tmp_path
):
    run = run_of(fields, total, num_envs, **KINDS[kind][1])
    written, replay = filled(run, kind, size, tmp_path)
    sizes = written._index(1)["sizes"]
    held = min(replay.count, replay.buffer_size)
    ends = np.count_nonzero(replay.dones[:held]) / (held * num_envs)
    planned = {array.name: array for array in saved_arrays(run, size, Data(ends), held_of(run))}

    assert set(planned) == set(sizes)
    known = {name: array.nbytes for name, array in planned.items() if not array.found}
    told = ("pool.chunks", "anchor_room.chunks")  # as many as there are chunks of differences
    differing = {n for n in known if known[n] != sizes[n] and not n.endswith(told)}
    assert not differing
    file = written.path(1).stat().st_size
    if fields is SMALL:
        turned = size < total  # what stacked rows and others share then is chance
        off = 0.03 if turned else 0.012
        assert file_bytes(run, size, Data(ends)) == pytest.approx(file, rel=off)


@pytest.mark.parametrize(
    ("total", "size", "every"), [(1_200, 6_000, 300), (3_000, 500, 300), (2_400, 1_200, 600)]
)
def test_segments_of_a_run_that_saves_on_the_way_are_counted(total, size, every, tmp_path):
    run = run_of(SMALL, total, 4, every)
    written, _ = filled(run, "plain", size, tmp_path)
    files = sum(written.path(number).stat().st_size for number in written.numbers())

    assert file_bytes(run, size, Data(1 / LENGTH)) == pytest.approx(files, rel=0.05)


def test_a_segments_blocks_and_chains_are_those_that_the_plan_counts():
    assert BLOCK_BYTES == segments.BLOCK_BYTES
    assert LISTED_BYTES == 4 + 8 + segments.DIGEST_BYTES
    assert KEY_EVERY == chain.KEY_EVERY


def test_a_learner_without_a_replay_has_no_segments():
    assert replay_on_disk(compose_run(["env=toy"])) == {}


def test_a_run_tells_the_bytes_of_its_segments(monkeypatch, tmp_path):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path)
    run = compose_run(["env=toy", "algo=dqn", "algo.buffer_size=700", "algo.total_steps=900"])
    limit = run.env.episode_steps

    told = replay_on_disk(run)

    assert told["replay_file_bytes"] == file_bytes(run, 700, Data(1 / limit, limits=1.0)) > 0
    assert told["replay_file_most_bytes"] == file_bytes(run, 700, MOST) > told["replay_file_bytes"]


def test_a_run_of_whole_iterations_fills_more_than_was_asked_for():
    run = run_of(SMALL, 100, 4, n_steps=16, train_freq=5)  # iterations of 15 steps
    exactly = run_of(SMALL, 120, 4)

    assert file_bytes(run, 10_000, Data(0.1)) == file_bytes(exactly, 10_000, Data(0.1))


def test_large_rows_that_are_saved_on_the_way_are_counted(tmp_path):
    run = run_of(LARGE, 3_000, 3, 600)
    written, replay = filled(run, "plain", 2_400, tmp_path)
    pools = [c.column.rows for c in replay.columns.values() if c.column._chain is not None]
    (pool,) = pools
    differs = (pool.pool.nbytes - BLOCK_BYTES) / (pool.row_bytes * 2_400)  # its last one has room
    files = sum(written.path(number).stat().st_size for number in written.numbers())

    assert file_bytes(run, 2_400, Data(1 / LENGTH, differs)) == pytest.approx(files, rel=0.05)
    assert file_bytes(run, 2_400, MOST) > files


def test_a_run_of_many_saves_counts_as_one_that_saves_less_often(monkeypatch):
    often, seldom = run_of(SMALL, 40_000, 4, 200), run_of(SMALL, 40_000, 4, 1_000)
    monkeypatch.setattr(replay_file, "MOST_SAVES", 40)

    assert file_bytes(often, 50_000, Data(0.1)) == file_bytes(seldom, 50_000, Data(0.1))


def test_a_run_whose_best_is_kept_leaves_that_segment_besides():
    run, plain = run_of(SMALL, 4_000, 4, 1_000), run_of(SMALL, 4_000, 4, 1_000)
    run.evaluation.every_steps = 900

    assert file_bytes(run, 500, Data(0.1)) > file_bytes(plain, 500, Data(0.1))


@pytest.mark.parametrize(("size", "every"), [(6_000, 0), (900, 300)])
def test_no_file_is_larger_than_the_plan_says_at_most(size, every, tmp_path):
    """Noise, and every step ends an episode."""
    run = run_of(LARGE, 1_800, 3, every)
    written, _ = filled(run, "plain", size, tmp_path, length=1, share=1)
    files = sum(written.path(number).stat().st_size for number in written.numbers())

    assert files <= file_bytes(run, size, MOST) < 1.2 * files
