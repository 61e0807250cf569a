"""Many fights: every backend plays the same ones, bit for bit; features and frames have twins."""

import numpy as np
import pytest

from fighting.choices import Rival
from fighting.config import DuelConfig
from fighting.machine.frames import colour, grey, half_screen, pack_screen
from fighting.signals import FEATURES, NAMES, SIGNALS, features, look
from fighting.spec import View
from fighting.vec_env import DuelVecEnv
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.testing.ranks import together
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.serial import Serial
from frugal_rl.vec_env.shared_memory import SharedMemory
from frugal_rl.vec_env.threads import Threads

MEMORY = MemoryProfile()


def encoding_of(config, storage=Storage.lossless):
    return Encoding.choose(config.spec(), storage)


def native(config, count, storage=Storage.lossless):
    return DuelVecEnv(config, count, encoding_of(config, storage), MEMORY)


@pytest.mark.parametrize("view", [View.ram, View.gray, View.both])
@pytest.mark.parametrize("backend", [Serial(), Threads(threads=2)], ids=["serial", "threads"])
def test_backends_play_the_same_fights(view, backend):
    config = DuelConfig(obs=view, levels=(3, 6), round_seconds=3, threads=2)
    check_vec_env(
        lambda: native(config, 3),
        lambda: backend.build(config, 3, encoding_of(config), MEMORY),
        steps=60,
    )


def test_threads_are_the_batch_and_play_the_same_fights():
    config = DuelConfig(levels=(3, 6), round_seconds=2)
    threads = config.make_vec(3, encoding_of(config), MEMORY, Threads(threads=2), "train")
    assert isinstance(threads, DuelVecEnv)
    assert threads.game.emulators.shares.threads == 2
    check_vec_env(lambda: native(config, 3), lambda: threads, steps=40)


def test_shared_memory_workers_play_the_same_fights():
    config = DuelConfig(obs=View.gray, levels=(3, 6), round_seconds=2, threads=1)
    check_vec_env(
        lambda: native(config, 3),
        lambda: SharedMemory(workers=2).build(config, 3, encoding_of(config), MEMORY),
        steps=40,
    )


def test_the_number_of_threads_changes_nothing():
    one, three = (DuelConfig(levels=(6,), round_seconds=3, threads=t) for t in (1, 3))
    check_vec_env(lambda: native(one, 5), lambda: native(three, 5), steps=80)


def test_packed_rows_are_the_dense_frames():
    config = DuelConfig(obs=View.gray, levels=(5,), random_side=True, opponent=Rival.masher)
    packed, dense = native(config, 2), native(config, 2, Storage.dense)
    codec = packed.encoding.by_name["frame"].codec
    a, b = packed.reset(0), dense.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        np.testing.assert_array_equal(codec.decode(a["frame"]), b["frame"])
        actions = rng.integers(0, 16, 2)
        a, b = packed.step(actions).rows, dense.step(actions).rows
    packed.close()
    dense.close()


def test_a_packed_frame_has_a_quarter_of_the_bytes():
    row = encoding_of(DuelConfig(obs=View.gray)).by_name["frame"]
    assert row.nbytes == 5760
    assert row.window == 4


OTHERS = (Rival.cpu, Rival.curriculum, Rival.policy)  # a policy: test_training.py


@pytest.mark.parametrize("opponent", [r for r in Rival if r not in OTHERS])
def test_every_opponent_can_be_fought(opponent):
    config = DuelConfig(opponent=opponent, round_seconds=2)
    env = native(config, 4)
    env.reset(1)
    ended = 0
    rng = np.random.default_rng(0)
    for _ in range(80):
        step = env.step(rng.integers(0, 16, 4))
        ended += 0 if step.ended is None else len(step.ended.index)
    assert ended >= 4
    env.close()


def test_both_seats_of_self_play_see_themselves_first_and_gain_what_the_other_loses():
    config = DuelConfig(opponent=Rival.self_play, round_seconds=4, pool_share=0.0)
    env = native(config, 4)
    rows = env.reset(0)
    rng = np.random.default_rng(2)
    for _ in range(120):
        step = env.step(rng.integers(0, 16, 4))
        rows = step.rows["signals"].astype(int)
        np.testing.assert_array_equal(rows[::2, 0], rows[1::2, 1])
        np.testing.assert_array_equal(rows[::2, 9], rows[1::2, 10])
        np.testing.assert_array_equal(rows[::2, 3], rows[1::2, 3])
        np.testing.assert_allclose(step.reward[::2], -step.reward[1::2], atol=1e-6)
        np.testing.assert_array_equal(step.done[::2], step.done[1::2])
    env.close()


