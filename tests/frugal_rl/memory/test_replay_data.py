"""Plans of replays by what was seen: in random play, in the last run of an algorithm."""

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory import once, replay_data
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.facts import Facts, replay_on_disk
from frugal_rl.memory.part import Confidence
from frugal_rl.memory.replay import ReplayNetworks, replay_parts
from frugal_rl.memory.replay_data import (
    LAST_RUN,
    RANDOM_PLAY,
    REACH,
    Data,
    RowSeen,
    Seen,
    expected,
    keep_run,
    look_at_play,
    shares_of,
)
from frugal_rl.memory.replay_file import file_bytes, saved_arrays
from frugal_rl.memory.rules_bytes import checkpoints_on_disk
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.run import play_replay
from frugal_rl.run.compose import compose_run
from frugal_rl.run.segments import Segments
from frugal_rl.store.replay import DictReplayBuffer
from frugal_rl.store.seen import seen_in
from frugal_rl.testing.quiet_runs import quiet_run

SPEC = ObservationSpec(
    (
        Stored("speed", (3,), np.float32, -1, 1),
        Stored("door", (1,), np.uint8, 0, 1),
        Stored("frame", (60, 40), np.uint8, 0, 255),
    )
)
LIMIT = 40


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch, tmp_path):
    monkeypatch.setattr(remembered, "folder", lambda: tmp_path / "kept")
    monkeypatch.setattr(once, "failed", set())


def run_of(total, num_envs):
    encoding, action = Encoding.choose(SPEC), spaces.Discrete(3)
    return SimpleNamespace(
        encoding=lambda: encoding,
        env=SimpleNamespace(episode_steps=LIMIT, action_space=lambda: action),
        algo=SimpleNamespace(num_envs=num_envs, total_steps=total, n_steps=1, train_freq=1),
        memory=SimpleNamespace(rollout_location=RolloutLocation.ram),
        checkpoint_every_steps=0,
        evaluation=SimpleNamespace(every_steps=0),
        keep_checkpoints=3,
    )


def played(run, size, ending):
    """A replay of episodes that end by themselves with a chance of `ending`, or at the limit.

    The last step ends none: what it led to lies beside nothing yet. An eighth of each frame is new
    in each step; the door is open in every second one.
    """
    n, dice = run.algo.num_envs, np.random.default_rng(5)
    space = {r.name: spaces.Box(0, 255, (r.nbytes,), np.uint8) for r in run.encoding().rows}
    replay = DictReplayBuffer(size, spaces.Dict(space), spaces.Discrete(3), "cpu", n_envs=n)
    frame, age = dice.integers(0, 256, (n, 2400), dtype=np.uint8), np.zeros(n, int)

    def shown():
        speed = dice.integers(0, 256, (n, 12), dtype=np.uint8)
        return {"speed": speed, "door": np.uint8(age % 2)[:, None], "frame": frame.copy()}

    now = shown()
    steps = run.algo.total_steps // n
    for step in range(steps):
        age += 1
        frame[:, :300] = dice.integers(0, 256, (n, 300))
        then, limit = shown(), (age == LIMIT) & (step < steps - 1)
        done = limit | ((dice.random(n) < ending) & (step < steps - 1))
        age[done] = 0
        replay.store(now, then, dice.integers(0, 3, n), dice.random(n), done, limit)
        now = shown() if done.any() else then
        for name, rows in now.items():
            rows[~done] = then[name][~done]
    return replay


@pytest.mark.parametrize("ending", [0.0, 0.01, 0.2])
@pytest.mark.parametrize(("total", "num_envs", "size"), [(6_000, 3, 90_000), (6_000, 4, 2_500)])
def test_a_file_is_planned_by_what_was_seen_in_a_replay(ending, total, num_envs, size, tmp_path):
    run = run_of(total, num_envs)
    replay, written = played(run, size, ending), Segments(tmp_path)
    file = written.path(written.save({"replay": [replay.state()]}).number).stat().st_size
    seen = seen_in(replay)
    keep_run(run, seen)

    data = expected(run, LIMIT, LIMIT)

    assert file_bytes(run, size, data) == pytest.approx(file, rel=0.01)
    assert data.source == LAST_RUN
    assert seen.limits < seen.ends or not ending


