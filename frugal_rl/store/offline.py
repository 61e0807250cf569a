"""Offline data: Minari data sets into a replay and out of it, one episode at a time.

Needs `pip install 'frugal-rl[offline]'`. Imports torch, as the replay does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import DataError
from frugal_rl.store.episodes import EpisodeWriter, minari_part
from frugal_rl.store.replay import DictReplayBuffer, ReplayBuffer


def read_dataset(source: str | Path, **options: Any) -> ReplayBuffer:
    """A replay of all transitions of a Minari data set: its folder of files, or its id.

    Actions in a bounded box are scaled to [-1, 1], as SB3's algorithms keep them.

    Args:
        source: a folder that Minari or `write_dataset` wrote, or the id of a data set that
            `minari download` fetched.
        options: as in `ReplayBuffer`.

    Raises:
        ConfigError: Minari is not installed.
        DataError: the data set cannot be read, or its episodes do not fit its spaces.
    """
    data = _opened(source)
    space, actions = data.observation_space, data.action_space
    single = not isinstance(space, spaces.Dict)
    kind = ReplayBuffer if single else DictReplayBuffer
    replay = kind(int(data.total_steps), space, actions, **{"device": "cpu", **options})
    for episode in data.iterate_episodes():
        try:
            _add_episode(replay, episode, single)
        except (LookupError, TypeError, ValueError) as error:
            raise DataError(
                f"{source}: episode {episode.id} does not fit the spaces of its data set ({error})."
            ) from error
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


def _opened(source: str | Path) -> Any:
    package = minari_part("minari")
    try:
        if Path(source).is_dir():
            return package.MinariDataset(Path(source))
        return package.load_dataset(str(source))
    except (OSError, LookupError, ValueError, AttributeError) as error:
        raise DataError(f"{source} is no Minari data set that can be read ({error}).") from error


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