def test_evaluation_takes_its_levels_in_turn():
    config = DuelConfig(levels=(1,), eval_levels=(2, 5, 7), round_seconds=1)
    env = DuelVecEnv(config, 3, encoding_of(config), MEMORY, "eval")
    env.reset(0)
    met = {}
    for _ in range(40):
        step = env.step(np.zeros(3, np.int64))
        if step.ended is not None:
            for i, level in zip(step.ended.index, step.ended.stats["level"], strict=True):
                met.setdefault(int(i), []).append(int(level))
    assert [met[i][:2] for i in range(3)] == [[2, 5], [5, 7], [7, 2]]
    env.close()


@pytest.mark.parametrize(("opponent", "told"), [(Rival.cpu, True), (Rival.masher, False)])
def test_a_level_is_told_only_where_the_cartridges_player_is_fought(opponent, told):
    env = native(DuelConfig(opponent=opponent, round_seconds=1), 2)
    env.reset(0)
    ended = [env.step(np.zeros(2, np.int64)).ended for _ in range(20)]
    env.close()
    (stats,) = {tuple(sorted(e.stats)) for e in ended if e is not None}
    assert ("level" in stats) == told


def test_the_curriculum_rises_when_its_level_is_beaten():
    config = DuelConfig(opponent=Rival.curriculum, levels=(1, 2, 3), raise_after=5, raise_at=0.7)
    env = native(config, 1)
    levels = env.game.levels
    for score in (1, 1, 0, 1, 0):
        levels.tell(1, score)
    assert levels.present == 1
    for _ in range(3):
        levels.tell(1, 1.0)
    assert levels.present == 2
    levels.tell(1, 1.0)  # an easier fight says nothing about the present level
    assert len(levels.recent) == 0
    env.close()


def test_ranks_share_one_curriculum_decided_by_the_fights_of_all():
    config = DuelConfig(opponent=Rival.curriculum, levels=tuple(range(8)), raise_after=12)
    rng = np.random.default_rng(4)  # fights of rollout, step, rank
    levels, won = rng.integers(0, 4, (3, 40, 2)), rng.random((3, 40, 2)) < 0.8
    one, expected = native(config, 1), []
    for rollout in range(3):
        for step in range(40):
            for rank in range(2):
                one.game.levels.tell(int(levels[rollout, step, rank]), won[rollout, step, rank])
        expected.append(one.common())

    def shared(ranks):
        env, found = native(config, 1), []
        env.agree(ranks)
        for rollout in range(3):
            for step in range(40):
                level, score = levels[rollout, step, ranks.rank], won[rollout, step, ranks.rank]
                env.game.levels.tell(int(level), score, step)
            env.agree(ranks)
            found.append(env.common())
        env.close()
        return found

    first, second = together(2, shared)

    assert first == second == expected
    assert len({common["present"] for common in expected}) > 1
    fresh = native(config, 1)
    fresh.go_on(first[-1])
    assert fresh.common() == expected[-1]
    fresh.close()
    one.close()


def test_a_resumed_batch_continues_exactly():
    config = DuelConfig(obs=View.both, levels=(4,), round_seconds=2, sticky=0.2)
    env, other = native(config, 3), native(config, 3)
    rng = np.random.default_rng(0)
    env.reset(0)
    for _ in range(35):
        env.step(rng.integers(0, 16, 3))
    rows = {n: v.copy() for n, v in other.load(env.state()).items()}
    np.testing.assert_array_equal(rows["frame"], env.game.frames)
    for _ in range(40):
        actions = rng.integers(0, 16, 3)
        a, b = env.step(actions), other.step(actions)
        for name in a.rows:
            np.testing.assert_array_equal(a.rows[name], b.rows[name])
        np.testing.assert_array_equal(a.reward, b.reward)
    env.close()
    other.close()


