"""Offline data: Minari data sets into a replay and out of it, one episode at a time.

Needs `pip install 'frugal-rl[offline]'`. Imports torch, as the replay does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import DataError
from frugal_rl.store.episodes import EpisodeWriter, minari_part
from frugal_rl.store.replay import DictReplayBuffer, ReplayBuffer
from frugal_rl.untrusted.files import read_text, refuse_irregular
from frugal_rl.untrusted.hdf5 import check_hdf5
from frugal_rl.untrusted.nested import parse_json
from frugal_rl.untrusted.odd import refused
from frugal_rl.untrusted.printing import printable, shown

LEAST_BYTES = 2
"""Of a step in a data set: its reward, and whether it was the last."""


def read_dataset(source: str | Path, **options: Any) -> ReplayBuffer:
    """A replay of all transitions of a Minari data set: its folder of files, or its id.

    Actions in a bounded box are scaled to [-1, 1], as SB3's algorithms keep them.

    Args:
        source: a folder that Minari or `write_dataset` wrote, or the id of a data set that
            `minari download` fetched.
        options: as in `ReplayBuffer`.

    Raises:
        ConfigError: Minari is not installed.
        DataError: the data set cannot be read, its episodes do not fit its spaces, or one of their
            numbers is not finite.
    """
    package = minari_part("minari")
    with _told(source, "is no Minari data set that can be read"):
        if Path(source).is_dir():
            held = _check_files(Path(source))
            data = package.MinariDataset(Path(source))
        else:
            held, data = None, package.load_dataset(str(source))
        space, actions, steps = data.observation_space, data.action_space, int(data.total_steps)
        if held is not None and steps * LEAST_BYTES > held:
            raise DataError(f"{shown(Path(source))} counts {steps:,} steps in {held:,} bytes.")
    single = not isinstance(space, spaces.Dict)
    kind = ReplayBuffer if single else DictReplayBuffer
    with _told(source, "cannot be kept in such a replay"):
        replay = kind(steps, space, actions, **{"device": "cpu", **options})
    with _told(source, "holds an episode that does not fit the spaces of its data set"):
        for episode in data.iterate_episodes():
            _check_episode(episode)
            _add_episode(replay, episode, single)
    if replay.count != steps:
        raise DataError(
            f"{shown(Path(source))} counts {steps:,} steps, its episodes have {replay.count:,}."
        )
    return replay


def write_dataset(replay: ReplayBuffer, folder: str | Path, name: str) -> int:
    """Write a replay as a Minari data set of this id into `folder`; returns its episodes.

    What a ring has overwritten is gone: an episode begins where it is still held. One that has
    not ended is written as cut off.

    Raises:
        ConfigError: Minari is not installed.
        DataError: the folder holds something already.
    """
    writer = EpisodeWriter(folder, name, replay.observation_space, replay.action_space)
    for episode in _episodes(replay):
        writer.storage.update_episodes([episode])
    return writer.episodes


def _told(source: str | Path, what: str) -> AbstractContextManager[None]:
    """Whatever a stranger's files run Minari and its readers into becomes one line."""

    def refusal(error: Exception) -> DataError:
        why = printable(f"{type(error).__name__}: {error}")
        return DataError(f"{shown(Path(source))} {what} ({why}).")

    return refused(refusal, Exception)


def _check_files(folder: Path) -> int | None:
    """Look at a data set's folder before Minari opens it; the bytes of its arrays.

    None where their files are of another kind than HDF5.
    """
    held = None
    for file in sorted(folder.rglob("*")):
        if file.is_dir():
            continue
        refuse_irregular(file)
        if file.suffix == ".json":
            parse_json(read_text(file))
        elif file.suffix == ".hdf5":
            held = (held or 0) + check_hdf5(file)
    return held


