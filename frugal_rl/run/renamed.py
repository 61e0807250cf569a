"""Names that moved or came: what older checkpoints, run folders and command lines mean today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MODULES = {
    "fighting.game_boy": "fighting.cartridge.config",
    "fighting.self_play": "fighting.opponents.self_play",
    "frugal_rl.building": "frugal_rl.run.building",
    "frugal_rl.config": "frugal_rl.run.compose",
    "frugal_rl.observation.arena": "frugal_rl.observation.growing_array",
    "frugal_rl.observation.codecs": "frugal_rl.observation.codecs.codec",
    "frugal_rl.observation.codecs.dense": "frugal_rl.observation.codecs.codec",
    "frugal_rl.observation.edge": "frugal_rl.observation.encoder",
    "frugal_rl.observation.narrow": "frugal_rl.observation.codecs.quantised",
    "frugal_rl.observation.packed": "frugal_rl.observation.codecs.packed",
    "frugal_rl.observation.pooled": "frugal_rl.observation.codecs.pooled",
    "frugal_rl.observation.repeated": "frugal_rl.observation.repeated_rows",
    "frugal_rl.play": "frugal_rl.run.play",
    "frugal_rl.rollout.buffer": "frugal_rl.store.rollout",
    "frugal_rl.rollout.columns": "frugal_rl.store.columns",
    "frugal_rl.rollout.delta": "frugal_rl.store.delta",
    "frugal_rl.rollout.dense": "frugal_rl.store.dense",
    "frugal_rl.rollout.device": "frugal_rl.store.device",
    "frugal_rl.rollout.kernels": "frugal_rl.store.kernels",
    "frugal_rl.rollout.layout": "frugal_rl.store.layout",
    "frugal_rl.rollout.merged": "frugal_rl.store.merged",
    "frugal_rl.rollout.pixels": "frugal_rl.store.pixels",
    "frugal_rl.rollout.pool": "frugal_rl.store.pool",
    "frugal_rl.rollout.ragged": "frugal_rl.store.ragged",
    "frugal_rl.rollout.trajectories": "frugal_rl.store.trajectories",
    "frugal_rl.run": "frugal_rl.run.config",
    "frugal_rl.train.actions": "frugal_rl.learn.actions",
    "frugal_rl.train.checkpoints": "frugal_rl.run.checkpoints",
    "frugal_rl.train.collect": "frugal_rl.learn.collect",
    "frugal_rl.train.decoder": "frugal_rl.observation.decoder",
    "frugal_rl.train.digest": "frugal_rl.run.digest",
    "frugal_rl.train.dry_run": "frugal_rl.run.dry_run",
    "frugal_rl.train.episodic": "frugal_rl.learn.episodic",
    "frugal_rl.train.evaluate": "frugal_rl.run.evaluate",
    "frugal_rl.train.identity": "frugal_rl.run.identity",
    "frugal_rl.train.learner": "frugal_rl.learn.learner",
    "frugal_rl.train.mirror": "frugal_rl.observation.mirror",
    "frugal_rl.train.networks": "frugal_rl.learn.networks",
    "frugal_rl.train.optimizer": "frugal_rl.learn.optimizer",
    "frugal_rl.train.policy": "frugal_rl.learn.policy",
    "frugal_rl.train.ppo": "frugal_rl.learn.ppo",
    "frugal_rl.train.probe": "frugal_rl.run.probe",
    "frugal_rl.train.probe_process": "frugal_rl.run.probe_process",
    "frugal_rl.train.probe_rows": "frugal_rl.run.probe_rows",
    "frugal_rl.train.progress": "frugal_rl.run.progress",
    "frugal_rl.train.rewards": "frugal_rl.learn.rewards",
    "frugal_rl.train.saved": "frugal_rl.run.saved",
    "frugal_rl.train.sb3_adapter": "frugal_rl.sb3.adapter",
    "frugal_rl.train.sb3_workers": "frugal_rl.sb3.workers",
    "frugal_rl.train.schedules": "frugal_rl.learn.schedules",
    "frugal_rl.train.session": "frugal_rl.run.session",
    "frugal_rl.train.trainer": "frugal_rl.run.trainer",
    "frugal_rl.train.update": "frugal_rl.learn.update",
    "frugal_rl.train.watch": "frugal_rl.run.watch",
    "mine_rl_npv.codecs": "mine_rl_npv.rules.codecs",
    "mine_rl_npv.incremental": "mine_rl_npv.networks.incremental",
    "mine_rl_npv.layout": "mine_rl_npv.rules.layout",
    "mine_rl_npv.legacy": "mine_rl_npv.before.legacy",
    "mine_rl_npv.macros": "mine_rl_npv.rules.macros",
    "mine_rl_npv.mines": "mine_rl_npv.rules.mines",
    "mine_rl_npv.networks": "mine_rl_npv.networks.columns",
    "mine_rl_npv.precedence": "mine_rl_npv.data.precedence",
    "mine_rl_npv.risk": "mine_rl_npv.tools.risk",
    "mine_rl_npv.rules": "mine_rl_npv.rules.steps",
    "mine_rl_npv.show": "mine_rl_npv.tools.show",
    "mine_rl_npv.solid": "mine_rl_npv.tools.solid",
    "mine_rl_npv.solve": "mine_rl_npv.tools.solve",
    "mine_rl_npv.views": "mine_rl_npv.tools.views",
    "mine_rl_npv.volumes": "mine_rl_npv.rules.volumes",
    "mine_rl_npv.voxels": "mine_rl_npv.networks.voxels",
    "npp_rl.cloned_ppo": "npp_rl.teaching.cloned_ppo",
}
"""Modules by their former dotted names."""

CLASSES = {
    "fighting.rules.Weights": "fighting.choices",
    "fighting.opponents.self_play.SelfPlayConfig": "fighting.opponents.self_play_config",
    "frugal_rl.learn.networks.MlpAgent": "frugal_rl.learn.agents",
    "frugal_rl.learn.networks.NatureCnnAgent": "frugal_rl.learn.agents",
    "frugal_rl.learn.ppo.PpoConfig": "frugal_rl.learn.ppo_config",
    "mine_rl_npv.networks.columns.Column2dAgent": "mine_rl_npv.networks.agents",
    "mine_rl_npv.networks.columns.PointerAgent": "mine_rl_npv.networks.agents",
    "mine_rl_npv.networks.voxels.Cnn3dAgent": "mine_rl_npv.networks.agents",
    "mine_rl_npv.priority.learners.EvolutionAlgo": "mine_rl_npv.priority.config",
    "mine_rl_npv.priority.learners.PriorityAgent": "mine_rl_npv.priority.config",
    "mine_rl_npv.priority.learners.ScheduleGradientAlgo": "mine_rl_npv.priority.config",
    "npp_rl.teaching.cloned_ppo.ClonedPpo": "npp_rl.teaching.config",
}
"""The module of classes that moved while their former module stayed, by their former names."""

VALUES = {
    "agent.observation": {"ways": "routes"},
    "env.obs": {"ways": "routes"},
}
"""Words that an option took formerly, by its dotted key."""

ADDED: dict[str, Any] = {"agent.pixel_mean": 0.0, "algo.overlap": False, "env.pool": []}
"""Options that older checkpoints do not know, by dotted key, and the value that they ran with."""


def current_values(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A saved configuration with the words of today in the place of former ones."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found[name] = current_values(value, f"{key}.")
        else:
            found[name] = VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value
    return found


def module_now(name: str) -> str:
    """The dotted name of a module today."""
    return MODULES.get(name, name)


def current(target: str) -> str:
    """The dotted name "package.module.Class" under which a class is found today."""
    module, _, name = target.rpartition(".")
    module = module_now(module)
    return f"{CLASSES.get(f'{module}.{name}', module)}.{name}"
