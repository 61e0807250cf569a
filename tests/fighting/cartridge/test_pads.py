"""A second pad by profile: both seats obeyed, each sees itself as the first player; self-play."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import yaml
from stable_baselines3.common.utils import set_random_seed

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.env import GameBoyEnv
from fighting.cartridge.opposite import Opposite
from fighting.cartridge.reading import FOLDER
from fighting.choices import Actions, Rival
from fighting.machine.duel import DOWN
from fighting.opponents.rivals import Scripted
from fighting.spec import View
from fighting.tools.joypad import opened
from frugal_rl.errors import CheckpointError, ConfigError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.compose import compose_run
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.serial import Serial

DUEL_YAML = (FOLDER / "duel.yaml").read_text()
BY_FEATURE = {name: n for n, name in enumerate(yaml.safe_load(DUEL_YAML)["features"])}
TOWARD, UP, HEAVY = 1, 3, 10
MIRROR = "  mirror: {p1_x: 160, p2_x: 160}\n"
BOTH = {"opponent": Rival.self_play, "pool_share": 0.0}


def config(**options):
    return GameBoyConfig(**{"obs": View.ram, "threads": 1, "warmup_noop_max": 0, **options})


@pytest.fixture
def changed(tmp_path):
    """Duel's profile with parts of its text replaced."""

    def written(*pairs):
        text = DUEL_YAML
        for old, new in zip(pairs[::2], pairs[1::2], strict=True):
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return str(path)

    return written


def batch(made, count, storage=Storage.lossless, split="train"):
    encoding = Encoding.choose(made.spec(), storage, made.fields)
    return made.make_vec(count, encoding, MemoryProfile(), None, split)


def seen(rows, name):
    """One feature of all rows."""
    return rows["features"][:, BY_FEATURE[name]]


def test_both_seats_obey_and_each_sees_itself_as_the_first_player():
    env = batch(config(**BOTH), 4)
    rows = env.reset(0)
    assert env.game.seats.tolist() == [0, 1, 0, 1]
    away = seen(rows, "distance").copy()
    for _ in range(8):
        # On the first machine both walk up; on the other one only the second player does.
        rows = env.step(np.array([TOWARD, TOWARD, 0, TOWARD])).rows
    near = away - seen(rows, "distance")
    assert (near > 0).all()
    assert near[0] == near[1] > near[2] == near[3]
    places = seen(rows, "place") * 160
    assert places[1] > places[0]
    assert places[3] < seen(env.reset(0), "place")[3] * 160
    env.close()


def test_what_one_seat_is_paid_the_other_loses_and_both_end_together():
    env = batch(config(**BOTH), 2)
    rows, paid, done = env.reset(0), np.zeros(2), np.zeros(2, bool)
    health = [np.ones(2)]
    while not done.any():
        near = seen(rows, "distance")[1] * 148 < 34
        step = env.step(np.array([0, TOWARD if not near else HEAVY * (len(health) % 2)]))
        rows, done = step.rows, step.done
        paid += step.reward
        health.append(np.array([seen(rows, "own_health")[0], seen(rows, "his_health")[0]]))
        np.testing.assert_array_equal(seen(rows, "own_health")[::-1], seen(rows, "his_health"))
    assert done.all()
    assert paid[1] == -paid[0] > 1
    assert step.ended.stats["success"].tolist() == [0, 1]
    assert min(h[0] for h in health) < 0.5
    assert all(h[1] == 1 for h in health)
    env.close()


@pytest.fixture
def first_point(tmp_path):
    """Volley until somebody has a point; the end is said of the first player alone."""
    text = (FOLDER / "volley.yaml").read_text()
    assert "end: phase == 2" in text
    path = tmp_path / "first_point.yaml"
    path.write_text(text.replace("end: phase == 2", "end: p1_points >= 1 or p2_points >= 3"))
    return str(path)


def follows(rows, row):
    """What brings a paddle to the ball."""
    below = rows["features"][row, 0] * 105
    return 2 if below > 3 else 1 if below < -3 else 0


def test_a_game_that_is_over_for_one_seat_is_over_for_both(first_point):
    env = batch(config(profile=first_point, **BOTH), 2)
    rows, done = env.reset(0), np.zeros(2, bool)
    while not done.any():
        step = env.step(np.array([follows(rows, 0), 0]))
        rows, done = step.rows, step.done
    env.close()
    assert done.tolist() == [True, True]
    assert step.ended.stats["success"].tolist() == [1, 0]