def _check_episode(episode: Any) -> None:
    """Refuse an episode whose parts differ in length, and numbers that are none."""
    parts = (episode.rewards, episode.terminations, episode.truncations, *_leaves(episode.actions))
    lengths = {len(part) for part in parts}
    lengths |= {len(part) - 1 for part in _leaves(episode.observations)}
    if len(lengths) != 1:
        raise DataError(f"Episode {episode.id} has parts of {sorted(lengths)} steps.")
    for part in (*parts, *_leaves(episode.observations)):
        numbers = np.asarray(part)
        if numbers.dtype.kind in "fc" and not np.isfinite(numbers).all():
            raise DataError(f"Episode {episode.id} holds a number that is not finite.")


def _leaves(values: Any) -> Iterator[Any]:
    """The arrays of values that may be a mapping or a tuple of them."""
    if isinstance(values, Mapping | tuple):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from _leaves(value)
    else:
        yield values


def _add_episode(replay: ReplayBuffer, episode: Any, single: bool) -> None:
    """All steps of one episode; nothing of it is kept but what the replay keeps."""
    ended = np.asarray(episode.terminations, bool)
    limits = np.asarray(episode.truncations, bool) & ~ended
    actions = _scaled(np.asarray(episode.actions), replay.action_space)
    seen = episode.observations
    for t in range(len(episode.rewards)):
        now, then = (
            seen[at : at + 1] if single else {n: v[at : at + 1] for n, v in seen.items()}
            for at in (t, t + 1)
        )
        done = (ended | limits)[t : t + 1]
        reward = np.asarray(episode.rewards[t : t + 1])
        replay.store(now, then, actions[t : t + 1], reward, done, limits[t : t + 1])


def _scaled(actions: np.ndarray, space: spaces.Space[Any]) -> np.ndarray:
    if not isinstance(space, spaces.Box) or not space.is_bounded():
        return actions
    scaled: np.ndarray = 2.0 * (actions - space.low) / (space.high - space.low) - 1.0
    return scaled


def _in_units(actions: np.ndarray, space: spaces.Space[Any]) -> np.ndarray:
    if isinstance(space, spaces.Box) and space.is_bounded():
        units = space.low + 0.5 * (actions + 1.0) * (space.high - space.low)
        actions = units.astype(space.dtype)
    return actions.reshape(len(actions), *(space.shape or ()))


def _episodes(replay: ReplayBuffer) -> Iterator[Any]:
    """What is held, environment by environment, cut where episodes ended."""
    buffer = minari_part("minari.data_collector").EpisodeBuffer
    size, count = replay.size(), replay.count
    places = np.arange(count - size, count) % replay.buffer_size
    for n in range(replay.n_envs):
        ends = np.flatnonzero(replay.dones[places, n])
        begins = [0, *(int(end) + 1 for end in ends)]
        for begin, end in zip(begins, [*begins[1:], size], strict=True):
            if begin < end:
                yield _episode(buffer, replay, places[begin:end], n)


def _episode(buffer: Any, replay: ReplayBuffer, places: np.ndarray, n: int) -> Any:
    at = places, np.full(len(places), n)
    done, limits = replay.dones[at].astype(bool), replay.timeouts[at].astype(bool)
    limits[-1] |= not done[-1]
    return buffer(
        observations=_with_last(replay.observations, replay.next_observations, at, replay),
        actions=_in_units(replay.actions[at], replay.action_space),
        rewards=list(replay.rewards[at]),
        terminations=list(done & ~limits),
        truncations=list(limits),
    )


def _with_last(now: Any, then: Any, at: Any, replay: ReplayBuffer) -> Any:
    """Observations [T + 1, ...] of an episode, in the shapes of the space."""
    space = replay.observation_space
    if isinstance(space, spaces.Dict):
        assert isinstance(now, Mapping)
        return {name: _joined(now[name], then[name], at, space[name]) for name in now}
    return _joined(now, then, at, space)


def _joined(now: Any, then: Any, at: Any, space: spaces.Space[Any]) -> np.ndarray:
    last = tuple(x[-1:] for x in at)
    rows = np.concatenate([now[at], then[last]])
    return rows.reshape(len(rows), *(space.shape or ()))
