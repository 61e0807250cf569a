"""Mine environments keep the contracts of the core, in every kind."""

import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from frugal_rl.errors import ConfigError, EncodingError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.borders import check_rows
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.decoder import Decoder
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.testing.codec import check_codec
from frugal_rl.testing.env import check_env
from frugal_rl.testing.vec_env import check_vec_env
from frugal_rl.vec_env.batch import Batch
from frugal_rl.vec_env.serial import Serial
from mine_rl_npv.config import MineConfig
from mine_rl_npv.data.synthetic import Deposit
from mine_rl_npv.rules.choices import Actions, Clock, Kind
from mine_rl_npv.rules.codecs import MinedBitsCodec, SpanCodec, StampCodec
from mine_rl_npv.spec import Observation

DEPOSIT = Deposit(6, 5, 4, seed=3, richness=0.6)
KINDS = {
    "cpit": {"kind": Kind.cpit},
    "columns": {"kind": Kind.daily, "obs": Observation.columns, "max_steps": 20, "deposits": 2},
    "pcpsp": {"kind": Kind.pcpsp, "deposits": 2},
    "daily": {"kind": Kind.daily},
    "period": {"kind": Kind.cpit, "clock": Clock.period},
    "block": {"kind": Kind.cpit, "actions": Actions.block},
    "cone": {"kind": Kind.cpit, "actions": Actions.cone},
}


def config_of(kind):
    return MineConfig(data="synthetic", deposit=DEPOSIT, **KINDS[kind])


def vec_env_of(config, num_envs):
    encoding = Encoding.choose(config.spec())
    return config.make_vec(num_envs, encoding, MemoryProfile(), Batch(), "train")


@pytest.mark.parametrize("kind", KINDS)
def test_the_environment_keeps_the_contract(kind):
    check_env(config_of(kind), steps=60)


def test_training_and_evaluation_hold_their_mines_once_and_their_rules_apart():
    config, slower = config_of("daily"), replace(config_of("daily"), tonnes_per_day=5_000)
    games = [c.game(2) for c in (config, config, slower)]
    tables, arenas = [g.tables["mine"] for g in games], [g.arena for g in games]

    assert tables[0] is tables[1] is tables[2]
    assert arenas[0].index is arenas[1].index is arenas[2].index
    assert arenas[0].room[0, 0, 0] == arenas[1].room[0, 0, 0] != arenas[2].room[0, 0, 0]


def test_entries_of_a_file_name_blocks_of_their_own_mine():
    config = config_of("columns")
    with closing(vec_env_of(config, 2)) as vec_env:
        rows = vec_env.reset(0)
        blocks = np.diff(vec_env.tables["mine"].offsets("owner"))[rows["mine_id"].reshape(-1)]
        shown = {"mine_id": rows["mine_id"], "entry": np.zeros((2, 5), np.int32)}
        shown["entry"][:, 3] = blocks
        check_rows(vec_env.encoding, vec_env.tables, shown, config.episode_steps)
        shown["entry"][1, 4] = blocks[1] + 1
        with pytest.raises(EncodingError, match="names a block that its mine"):
            check_rows(vec_env.encoding, vec_env.tables, shown, config.episode_steps)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", [Storage.lossless, Storage.dense])
