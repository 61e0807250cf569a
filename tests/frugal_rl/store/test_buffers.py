"""Replays, rollouts and trajectories count what they hold and refuse in words: by hand."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.errors import ConfigError, DataError, MemoryBudgetError
from frugal_rl.memory.choices import RolloutLocation, Shuffle, Trajectories
from frugal_rl.store.chain import FrameChain
from frugal_rl.store.priorities import PrioritisedReplayBuffer, SumTree
from frugal_rl.store.replay import HerReplayBuffer, ReplayBuffer
from frugal_rl.store.replay_column import ReplayColumn
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.store.stacks import FoundStack
from frugal_rl.store.trajectories import (
    Item,
    TrajectoryBuffer,
    adjacent,
    as_blocks,
    joined,
    shares_memory,
)
from frugal_rl.testing.refusals import text_of

RAM = RolloutLocation.ram
U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)


@pytest.mark.parametrize(
    ("shape", "dtype", "candidates"),
    [
        ((4, 8, 8), np.uint8, [4, 2]), ((6, 50), np.uint8, [6, 3, 2]), ((255,), np.uint8, []),
        ((256,), np.uint8, [16, 8, 4, 2]), ((64,), np.float32, [16, 8, 4, 2]), ((), np.float64, []),
        ((17, 99), np.uint8, []),
    ],
)  # fmt: skip
def test_frames_may_be_any_divisor_of_the_first_axis_of_what_is_large(shape, dtype, candidates):
    column = FoundStack(shape, dtype, 40, 1)

    assert column._candidates() == candidates
    assert (column.column is None) == bool(candidates)


@pytest.mark.parametrize(
    ("frames", "fits"), [(1, True), (4, True), (3, False), (0, False), (17, False)]
)
def test_frames_that_do_not_divide_the_first_axis_are_refused(frames, fits):
    if fits:
        assert FoundStack((4, 8, 8), np.uint8, 40, 1, frames).column.frames == frames
        return
    assert text_of(ConfigError, lambda: FoundStack((4, 8, 8), np.uint8, 40, 1, frames)) == (
        f"frame_stack={frames} does not divide the first axis of an observation of shape "
        "(4, 8, 8) into at most 16 frames. Leave frame_stack out to have it found."
    )


def stacks(steps: int):
    frames = np.arange(steps + 4, dtype=np.uint8)[:, None].repeat(64, 1)
    return [frames[t : t + 4][None] for t in range(steps + 1)]


@pytest.mark.parametrize(("steps", "decides_at"), [(40, 32), (10, 10)])
def test_steps_are_kept_as_they_are_until_it_is_decided_what_they_stack(steps, decides_at):
    column, shown = FoundStack((4, 64), np.uint8, steps, 1), stacks(steps)
    for t in range(decides_at - 1):
        column.add(shown[t], shown[t + 1])
    assert column.parts() == {"staged": (decides_at - 1) * 2 * 256}
    column.add(shown[decides_at - 1], shown[decides_at])

    assert (column.column.frames, column.staged) == (4, [])
    now, then = column.draw(np.array([3]), np.array([0]))
    assert (now == shown[3]).all()
    assert (then == shown[4]).all()


@pytest.mark.parametrize("before", [5, 40])
def test_after_a_reset_nothing_of_before_is_held(before):
    """Also not what was waiting to be looked at: it would decide what the new rows stack."""
    column, shown = FoundStack((4, 64), np.uint8, 40, 1), stacks(40)
    for t in range(before):
        column.add(shown[t][:, ::-1], shown[t + 1][:, ::-1])
    column.reset()
    for t in range(7):
        column.add(shown[t], shown[t + 1])

    assert column.decided().frames == (4 if before < 32 else 1)
    now, then = column.draw(np.arange(7), np.zeros(7, int))
    assert (now[:, None] == shown[:7]).all()
    assert (then[:, None] == shown[1:8]).all()


@pytest.mark.parametrize("frames", [1, 2, 4])
def test_a_saved_column_goes_on_with_the_frames_that_it_had(frames):
    column, other = (FoundStack((4, 64), np.uint8, 40, 1, frames) for _ in range(2))
    shown = stacks(9)
    for t in range(9):
        column.add(shown[t], shown[t + 1])
    anew = FoundStack((4, 64), np.uint8, 40, 1)
    for each in (other, anew):
        each.load(column.state())
        assert each.column.frames == frames
        assert (each.draw(np.array([5]), np.array([0]))[0] == shown[5]).all()


@pytest.mark.parametrize("frames", [0, 3, 17])
def test_a_saved_column_of_frames_that_cannot_be_is_refused(frames):
    state = FoundStack((4, 64), np.uint8, 40, 1, 4).state() | {"frames": frames}

    with pytest.raises(DataError, match=f"says that its observations are {frames} frames"):
        FoundStack((4, 64), np.uint8, 40, 1).load(state)


def test_rows_that_stand_still_or_jump_are_no_stack():
    still, jumps = (FoundStack((4, 64), np.uint8, 9, 1) for _ in range(2))
    shown = stacks(9)
    for t in range(9):
        still.add(np.ones((1, 4, 64)), np.ones((1, 4, 64)))
        jumps.add(shown[t], shown[(t + 2) % 9])

    assert (still.column.frames, jumps.column.frames) == (1, 1)


def test_a_replay_column_keeps_frames_of_256_bytes_as_chains_and_codes_for_stacks():
    small, large = (ReplayColumn((2, n), U8, 10, 3, frames=2) for n in (255, 256))
    whole = ReplayColumn((2, 255), U8, 10, 3)

    assert type(large.rows) is FrameChain
    assert (large.rows.steps, large.codes.shape, large.before.shape) == (11, (10, 3), (3, 512))
    assert small.parts()["codes"] == 10 * 3 + 3 * 510 + small.whole_now.nbytes * 2
    assert (whole.codes.shape, type(whole.rows)) == ((0, 3), FrameChain)
    assert type(small.rows) is not FrameChain


def replay(**more) -> ReplayBuffer:
    space = spaces.Box(-1, 1, (2,))
    return ReplayBuffer(10, space, spaces.Discrete(300), "cpu", 2, **more)


def test_a_replay_takes_its_rows_and_nine_bytes_of_scalars():
    made = replay()

    assert made.buffer_size == 5
    assert made.parts()["replay/scalars"] == 10 * (2 + 4 + 1 + 1)
    assert made.nbytes == sum(made.parts().values())
    assert (made.actions.dtype, made.actions.shape, made.actions.nbytes) == (
        np.int64,
        (5, 2, 1),
        20,
    )
    assert (made.dones.dtype, made.timeouts.dtype) == (F32, F32)
    assert ReplayBuffer(1, spaces.Box(-1, 1, (2,)), spaces.Discrete(2), "cpu", 4).buffer_size == 1


def test_a_replay_refuses_sb3s_way_and_another_runs_state_in_words():
    assert text_of(ConfigError, lambda: replay(optimize_memory_usage=True)) == (
        "optimize_memory_usage=True is SB3's own way to keep frames once, and wrong with time "
        "limits. ReplayBuffer does so in any case: leave it out."
    )
    made = replay()
    state = made.state() | {"form": "another one"}
    assert text_of(DataError, lambda: made.load(state)) == (
        "the replay that was saved is another one, this run builds codec 1: 5 steps of 2 "
        "environments, obs float32 [2]; give the environment, algo.buffer_size and algo.num_envs "
        "of the saved run."
    )


def test_limits_are_read_from_the_infos_where_ends_are_told_apart():
    row, done = np.zeros((2, 2), np.float32), np.array([True, True])
    infos = [{"TimeLimit.truncated": True}, {}]
    told, plain = replay(), replay(handle_timeout_termination=False)
    for made in (told, plain):
        made.add(row, row, np.array([299, 1]), np.array([1.0, 2.0]), done, infos)

    assert told._timeouts[0].tolist() == [True, False]
    assert plain._timeouts[0].tolist() == [False, False]
    assert told.actions[0].tolist() == [[299], [1]]
    assert (told.pos, told.count, told.full) == (1, 1, False)
    told.reset()
    assert (told.pos, told.count) == (0, 0)


@pytest.mark.parametrize(("size", "nodes"), [(1, 4), (2, 4), (3, 8), (4, 8), (5, 16), (1000, 2048)])
def test_a_tree_of_sums_has_two_nodes_per_leaf_of_a_power_of_two(size, nodes):
    tree = SumTree(size)

    assert (len(tree.tree), len(tree.leaves())) == (nodes, size)


def test_priorities_are_errors_to_a_power_and_new_ones_the_highest():
    made = PrioritisedReplayBuffer(
        10, spaces.Box(-1, 1, (2,)), spaces.Discrete(2), "cpu", 2, alpha=0.5, beta=1.0
    )
    row = np.zeros((2, 2), np.float32)
    for _ in range(2):
        made.store(row, row, np.zeros(2), np.zeros(2), np.zeros(2, bool), False)
    assert made.tree.leaves().tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    made.drawn = np.array([1, 2])
    made.learned(np.array([[4.0], [-0.25]]))
    assert made.tree.leaves()[:4] == pytest.approx([1, 2, 0.5, 1], rel=1e-5)
    assert made.highest == pytest.approx(2)
    made.store(row, row, np.zeros(2), np.zeros(2), np.zeros(2, bool), False)
    assert made.tree.leaves()[4:6] == pytest.approx([2, 2])
    made.sample(8)
    chances = made.tree.leaves()[made.drawn] / made.tree.total
    expected = (1 / chances) / (1 / chances).max()
    assert made.weights[:, 0] == pytest.approx(expected, rel=1e-5)
    assert made.parts()["replay/priorities"] == 32 * 8
    assert made._form().endswith(", prioritised")
    made.reset()
    assert (made.tree.total, made.count) == (0.0, 0)


def test_hindsight_counts_its_episodes_bounds():
    goal = spaces.Box(-1, 1, (2,))
    space = spaces.Dict({"observation": goal, "achieved_goal": goal, "desired_goal": goal})
    made = HerReplayBuffer(10, space, spaces.Discrete(2), env=None, device="cpu", n_envs=2)
    bounds = made.ep_start.nbytes + made.ep_length.nbytes + made.infos.nbytes

    assert made.parts()["replay/episodes"] == bounds > 0


def rollout(**more) -> RolloutBuffer:
    return RolloutBuffer(3, spaces.Box(0, 1, (2,)), spaces.Discrete(4), "cpu", n_envs=2, **more)


def fill(buffer: RolloutBuffer) -> None:
    buffer.reset()
    for t in range(3):
        rows = np.full((2, 2), t, np.float32)
        zero, values = np.zeros(2), torch.full((2, 1), float(t))
        buffer.add(rows, np.array([t, 3]), zero + t, zero == t, values, torch.zeros(2))


def test_a_rollout_counts_columns_scalars_labels_and_its_minibatch():
    buffer = rollout(reuse=True, shuffle=Shuffle.gather)
    assert buffer.parts() == {"rollout/obs": 48, "rollout/scalars": 6 * 22, "rollout/minibatch": 0}
    fill(buffer)
    assert (buffer.size(), buffer.full) == (3, True)
    buffer.labels = {"near": np.arange(6, dtype=np.float32).reshape(3, 2)}
    next(iter(buffer.get(4)))
    assert buffer.parts() == {
        "rollout/obs": 48, "rollout/scalars": 6 * 22, "rollout/minibatch": 4 * 8,
        "rollout/labels": 24,
    }  # fmt: skip
    assert buffer.nbytes == 48 + 6 * 22 + 24
    buffer.reset()
    assert (buffer.size(), buffer.full) == (0, False)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_rollout_that_shall_lie_on_the_device_lies_on_that_of_the_buffer(device):
    space, kinds = spaces.Box(0, 1, (2,)), spaces.Discrete(4)
    buffer = RolloutBuffer(3, space, kinds, device, n_envs=2, location=RolloutLocation.device)

    assert {c.values.device.type for c in buffer.columns.values()} == {device}


def test_samples_are_counted_environment_by_environment():
    buffer = rollout()
    fill(buffer)
    drawn = buffer.samples(np.array([4, 2]))  # step 1 of the second, step 2 of the first

    assert drawn.observations.tolist() == [[1, 1], [2, 2]]
    assert drawn.actions.tolist() == [[3], [2]]
    assert drawn.actions.dtype == torch.float32
    assert drawn.old_values.tolist() == [1, 2]
    assert [len(batch.old_values) for batch in buffer.get()] == [6]
    assert [len(batch.old_values) for batch in buffer.get(4)] == [4, 2]


def test_an_unfilled_rollout_says_how_far_it_is():
    assert text_of(RuntimeError, lambda: next(iter(rollout().get(2)))) == (
        "The rollout holds 0 of 3 steps; fill it before drawing."
    )


ITEMS = (Item((2,), torch.float32), Item((), torch.float32))


def test_trajectories_say_what_does_not_fit_and_what_is_of_another_kind():
    made = TrajectoryBuffer(Trajectories.preallocated, max_buffer_size=10)
    assert text_of(MemoryBudgetError, lambda: made.slots(11, 1, ITEMS)) == (
        "Trajectories of 11 steps do not fit max_buffer_size=10. Raise it, or collect fewer steps "
        "per update."
    )
    assert len(made.slots(10, 1, ITEMS)) == 10
    said = text_of(ConfigError, lambda: made.slots(1, 1, ITEMS[:1]))
    assert said == (
        f"The trajectory buffer holds items {list(ITEMS)}, but was given {list(ITEMS[:1])}. Make a "
        "new buffer for trajectories of another kind."
    )
    for chunk, most in ((0, 1), (1, 0)):
        assert (
            text_of(
                ConfigError,
                lambda c=chunk, m=most: TrajectoryBuffer(Trajectories.views, "cpu", c, m),
            )
            == f"chunk_size is {chunk} and max_buffer_size {most}; both must be positive."
        )
    assert TrajectoryBuffer(Trajectories.views, "cpu", 1, 1).max_buffer_size == 1
    slots = made.slots(2, 3, ITEMS)
    assert text_of(ConfigError, lambda: made.update(slots[::-1])) == (
        "Slots must be merged in the order in which they were given."
    )


def test_a_buffer_holds_what_it_allocated_else_what_was_merged_last():
    made, listed = TrajectoryBuffer(Trajectories.views), TrajectoryBuffer(Trajectories.list)
    assert (made.chunk_size, made.max_buffer_size, made.device.type) == (256, 4096, "cpu")
    made.slots(1, 3, ITEMS)
    listed.update(listed.slots(2, 3, ITEMS))

    assert made.nbytes == 4096 * 12
    assert [len(t) for t in made.held] == [4096, 4096]
    assert (listed.nbytes, [len(t) for t in listed.held]) == (0, [6, 6])
    assert (len(listed), listed[0].shape) == (2, (6, 2))


def test_the_mean_reward_is_that_of_the_second_item():
    made = TrajectoryBuffer(Trajectories.hybrid, max_buffer_size=6)
    (slot,) = made.slots(1, 4, ITEMS)
    slot[0].fill_(7)
    slot[1].copy_(torch.tensor([1.0, 2.0, 3.0, 6.0]))

    assert made.update([slot]) == (4, 3.0)
    assert made.update([tuple(item[:0] for item in slot)]) == (0, 0.0)


def test_pieces_are_joined_where_one_begins_at_the_end_of_the_other():
    memory = torch.arange(12.0).reshape(6, 2)
    pieces = memory[:2], memory[2:3], memory[3:]

    assert adjacent(pieces)
    assert not adjacent((memory[:2], memory[3:]))
    assert not adjacent((memory[:2], memory[2:].clone()))
    assert not adjacent((memory[:2, :1], memory[2:, :1]))
    numbers = np.arange(4, dtype=np.float32)
    assert not adjacent((torch.from_numpy(numbers[:2]), torch.from_numpy(numbers[2:])))
    assert torch.equal(joined(pieces), memory)
    blocks = as_blocks([(memory[:3],), (memory[3:],)])
    assert blocks[0].shape == (2, 3, 2)
    assert blocks[0].data_ptr() == memory.data_ptr()
    assert shares_memory(memory, memory[5:])
    assert not shares_memory(memory[:5], memory[5:])
    assert not shares_memory(memory[1:], memory)