def test_who_sits_opposite_a_person_sees_the_second_seat():
    made, seen = config(profile="volley", opponent=Rival.still, frame_skip=4), []
    _, _, emulator = opened(made)
    opposite = Opposite(made, emulator)
    opposite.rival = Scripted(lambda told, clock, rngs: seen.append(told[0]) or np.array([2]))
    for _ in range(40):
        assert opposite.press() == DOWN
        emulator.tick()
    paddle, ball, x = (emulator.memory[a] for a in (0xC013, 0xC015, 0xC014))
    opposite.press()
    emulator.close()
    assert len(seen) == 11
    assert seen[-1][0] == pytest.approx((ball - paddle - 9) / 105)
    assert seen[-1][2] == pytest.approx((154 - x) / 77 - 1)
    assert paddle > 50  # it went down


def test_who_wins_against_the_pool_is_rated_higher_and_the_pool_lower(first_point):
    made = config(profile=first_point, opponent=Rival.self_play, pool_share=1.0)
    env = batch(made, 1)
    rows, done, pool = env.reset(0), np.zeros(1, bool), env.game.rival
    while not done.any():
        step = env.step(np.array([follows(rows, 0)]))
        rows, done = step.rows, step.done
    env.close()
    assert step.ended.stats["success"].tolist() == [1]
    assert pool.own > 1000 > min(pool.ratings)
    assert pool.own + min(pool.ratings) == 2000


def test_a_mirrored_seat_lives_in_a_mirrored_world(changed):
    """Places are turned round, and Left and Right are exchanged."""
    path = changed("  second: 0xC011\n", f"  second: 0xC011\n{MIRROR}")
    env = batch(config(profile=path, **BOTH), 2)
    rows = env.reset(0)
    places = seen(rows, "place").copy()
    assert places[0] == places[1]
    for _ in range(4):
        rows = env.step(np.array([TOWARD, TOWARD])).rows
    moved = seen(rows, "place") - places
    assert moved[0] == moved[1] > 0
    env.close()


def test_only_a_mirrored_seat_sees_the_picture_mirrored(changed):
    path = changed("  second: 0xC011\n", f"  second: 0xC011\n{MIRROR}")
    for profile, flipped in ((path, True), ("duel", False)):
        env = batch(config(profile=profile, obs=View.half_size, stack=1, **BOTH), 2)
        first, second = env.reset(0)["frame"]
        np.testing.assert_array_equal(second, first[:, ::-1] if flipped else first)
        assert (first != first[:, ::-1]).any()
        env.close()


@pytest.mark.parametrize("opponent", [Rival.still, Rival.random])
def test_single_environments_and_the_batch_meet_the_same_opponent(opponent):
    made = config(opponent=opponent, actions=Actions.macros, sticky=0.2, max_steps=25)
    encoding = Encoding.choose(made.spec(), Storage.lossless, {})

    def of(vec):
        return lambda: made.make_vec(2, encoding, MemoryProfile(), vec, "train")

    check_vec_env(of(None), of(Serial()), steps=60)


def test_a_rival_at_random_moves_and_one_that_stands_still_does_not():
    moved = {}
    for opponent in (Rival.still, Rival.random):
        env = GameBoyEnv(config(opponent=opponent, random_side=False), seed=1)
        env.reset(seed=1)
        distance = [env.step(0)[0]["features"][BY_FEATURE["distance"]] for _ in range(40)]
        moved[opponent] = np.ptp(distance)
        env.close()
    assert moved[Rival.still] == 0 < moved[Rival.random]


def test_rows_alone_change_sides_and_go_on_exactly():
    made = config(opponent=Rival.random, max_steps=20)
    env = batch(made, 3)
    env.reset(3)
    seats = set()
    for _ in range(50):
        env.step(np.full(3, TOWARD))
        seats.add(tuple(env.game.seats[:3].tolist()))
    assert len(seats) > 1
    kept = env.state()
    after = [env.step(np.full(3, UP)) for _ in range(25)]
    rows = [step.rows["features"].copy() for step in after[-1:]]
    env.close()
    again = batch(made, 3)
    again.reset(9)
    again.load(kept)
    for step in after:
        found = again.step(np.full(3, UP))
        np.testing.assert_array_equal(found.reward, step.reward)
        np.testing.assert_array_equal(found.done, step.done)
    np.testing.assert_array_equal(found.rows["features"], rows[0])
    again.close()