def slow_look(ram, seat):
    """`look` again, field by field as the cartridge's contract reads."""
    state, players = ram[:22].astype(int), [ram[22:60].astype(int), ram[60:98].astype(int)]
    me, he = players[seat], players[1 - seat]
    left = me[2] < he[2] or (me[2] == he[2] and seat == 0)
    total = {1: 14, 2: 29, 3: 16, 4: 34, 5: 39, 6: 41, 7: 47, 8: 61, 9: 26}
    bounds = {
        1: (4, 7),
        2: (9, 13),
        3: (5, 8),
        4: (10, 14),
        5: (5, 36),
        6: (7, 15),
        7: (13, 13),
        8: (5, 15),
        9: (3, 4),
    }

    def timing(who):
        move, time = who[9], who[8]
        if move == 0:
            return [0, 0, 0]
        start, end = bounds[move]
        if time < start:
            return [start - time, 0, 0]
        return [0, end - time, 0] if time < end else [0, 0, max(total[move] - time, 1)]

    def place(x):
        return x if left else 160 - x

    facing = int((me[6] == 0) == left) + 2 * int((he[6] == 0) != left)
    wave = [1 + abs(w[33] - o[2]) if w[32] else 0 for w, o in ((me, he), (he, me))]
    wins = [state[7 + seat], state[8 - seat]]
    places = [abs(me[2] - he[2]), place(me[2]), place(he[2]), me[4], he[4]]
    states = [facing, me[7], he[7], me[11], he[11]]
    health = [me[0], he[0], 112 + me[0] - he[0]]
    return [*health, *places, *states, *timing(me), *timing(he), *wave, state[5], *wins]


def test_signals_equal_their_slow_twin():
    config = DuelConfig(opponent=Rival.random, round_seconds=20)
    env = native(config, 2)
    env.reset(3)
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(300):
        env.step(rng.integers(0, 16, 2))
        for ram in env.game.emulators.ram:
            seen.add(int(ram[31]))
            for seat in (0, 1):
                out = np.zeros(SIGNALS, np.uint8)
                look(ram, seat, out)
                assert out.tolist() == slow_look(ram, seat)
    assert len(seen) >= 6
    env.close()


@pytest.mark.parametrize("flip", [False, True])
def test_pictures_equal_their_slow_twins(flip):
    screen = np.random.default_rng(4).integers(0, 4, (144, 160, 4)).astype(np.uint8) * 85
    pixels, plain = screen.view("<u4")[..., 0], screen[40:, ::-1] if flip else screen[40:]
    shades = (plain[..., 0] // 85).reshape(104, 40, 4)
    squares = plain[..., 0].astype(int).reshape(52, 2, 80, 2).sum(axis=(1, 3)) // 4
    for take, wanted in (
        (grey, plain[..., 0]),
        (colour, plain[..., :3]),
        (pack_screen, (shades << [6, 4, 2, 0]).sum(axis=2)),
        (half_screen, squares),
    ):
        out = np.zeros(wanted.shape, np.uint8)
        take(pixels, flip, out)
        np.testing.assert_array_equal(out, wanted)


def test_features_are_in_range_and_named():
    signals = np.random.default_rng(0).integers(0, 256, (50, SIGNALS)).astype(np.uint8)
    found = features({"signals": signals}, None)
    assert found.shape == (50, FEATURES)
    assert found.dtype == np.float32
    assert np.abs(found).max() <= 1
    assert len(set(NAMES)) == FEATURES


def test_torch_twins_equal_numpy():
    torch = pytest.importorskip("torch")
    from fighting import derive
    from fighting.machine.frames import GreyCodec

    rng = np.random.default_rng(0)
    signals = rng.integers(0, 256, (40, SIGNALS)).astype(np.uint8)
    ours = derive.features({"signals": torch.from_numpy(signals)}, None)
    np.testing.assert_array_equal(ours.numpy(), features({"signals": signals}, None))
    packed = rng.integers(0, 256, (3, 4, 144, 40)).astype(np.uint8)
    codec = GreyCodec()
    np.testing.assert_array_equal(
        derive.unpack(codec, torch.from_numpy(packed)).numpy(), codec.decode(packed)
    )


def test_packing_refuses_other_colours():
    from fighting.machine.frames import GreyCodec
    from frugal_rl.errors import EncodingError

    with pytest.raises(EncodingError, match="grey value 100"):
        GreyCodec().encode(np.full((2, 8), 100, np.uint8))


def test_packing_is_lossless():
    from fighting.machine.frames import GreyCodec

    frames = (np.random.default_rng(0).integers(0, 4, (5, 144, 160)) * 85).astype(np.uint8)
    codec = GreyCodec()
    packed = codec.encode(frames)
    assert packed.shape == (5, 144, 40)
    np.testing.assert_array_equal(codec.decode(packed), frames)
    assert packed[0, 0, 0] >> 6 == frames[0, 0, 0] // 85
