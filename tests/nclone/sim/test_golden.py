"""The simulator against recordings of the reference: a thinned set here, the whole set beside."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import nclone

THINNED = Path(__file__).resolve().parents[2] / "data" / "nclone" / "golden.npz"
STRIDE = 16
TOLERANCE_PX = 1e-9


def thinned_recordings():
    stored = np.load(THINNED)
    arrays = {key: stored[key] for key in stored.files}
    at = dict.fromkeys(("map", "actions", "f", "ep", "mov"), 0)

    def take(key, count):
        at[key] += count
        return arrays[key][at[key] - count : at[key]]

    for entry in json.loads(str(arrays["_meta"])):
        frames = entry["frames"]
        kept = np.unique(np.append(np.arange(0, frames + 1, STRIDE), frames))
        yield {
            "name": entry["name"],
            "digest": entry["digest"],
            "kept": kept,
            "map": take("map", entry["map"]).tobytes(),
            "actions": take("actions", frames),
            "f": take("f", 4 * len(kept)).reshape(4, -1),
            "mov": take("mov", entry["mov"]),
            "ep": take("ep", 2 * entry["mov"] * len(kept)).reshape(entry["mov"], 2, len(kept)),
        }


def integers_digest(trajectory):
    digest = hashlib.blake2b(digest_size=16)
    for array in (trajectory.i, trajectory.gold, trajectory.es):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def entity_paths(level, trajectory, rows):
    """[V, 2, T + 1] paths of `rows`: recorded, or the place of what never moved."""
    path = np.repeat(level.entities[rows, 1:3, None], trajectory.f.shape[1], axis=2)
    for v, row in enumerate(rows):
        if row in trajectory.mov:
            path[v] = trajectory.ep[list(trajectory.mov).index(row)]
    return path


@pytest.fixture(scope="module")
def replayed():
    played = []
    for recording in thinned_recordings():
        level = nclone.load_level(recording["map"])
        actions = recording["actions"]
        hor = np.array([0, -1, 1])[actions % 3]
        played.append((recording, level, nclone.simulate(level, hor, actions // 3)))
    return played


def test_the_set_holds_all_340_development_trajectories(replayed):
    assert len(replayed) == 340


def test_positions_and_velocities_match_the_recordings(replayed):
    wrong = {
        recording["name"]: error
        for recording, _, got in replayed
        if not (error := np.abs(got.f[:, recording["kept"]] - recording["f"]).max()) < TOLERANCE_PX
    }
    assert wrong == {}


def test_states_flags_gold_and_entity_states_are_equal_on_every_frame(replayed):
    wrong = [r["name"] for r, _, got in replayed if integers_digest(got) != r["digest"]]
    assert wrong == []


def test_moving_entities_are_where_they_were_recorded(replayed):
    wrong = []
    for recording, level, got in replayed:
        path = entity_paths(level, got, recording["mov"])[:, :, recording["kept"]]
        error = np.abs(path - recording["ep"]).max(initial=0.0)
        if not error < TOLERANCE_PX:
            wrong.append((recording["name"], error))
    assert wrong == []


@pytest.mark.slow
def test_every_frame_of_the_full_set_matches(shared_data):
    wrong = []
    count = 0
    for path in sorted((shared_data / "nclone" / "golden_dev").glob("*.npz")):
        stored = np.load(path)
        for entry in json.loads(str(stored["_meta"])):
            name, count = entry["name"], count + 1
            profile = "plain" if f"{name}/plain_f" in stored else "ref"
            want = {k: stored[f"{name}/{profile}_{k}"] for k in ("f", "i", "gold", "es", "ep")}
            frames = want["f"].shape[1] - 1
            level = nclone.load_level(stored[f"{name}/map"])
            hor, jump = stored[f"{name}/hor"][:frames], stored[f"{name}/jump"][:frames]
            got = nclone.simulate(level, hor, jump)
            paths = entity_paths(level, got, stored[f"{name}/mov"])
            exact = all(
                getattr(got, key).dtype == want[key].dtype
                and np.array_equal(getattr(got, key), want[key])
                for key in ("i", "gold", "es")
            )
            close = np.abs(got.f - want["f"]).max() < TOLERANCE_PX
            entities = np.abs(paths - want["ep"]).max(initial=0.0) < TOLERANCE_PX
            table = np.array_equal(level.entities, stored[f"{name}/ent"])
            if not (exact and close and entities and table):
                wrong.append(name)
    assert (count, wrong) == (340, [])