def test_mixed_games_meet_the_cartridges_own_player_too():
    made = config(opponent=Rival.mixed, pool_share=1.0, cpu_share=0.5, max_steps=4)
    env = batch(made, 8)
    env.reset(0)
    met = []
    for _ in range(30):
        env.step(np.zeros(8, np.int64))
        met.append(env.game.computer.copy())
        assert (env.game.seats[:8][env.game.computer] == 0).all()
    assert 0.25 < np.mean(met) < 0.75
    # Against the computer the mode of the cartridge is the one of its start state.
    modes = [machine.memory[0xC006] for machine in env.game.emulators.machines]
    assert [mode == 0 for mode in modes] == env.game.computer.tolist()
    pads = [machine.memory[0xC011] for machine in env.game.emulators.machines]
    assert all(byte == 0 for byte, own in zip(pads, env.game.computer, strict=True) if own)
    env.close()


def test_the_plan_counts_machines_not_rows():
    made = config(**{**BOTH, "pool_share": 0.5})
    assert made.pairs(8) == 2
    parts = {p.name: p.ram_bytes for p in made.parts(8, None, MemoryProfile(), None)}
    assert parts["emulators"] == 6 * 1_600_000
    assert len(batch(made, 8).game.emulators.machines) == 6


SMALL = [
    "env=fighting_game_boy",
    "experiment=cartridge_features",
    "env.profile=duel",
    "algo.num_envs=4",
    "algo.n_steps=24",
    "algo.batch_size=16",
    "algo.n_epochs=1",
    "hardware.device=cpu",
    "hardware.threads=1",
    "env.max_steps=40",
]
OWN_PAST = ["algo=fighting_self_play", "env.opponent=self_play", "env.pool_share=0.5"]


def learner_of(overrides):
    run = compose_run([*SMALL, *overrides])
    set_random_seed(0)
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run, run.algo.build(run, env)


@pytest.mark.parametrize("engine", ["exact", "compiled"])
def test_self_play_joins_its_past_and_resumes(engine, tmp_path, untrained):
    overrides = [*OWN_PAST, "algo.snapshot_every_steps=96", "algo.pool_size=2"]
    overrides += [f"algo.engine={engine}", f"env.pool=[{untrained(tmp_path, SMALL)}]"]
    _, learner = learner_of(overrides)
    for _ in range(3):
        learner.iterate(lambda phase: nullcontext())
    pool = learner.pool
    assert pool.names == ["still", "random", "pool_0", "self_192", "self_288"]
    assert len({player.digest for player in pool.players[2:]}) == 3
    pool.tell(0, 1.0)
    assert pool.own > 1000
    state = learner.state()
    learner.vec_env.close()
    _, again = learner_of(overrides)
    again.load(state)
    assert again.pool.names == pool.names
    assert again.pool.ratings == pool.ratings
    assert [p.digest for p in again.pool.players[2:]] == [p.digest for p in pool.players[2:]]
    again.vec_env.close()


def test_a_frozen_policy_is_met_and_must_fit(tmp_path, untrained):
    path = untrained(tmp_path, SMALL)
    env = GameBoyEnv(config(opponent=Rival.policy, rival=path), seed=0)
    env.reset(seed=0)
    distance = [env.step(0)[0]["features"][BY_FEATURE["distance"]] for _ in range(30)]
    env.close()
    assert np.ptp(distance) > 0
    other = untrained(tmp_path / "hop", [*SMALL, "env.profile=hop"])
    with pytest.raises(ConfigError, match=r"does not play from the features of .*duel.yaml"):
        GameBoyEnv(config(opponent=Rival.policy, rival=other))
    with pytest.raises(ConfigError, match=r"other actions than .*with env.actions=macros"):
        GameBoyEnv(config(opponent=Rival.policy, rival=path, actions=Actions.macros))
    with pytest.raises(CheckpointError):
        GameBoyEnv(config(opponent=Rival.policy, rival=str(tmp_path / "none")))