@pytest.mark.parametrize("ending", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("size", [90_000, 2_500])
def test_arrays_of_a_file_are_those_that_were_seen(ending, size, tmp_path):
    run = run_of(4_200, 4)
    replay, written = played(run, size, ending), Segments(tmp_path)
    written.save({"replay": [replay.state()]})
    keep_run(run, seen_in(replay))

    arrays = saved_arrays(run, size, expected(run, LIMIT, LIMIT), 1_050)

    planned, sizes = {a.name: a for a in arrays}, written._index(1)["sizes"]
    regions = ("chunks", "pool.bytes")
    assert {n: s for n, s in sizes.items() if not n.endswith(regions)} == {
        n: a.nbytes for n, a in planned.items() if not n.endswith(regions)
    }
    dones, timeouts = (planned[f"state.replay.0.{name}"] for name in ("_dones", "_timeouts"))
    assert (timeouts.filled > 0) == bool(replay._timeouts.any())
    same = np.array_equal(replay._timeouts, replay._dones)
    assert (timeouts.shared == dones.shared) == same


def test_a_replay_tells_how_its_rows_were_kept():
    run = run_of(6_000, 3)
    replay = played(run, 90_000, 0.02)
    seen, frame = seen_in(replay), replay.columns["frame"].column.rows

    assert (seen.steps, seen.num_envs) == (2_000, 3)
    assert seen.ends == np.count_nonzero(replay.dones)
    assert seen.limits == np.count_nonzero(replay.timeouts)
    assert seen.rows["frame"].record_bytes == pytest.approx(frame.pool.nbytes / 6_000, rel=0.01)
    assert (seen.rows["frame"].beside, seen.rows["speed"].beside) == (0, 1)  # one goes on as it was
    assert 0.2 < seen.rows["door"].beside < 0.7  # it is the same again after half of the ends
    assert seen.rows["frame"].anchors == pytest.approx(1 / 62)  # 63 chains, two for 32 each


def test_a_seen_row_is_planned_in_memory_by_what_it_took():
    run = run_of(6_000, 3)
    run.algo.batch_size = 10
    networks = ReplayNetworks(0, 0, 0.0, 0.0)
    replay = played(run, 6_000, 0.0)
    held = {name: size for name, size in replay.parts().items() if name.startswith("replay/frame")}
    keep_run(run, seen_in(replay))

    (part,) = [p for p in replay_parts(run, 6_000, networks) if p.name == "replay: frame"]

    assert part.ram_bytes == pytest.approx(sum(held.values()), rel=0.03)
    assert part.confidence is Confidence.probed
    assert LAST_RUN in part.formula


ROWS = {"frame": RowSeen(100.0, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("seen", "limit", "shares"),
    [
        (Seen(1_000, 2, 20, 5, ROWS), None, (0.01, 0.25)),  # no limit is stated
        (Seen(1_000, 2, 20, 5, ROWS), 500, (0.01, 0.25)),  # twice through it: as it was
        (Seen(300, 2, 0, 0, ROWS), 500, (1 / 500, 1.0)),  # too short to see it
        (Seen(1_140, 2, 4, 4, ROWS), 500, (1 / 500, 1.0)),  # nothing else ends them
        (Seen(300, 2, 6, 0, ROWS), 1, (1.0, 0.99)),
        (Seen(300, 2, 6, 0, ROWS), 500, (0.01 / (1 - 0.99**500), 0.99**500)),
    ],
)
def test_how_often_episodes_end_follows_from_what_was_seen_of_them(seen, limit, shares):
    if limit == 1:
        seen = replace(seen, steps=1, num_envs=600)
    assert shares_of(seen, limit) == pytest.approx(shares)


def test_nothing_seen_means_episodes_of_full_length_that_a_limit_ends():
    run = run_of(6_000, 3)

    assert expected(run, LIMIT, LIMIT) == Data(1 / LIMIT, limits=1.0)
    assert expected(run, 17, LIMIT) == Data(1 / 17, limits=0.0)
    assert expected(run, None, None) == Data(0.0)


def test_a_run_tells_of_replays_that_are_not_much_larger_than_its_own():
    run = run_of(6_000, 3)
    long = SimpleNamespace(**vars(run) | {"algo": run_of(60_003, 3).algo})
    assert long.algo.total_steps > REACH * 6_000
    seen = Seen(2_000, 3, 100, 0, ROWS)
    remembered.write(replay_data._play_name(run), asdict(replace(seen, ends=300)))
    keep_run(run, seen)

    for planned, source, ends in ((run, LAST_RUN, 1 / 60), (long, RANDOM_PLAY, 1 / 20)):
        data = expected(planned, LIMIT, LIMIT)
        assert (data.source, data.ends) == (source, pytest.approx(ends))


def test_a_run_that_held_next_to_nothing_is_not_remembered():
    run = run_of(100, 1)

    keep_run(run, Seen(255, 1, 3, 0, ROWS))

    assert expected(run, LIMIT, LIMIT).source == ""


def test_an_environment_is_played_once(monkeypatch):
    asked, seen = [], asdict(Seen(2_000, 4, 100, 0, ROWS))
    monkeypatch.setattr(
        once, "ask_child", lambda *words: asked.append(words) or json.loads(json.dumps(seen))
    )
    run = compose_run(["env=toy", "algo=dqn", "algo.buffer_size=700", "algo.total_steps=900"])
    before = replay_on_disk(run)

    look_at_play(run)
    look_at_play(run)
    look_at_play(compose_run(["env=toy"]))  # has no replay

    told = replay_on_disk(run)
    assert len(asked) == 1
    assert (before["replay_seen"], told["replay_seen"]) == ("", RANDOM_PLAY)
    assert told["replay_file_bytes"] != before["replay_file_bytes"]


def test_an_environment_that_cannot_be_played_is_planned_without_it_and_asked_once(
    monkeypatch, capsys
):
    asked = []

    def fails(*question):
        asked.append(question)
        raise ConfigError("Playing at random ends without an answer.")

    monkeypatch.setattr(once, "ask_child", fails)
    run = compose_run(["env=toy", "algo=dqn", "algo.buffer_size=700", "algo.total_steps=900"])
    look_at_play(run)
    look_at_play(run)

    assert len(asked) == 1
    assert "without an answer. The plan goes without it." in capsys.readouterr().err
    assert replay_on_disk(run)["replay_seen"] == ""


def test_random_play_shows_ends_limits_and_rows(monkeypatch):
    monkeypatch.setattr(play_replay, "STEPS", 150)
    run = compose_run(["env=toy", "algo=dqn", "algo.num_envs=7"])

    seen = play_replay.play(run)

    assert (seen.steps, seen.num_envs) == (150, play_replay.ENVS)
    assert 0 < seen.limits < seen.ends < 150
    assert seen.rows.keys() >= {"position", "trail"}
    assert Seen.of_json(json.loads(json.dumps(asdict(seen)))) == seen


def test_a_check_says_where_a_replay_was_seen():
    facts = Facts(free_disk_bytes=1 << 30, replay_file_bytes=1 << 20, replay_seen=LAST_RUN)

    found = checkpoints_on_disk(facts)

    assert "1.0 MiB of replay (as in the last run; at most" in found.message


@pytest.mark.slow  # trains
def test_a_run_remembers_what_its_replay_held(tmp_path):
    sizes = "algo.buffer_size=5000 algo.total_steps=300 algo.n_steps=20 algo.num_envs=3"
    words = (*f"env=toy algo=dqn {sizes}".split(), "evaluation.episodes=0", "tracking=disabled")
    before = replay_on_disk(compose_run(list(words)))

    quiet_run(words, tmp_path / "run")

    after = replay_on_disk(compose_run(list(words)))
    files = sum(f.stat().st_size for f in (tmp_path / "run/checkpoints/replay").iterdir())
    assert (before["replay_seen"], after["replay_seen"]) == ("", LAST_RUN)
    assert after["replay_file_bytes"] == pytest.approx(files, rel=0.02)