def test_the_native_batch_plays_as_single_environments_do(kind, storage):
    config, memory = config_of(kind), MemoryProfile()
    encoding = Encoding.choose(config.spec(), storage)
    check_vec_env(
        lambda: config.make_vec(3, encoding, memory, Batch(), "train"),
        lambda: config.make_vec(3, encoding, memory, Serial(), "train"),
        130,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", [Storage.lossless, Storage.dense])
def test_planned_bytes_are_the_bytes_allocated(kind, storage):
    config, memory = config_of(kind), MemoryProfile()
    encoding = Encoding.choose(config.spec(), storage)
    vec_env = config.make_vec(4, encoding, memory, Batch(), "train")
    planned = {p.name: p.ram_bytes for p in config.parts(4, encoding, memory, Batch())}
    for name, size in planned.items():
        assert vec_env.parts()[name] == size, name


@pytest.mark.parametrize("kind", ["cpit", "columns", "pcpsp", "daily"])
def test_torch_rebuilds_what_numpy_rebuilds_bit_for_bit(kind):
    config = config_of(kind)
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    vec_env = config.make_vec(4, encoding, MemoryProfile(), Batch(), "train")
    history = History(encoding, 4, config.episode_steps)
    rows = history.reset(vec_env.reset(1))
    decoder = Decoder(encoding, vec_env.tables)
    rng = np.random.default_rng(0)
    for _ in range(40):
        wanted = decode(encoding, rows, vec_env.tables)
        fields = decoder({name: torch.from_numpy(v.copy()) for name, v in rows.items()})
        for name, value in wanted.items():
            assert_array_equal(fields[name].numpy(), value, name)
        mask = wanted["action_mask"]
        step = vec_env.step(np.array([rng.choice(np.flatnonzero(m)) for m in mask]))
        rows, _ = history.push(step.rows, step.done)


def test_a_logged_transition_stores_six_bytes_and_its_mine():
    config = config_of("daily")
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    sizes = {row.name: row.nbytes for row in encoding.rows}
    assert sizes == {"mine_id": 4, "entry": 4, "day": 2}


@pytest.mark.parametrize(("form", "exact"), [("stamp", True), ("bits", False), ("depth", False)])
def test_other_forms_of_the_pit_keep_the_mined_flag(form, exact):
    config = config_of("daily")
    spec = config.spec()
    encodings = [
        Encoding.choose(spec, Storage.lossless, fields={"pit": name}) for name in ("dense", form)
    ]
    envs = [config.make_vec(2, e, MemoryProfile(), Batch(), "train") for e in encodings]
    histories = [History(e, 2, config.episode_steps) for e in encodings]
    shown = [h.reset(e.reset(3)) for h, e in zip(histories, envs, strict=True)]
    rng = np.random.default_rng(0)
    for _ in range(25):
        dense, other = (
            decode(e, rows, env.tables) for e, rows, env in zip(encodings, shown, envs, strict=True)
        )
        assert_array_equal(dense["pit"][:, 0], other["pit"][:, 0])
        if exact:
            assert_array_equal(dense["pit"], other["pit"])
        actions = np.array([rng.choice(np.flatnonzero(m)) for m in dense["action_mask"]])
        steps = [env.step(actions) for env in envs]
        shown = [h.push(s.rows, s.done)[0] for h, s in zip(histories, steps, strict=True)]


def test_codecs_of_the_pit_keep_the_contract_of_codecs():
    rng = np.random.default_rng(0)
    depth = rng.integers(0, 5, (3, 6, 5, 1))
    mined = (np.arange(4)[::-1] < depth).astype(np.float32)
    day = mined * rng.integers(0, 90, mined.shape)
    planes = np.stack((mined, day), axis=1).astype(np.float32)
    assert_array_equal(StampCodec().decode(StampCodec().encode(planes)), planes)
    for codec in (MinedBitsCodec(120, (6, 5, 4)), SpanCodec(levels=4)):
        assert_array_equal(codec.decode(codec.encode(planes))[:, 0], mined)
    assert check_codec is not None
    gaps = planes.copy()
    gaps[0, 0, 0, 0] = [1, 0, 1, 0]
    with pytest.raises(ValueError, match="gaps"):
        SpanCodec(levels=4).encode(gaps)


def test_realisations_share_the_ground_and_differ_in_value():
    config = MineConfig(
        data="porphyry_tiny", kind=Kind.cpit, realisations=3, obs=Observation.columns
    )
    layouts = config.mines().layouts
    assert len(layouts) == 3
    assert not np.array_equal(layouts[0].instance.value, layouts[1].instance.value)
    env = config.make(seed=0)
    seen = set()
    for seed in range(12):
        env.reset(seed=seed)
        seen.add(int(env.game.pits.mine[0]))
    assert seen == {0, 1, 2}


def test_held_out_deposits_are_played_in_evaluation_only():
    config = MineConfig(data="synthetic", deposit=DEPOSIT, deposits=2, eval_deposits=3)
    assert config.mines().chosen("train").tolist() == [0, 1]
    assert config.mines().chosen("eval").tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"actions": Actions.cone, "kind": Kind.daily}, "env.kind=cpit"),
        ({"actions": Actions.block, "obs": Observation.columns}, "env.actions=column"),
        ({"max_steps": -1}, "0 or more"),
        ({"deposits": 0}, "1 or more"),
    ],
)
def test_impossible_combinations_are_refused_in_words(options, words):
    with pytest.raises(ConfigError, match=words):
        MineConfig(data="synthetic", deposit=DEPOSIT, **options)


def test_an_unknown_channel_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match="gold"):
        MineConfig(data="porphyry_tiny", channels=("gold",)).spec()


def test_generated_deposits_are_read_back_and_played(tmp_path):
    config = MineConfig(deposit=DEPOSIT)
    written = config.generate(str(tmp_path), 2, seed=5)
    assert len(written) == 12
    assert all(path.is_file() for path in written)
    for name in ("deposit_5", "deposit_6.csv"):
        mine = MineConfig(data=str(tmp_path / name), kind=Kind.cpit)
        env = mine.make(seed=0)
        assert env.observation_space["geology"].shape[1:] == (6, 5, 4)
    values = [
        MineConfig(data=str(tmp_path / name), kind=Kind.cpit).mines().layouts[0].instance.value
        for name in ("deposit_5", "deposit_5.csv")
    ]
    assert_array_equal(values[0], values[1])
    with pytest.raises(ConfigError, match="count"):
        config.generate(str(tmp_path), 0, 0)


def test_a_configuration_loads_no_part_of_scipy():
    parts = "{'scipy.spatial', 'scipy.ndimage', 'scipy.linalg'}"
    code = f"import sys, mine_rl_npv.config; print(*{parts} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""