def test_what_has_no_second_pad_is_refused(changed, tmp_path):
    for options, words in (
        (
            {"profile": "hop", "opponent": Rival.random},
            r"hop.yaml, line \d+: env.opponent=random sits at a",
        ),
        ({"opponent": Rival.masher}, "env.opponent=masher sits at no .* use one of cpu"),
        ({"eval_opponent": Rival.self_play}, "env.eval_opponent=self_play sits at no"),
        ({"opponent": Rival.policy}, r"needs env.rival=RUN"),
        ({"opponent": Rival.still, "actions": Actions.buttons}, "has no second player"),
    ):
        with pytest.raises(ConfigError, match=words):
            config(**options).spec()
    bare = changed(DUEL_YAML[DUEL_YAML.index("features:") : DUEL_YAML.index("# The second")], "")
    with pytest.raises(ConfigError, match="plays from features: and the profile has none"):
        config(profile=bare, obs=View.gray, opponent=Rival.still).spec()
    made = config(**BOTH)
    encoding = Encoding.choose(made.spec(), Storage.lossless, {})
    with pytest.raises(ConfigError, match="choose vec=batch"):
        made.make_vec(2, encoding, MemoryProfile(), Serial(), "train")
    run, learner = learner_of([])
    learner.vec_env.close()
    with pytest.raises(ConfigError, match="a profile that has pads"):
        compose_run([*SMALL, "algo=fighting_self_play"]).algo.build(run, learner.vec_env)


@pytest.mark.parametrize(
    ("pads", "words"),
    [
        ("{set: {0xC006: 1}}", r"line \d+: pads: second is missing"),
        ("{second: 0x2000}", r"pads.second: address 0x2000 lies outside"),
        ("{second: joypad}", r"pads.second: address 'joypad' is no number"),
        ("{second: 0xC011, set: {0x2000: 1}}", r"address 0x2000 lies outside"),
        ("{second: 0xC011, set: {0xC006: 256}}", r"256 is no whole number from 0 to 255"),
        ("{second: 0xC011, set: [1]}", r"pads.set: must be bytes by address"),
        ("{second: 0xC011, exchange: [[p1_hp, hp]]}", r"exchange\[0\]: memory: places no 'hp'"),
        ("{second: 0xC011, exchange: [[p1_hp, p2_hp], [p1_x, p1_hp]]}", "p1_hp stands in it twice"),
        ("{second: 0xC011, exchange: [[p1_hp]]}", r"exchange\[0\]: must be two names"),
        ("{second: 0xC011, mirror: {p1_x: 300}}", r"300 is no whole number from -255 to 255"),
        ("{second: 0xC011, mirror: {x: 3}}", r"pads.mirror.x: memory: places no 'x'"),
        ("{second: 0xC011, third: 3}", r"pads.third: unknown key third"),
    ],
)
def test_bad_pads_are_one_line_with_its_place(changed, pads, words):
    block = DUEL_YAML[DUEL_YAML.index("pads:") : DUEL_YAML.index("actions:")]
    with pytest.raises(ConfigError, match=words) as caught:
        config(profile=changed(block, f"pads: {pads}\n")).spec()
    assert "mine.yaml, line " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_that_are_written_differently_are_not_exchanged(changed):
    path = changed(
        "p2_hp: {addr: 0xC200, max: 112,",
        "p2_hp: {addr: 0xC200, size: 2, max: 112,",
        "second: 0xC011",
        "second: 0xC011\n  exchange: [[p1_hp, p2_hp]]",
    )
    with pytest.raises(ConfigError, match="p1_hp and p2_hp are written differently"):
        config(profile=path).spec()


def test_what_changes_places_must_be_sure(changed):
    path = changed("p2_y: {addr: 0xC204, status: verified", "p2_y: {addr: 0xC204, status: guess")
    with pytest.raises(ConfigError, match=r"only guesses where p2_y is \(\$C204\)"):
        config(profile=path, opponent=Rival.still).spec()
    config(profile=path, opponent=Rival.still, accept_guesses=True).spec()


def test_pairs_of_which_one_is_unknown_are_not_exchanged_by_themselves(changed):
    path = changed("p2_y: {addr: 0xC204", "p2_y: {addr: null", "p2_y / 128", "0")
    exchange = config(profile=path, opponent=Rival.still).game.pads.exchange
    assert ("p1_hp", "p2_hp") in exchange
    assert "p1_y" not in {name for pair in exchange for name in pair}


def test_an_evaluation_of_self_play_meets_whom_it_names():
    made = config(**BOTH)
    env = batch(made, 2, split="eval")
    assert env.game.config.opponent is Rival.cpu
    env.close()
    env = batch(replace(made, eval_opponent=Rival.random), 2, split="eval")
    assert env.game.config.opponent is Rival.random
    env.close()
