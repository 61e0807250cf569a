"""What the compiled engine reads: pixels that are decoded once, floats where the rollout lies."""

import numpy as np
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.compiled import kept_pixels
from frugal_rl.learn.compiled.engine import CompiledPerceptron
from frugal_rl.learn.compiled.inputs import InputReader
from frugal_rl.learn.compiled.kept_pixels import KeptPixels
from frugal_rl.learn.on_policy_config import Engine
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile, Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Static, Stored
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.trainer import no_meter
from frugal_rl.store.drawn_rows import DrawnRows
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.foreign import tables_of

SHAPE = (8, 9)


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True), max_size=20))
def test_each_picture_is_that_of_its_origin_and_decoded_once_while_kept(asked):
    kept, decoded = KeptPixels(1, 3), []
    kept.most = 25
    for origins in asked:
        rows = np.array(origins, np.uint64)[:, None]

        def decode(places, rows=rows):
            decoded.extend(rows[places, 0].tolist())
            return rows[places].astype(np.float32) * np.ones((1, 3), np.float32)

        full = kept.origins.used + len(origins) > kept.most
        known = set() if full else set(kept.origins.read(0, kept.origins.used)[:, 0].tolist())
        before = len(decoded)
        given_back = kept.of(rows, decode)
        assert given_back.tolist() == [[o] * 3 for o in origins]
        assert decoded[before:] == [o for o in origins if o not in known]
        assert kept.pixels.used == kept.origins.used <= kept.most


def test_more_pictures_than_there_is_room_for_are_decoded_and_not_kept(monkeypatch):
    monkeypatch.setattr(kept_pixels, "MOST_BYTES", 4 * 2 * 3)
    kept = KeptPixels(1, 2)

    rows = np.arange(4, dtype=np.uint64)[:, None]
    given_back = kept.of(rows, lambda places: np.ones((len(places), 2), np.float32))

    assert len(given_back) == 4
    assert kept.pixels.nbytes == 0


def reader_of_pages():
    """A reader of pictures by id, and the table that holds them."""
    fields = (
        Static("picture", SHAPE, np.uint8, 0, 255, table="page"),
        Stored("x", (2,), np.float32),
    )
    spec = ObservationSpec(fields)
    encoding, tables = Encoding.choose(spec, Storage.lossless), tables_of(spec)
    policy = FrugalPolicy(
        encoding.policy_space(),
        spaces.Discrete(3),
        lambda _: 1e-3,
        agent=MlpAgent(),
        encoding=encoding,
        tables=tables,
    )
    return InputReader(policy, policy.decoder), tables["page"]


def test_pictures_stay_decoded_until_their_table_shows_others():
    read, table = reader_of_pages()
    decoded, decode = [], read._pixels
    read._pixels = lambda *given: decoded.append(len(given[-1])) or decode(*given)
    ids = np.array([0, 1, 1, 0, 2], np.int32)
    rows = {"page_id": torch.from_numpy(ids), "x": torch.zeros(len(ids), 2)}

    def seen():
        read.forget()
        inputs = read(rows)
        assert inputs.known == 0
        return inputs.pictures[0][inputs.index[:, 0]].reshape(-1, *SHAPE)

    for first in (10, 40):
        table.clear()
        pages = [np.full(SHAPE, first + k, np.uint8) for k in range(3)]
        for k, page in enumerate(pages):
            table.intern(k, lambda page=page: {"picture": page})
        for _ in range(3):
            shown = seen()
            np.testing.assert_array_equal(shown, np.stack(pages)[ids] / np.float32(255))
    assert decoded == [3, 3]
    assert read.nbytes > 3 * 72 * 4


def learned(updates=2, threads=1):
    """A policy's parameters after some updates of the compiled engine."""
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002 - the stream that minibatches are drawn from
    algo = PpoConfig(num_envs=6, n_steps=16, batch_size=32, n_epochs=2, engine=Engine.compiled)
    hardware = Hardware("cpu", threads=threads)
    run = RunConfig(Toy(), MlpAgent(), algo, MemoryProfile(), None, hardware=hardware)
    vec_env = run.env.make_vec(algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = algo.build(run, vec_env)
    for _ in range(updates):
        learner.iterate(no_meter)
    return learner.policy.state_dict()


def test_floats_are_read_where_the_rollout_keeps_them_with_the_same_result(monkeypatch):
    gathered = []
    gather = RolloutBuffer.gathered
    monkeypatch.setattr(
        RolloutBuffer, "gathered", lambda self, *of: gathered.append(of[0]) or gather(self, *of)
    )
    there = learned()
    read_there = set(gathered)
    monkeypatch.setattr(DrawnRows, "stored", lambda self, name: None)
    copied = learned()

    assert all(torch.equal(there[name], copied[name]) for name in there)
    assert "speed" in gathered
    assert "speed" not in read_there


def test_torch_keeps_to_one_thread_beside_the_threads_of_the_engine(monkeypatch):
    """Its own would spin where those work, unless a command has told libgomp not to."""
    before, seen = torch.get_num_threads(), []
    learn = CompiledPerceptron.learn

    def watched(self, *given):
        seen.append(torch.get_num_threads())
        return learn(self, *given)

    monkeypatch.setattr(CompiledPerceptron, "learn", watched)
    try:
        learned(updates=1, threads=2)
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
