"""Pictures: a level, the route that the agent took, and what its objective attention looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib.figure import Figure

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.decoder import to_tensors
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.run.evaluate import PolicyPlayer
from nclone.files import file_stem
from nclone.geometry import COLUMNS, HALF_PX, MAP_HEIGHT_PX, MAP_WIDTH_PX, ROWS
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.landmarks import Landmarks
from nclone.spec import SOLID
from nclone.vec_env import NppVecEnv
from npp_rl.networks.network import AttentionNetwork
from npp_rl.networks.objectives import MAX_DOORS

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv
    from nclone.config import NppConfig


@dataclass(frozen=True)
class Episode:
    """One episode on one level.

    track    [T, 2] float64 px, the ninja's places
    weights  [T, tokens] float32, attention averaged over heads; None without an objective head
    won      whether the exit was reached
    """

    marks: Landmarks
    track: np.ndarray
    weights: np.ndarray | None
    won: bool
    exit_tokens: int = 1


def watch(
    policy: FrugalPolicy, config: NppConfig, encoding: Encoding, split: str, place: int
) -> Episode:
    """Play the `place`-th level of a split once, most likely actions, and keep what happened."""
    env = config.make_vec(place + 1, encoding, MemoryProfile(), None, split)
    assert isinstance(env, NppVecEnv)
    env.game.order = "in turn"
    player = PolicyPlayer(policy, True, env.tables)
    network = policy.network
    attends = isinstance(network, AttentionNetwork) and hasattr(network.policy, "attention")
    rows, track, weights, won = env.reset(0), [], [], False
    marks = env.game.marks[env.game.world.level[place]]
    for _ in range(10_000):
        world = env.game.world.worlds[place]
        track.append((float(world["x"]), float(world["y"])))
        if attends:
            one = {name: row[place : place + 1] for name, row in rows.items()}
            with torch.no_grad():
                fields = player.decoder(to_tensors(one, policy.device))
                weights.append(network.attention(fields).mean(-1)[0].numpy(force=True))
        step = env.step(player(rows))
        rows = step.rows
        if step.done[place]:
            assert step.ended is not None
            won = bool(step.ended.stats["success"][step.ended.index == place][0])
            break
    exits = policy.agent.objectives.exit_tokens if attends else 1
    return Episode(marks, np.array(track), np.array(weights) if attends else None, won, exits)


def draw(run: RunConfig, vec_env: VectorEnv, player: Any, folder: Path) -> list[Path]:
    """Write `attention_<group>.png`: an episode on the first evaluation level of each group."""
    if not isinstance(vec_env, NppVecEnv) or not isinstance(player, PolicyPlayer):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for group in dict.fromkeys(vec_env.level_names):
        place = vec_env.level_names.index(group)
        episode = watch(player.policy, vec_env.game.config, vec_env.encoding, "eval", place)
        written.append(folder / f"attention_{file_stem(group)}.png")
        draw_episode(episode, written[-1], group)
    return written


def draw_episode(episode: Episode, path: Path, title: str = "") -> None:
    """Write a PNG: tiles, mines, objectives with their mean attention, and the route taken."""
    figure = Figure(figsize=(11, 6.25), layout="constrained")
    axes = figure.add_subplot()
    marks = episode.marks
    axes.imshow(
        _solid_share(marks.tiles),
        cmap="Greys",
        extent=(0, MAP_WIDTH_PX, MAP_HEIGHT_PX, 0),
        vmin=0,
        vmax=1.6,
    )
    if len(marks.mines_xy):
        deadly = marks.mines_deadly
        for chosen, colour, name in (
            (deadly, "tab:red", "mine"),
            (~deadly, "tab:pink", "toggle mine"),
        ):
            if chosen.any():
                axes.plot(*marks.mines_xy[chosen].T, "o", color=colour, markersize=3, label=name)
    if len(episode.track):
        axes.plot(*episode.track.T, color="tab:blue", linewidth=1.2, label="route of the ninja")
        axes.plot(*episode.track[0], "o", color="tab:blue", markersize=6)
    for place, name, share in _objectives(episode):
        axes.plot(*place, "s", color="tab:green", markersize=6 + 14 * share)
        axes.annotate(
            f"{name} {share:.2f}" if episode.weights is not None else name,
            place,
            xytext=(6, -8),
            textcoords="offset points",
            fontsize=9,
        )
    outcome = "won" if episode.won else "not won"
    axes.set_title(f"{title} ({outcome}, {len(episode.track)} steps)")
    axes.set_xlabel("x, px")
    axes.set_ylabel("y, px")
    axes.legend(loc="upper right", fontsize=8)
    with finished_or_absent(path) as unfinished:
        figure.savefig(unfinished, dpi=110)


def _solid_share(tiles: np.ndarray) -> np.ndarray:
    """[50, 88] share of solid pixels of every 12 px sub-cell."""
    known = np.where(tiles < len(SOLID), tiles, 0)
    return SOLID[known].transpose(0, 2, 1, 3).reshape(2 * ROWS, 2 * COLUMNS) / HALF_PX**2


def _objectives(episode: Episode) -> Sequence[tuple[tuple[float, float], str, float]]:
    """Place, name and mean attention of each objective; one exit token counts for both places."""
    goals, weights = episode.marks.goals, episode.weights
    mean = None if weights is None or not len(weights) else weights.mean(axis=0)
    tokens = {EXIT_SWITCH: 0, EXIT_DOOR: episode.exit_tokens - 1}
    named = {EXIT_SWITCH: "exit switch", EXIT_DOOR: "exit door"}
    for door in range(MAX_DOORS):
        tokens[3 + 2 * door], tokens[2 + 2 * door] = (
            episode.exit_tokens + door,
            episode.exit_tokens + MAX_DOORS + door,
        )
        named[3 + 2 * door], named[2 + 2 * door] = f"door {door + 1}", f"switch {door + 1}"
    return [
        (place, named[goal], 0.0 if mean is None else float(mean[tokens[goal]]))
        for goal, place in goals.items()
    ]
