"""The one door to Hydra: `run_jobs` composes conf/, `build_run` makes frozen dataclasses."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import hydra
from hydra import compose
from hydra._internal import utils
from hydra._internal.hydra import Hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from frugal_rl.errors import ConfigError, FrugalError
from frugal_rl.memory.honour import settle
from frugal_rl.run.arguments import FOLDERS, in_our_words
from frugal_rl.run.building import build, build_as
from frugal_rl.run.composing import (
    check_choices,
    check_keys,
    compose_plain,
    composing,
    named_plugins,
    plain,
    typed_values,
    version_base,
    without_hydra,
)
from frugal_rl.run.config import RUN_FIELDS, RunConfig
from frugal_rl.run.fitting import fitting_agent, fitting_words, refuse_without_overlay
from frugal_rl.run.honouring import honouring
from frugal_rl.run.past_hydra import Refused, mode_known, past_hydra
from frugal_rl.run.preflight import Command, Job
from frugal_rl.run.search_path import folder, own_choices, searching, typed_folder
from frugal_rl.run.varied import with_other_memory
from frugal_rl.run.zoo.words import translated

__all__ = ["as_yaml", "build", "build_run", "compose_run", "folder", "options", "run_from"]

T = TypeVar("T")


def run_jobs(
    config_name: str, job: Callable[[DictConfig, Job], None], command: Command | None = None
) -> None:
    """Let Hydra compose the command line and call `job` with each configuration.

    Args:
        config_name: the top-level file.
        job: is called with each.
        command: what the same command line composed, where that was done already.

    Raises:
        FrugalError: a single run is refused; in a sweep the other jobs go on.
    """

    def task(cfg: DictConfig) -> None:
        try:
            job(cfg, _present_job(config_name, cfg))
        except FrugalError as error:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                raise
            raise Refused(error) from error

    with past_hydra(utils), mode_known(Hydra, command.mode) if command else nullcontext():
        conf = str(folder("conf"))
        hydra.main(config_path=conf, config_name=config_name, **version_base())(task)()


def _present_job(config_name: str, cfg: DictConfig) -> Job:
    """The job that Hydra is running."""
    known = HydraConfig.get()
    choices, at = dict(known.runtime.choices), Path(str(known.runtime.output_dir))
    launcher = str(choices.get("hydra/launcher"))
    command = Command(config_name, plain(cfg), choices, at, os.environ)
    number = int(known.job.num) if known.mode == RunMode.MULTIRUN else 0
    beside = typed_folder(known.runtime.config_sources)
    return Job(number, launcher != "basic", command, tuple(known.overrides.task), beside)


def sweep_folder(config_name: str, words: Sequence[str]) -> Path:
    """Where the jobs of a sweep will lie."""
    own = [word for word in words if word.startswith("hydra.sweep.dir=")]
    with composing(own):
        cfg = compose(config_name, own, return_hydra_config=True)
        return Path(str(cfg.hydra.sweep.dir))


def composed_command(config_name: str, words: Sequence[str]) -> Command:
    """The command that words compose, before anything of it runs or is written.

    Raises:
        ConfigError: the words compose nothing.
    """
    with composing(words):
        cfg = compose(config_name, list(words), return_hydra_config=True)
        at, choices = Path(str(cfg.hydra.run.dir)), dict(cfg.hydra.runtime.choices)
        mode, notes = cfg.hydra.mode, cfg.hydra.output_subdir is not None
        values = plain(without_hydra(cfg))
        return Command(config_name, values, choices, at, os.environ, mode, notes)


def build_run(cfg: DictConfig) -> RunConfig:
    """The run that a composed configuration describes, checked value by value.

    Raises:
        ConfigError: naming the key, what is wrong with it and what it takes.
    """
    typed: tuple[str, ...] = ()
    values = plain(cfg)
    if HydraConfig.initialized():
        hydra_config = HydraConfig.get()
        typed = tuple(hydra_config.overrides.task)
        chosen = own_choices(hydra_config.runtime.choices)
        config_name = str(hydra_config.job.config_name)
        if fitting_agent(cfg, typed):
            cfg, chosen = compose_plain(config_name, typed)
            values = plain(cfg)
        values["run_dir"] = str(hydra_config.runtime.output_dir)
        values["config_name"], values["choices"] = config_name, chosen
        values["typed_folders"] = [w for w in hydra_config.overrides.hydra if w.startswith(FOLDERS)]
        values["config_dir"] = typed_folder(hydra_config.runtime.config_sources)
    return run_from(values, typed, tuple(values.get("plugins") or ()))


def run_from(
    values: Mapping[str, Any], overrides: Sequence[str] = (), plugins: Sequence[str] = ()
) -> RunConfig:
    """The run in plain values, as a composed configuration or a checkpoint holds them.

    Plugins named inside a checkpoint are not trusted: the caller passes those that the user named.
    """
    refuse_without_overlay(values)
    run_values = {k: v for k, v in values.items() if k in RUN_FIELDS}
    run = build_as(RunConfig, run_values, plugins=plugins)
    resolved = {**values, "plugins": list(plugins)} if "plugins" in values else dict(values)
    composer = functools.partial(_recompose, resolved, tuple(overrides), tuple(plugins))
    run = replace(run, resolved=resolved, overrides=tuple(overrides), composer=composer)
    memory, note = settle(run, overrides, functools.partial(honouring, folder("conf")))
    return replace(run, memory=memory, notes=(note,) if note else ())


def _recompose(
    values: Mapping[str, Any], typed: Sequence[str], plugins: Sequence[str], words: Sequence[str]
) -> RunConfig:
    """The run that other words would be; composed only where more than its memory differs."""
    varied = with_other_memory(values, typed, words, typed_values)
    if varied is None:
        return compose_run(words, str(values.get("config_name", "train")), check=False)
    return run_from(varied, words, plugins)


def compose_run(
    overrides: Sequence[str] = (), config_name: str = "train", check: bool = True
) -> RunConfig:
    """The run that `scripts/train.py <overrides>` would be, without running Hydra's job.

    `check=False` trusts the words, as those that were checked before.
    """
    overrides = translated(in_our_words(overrides))
    with searching(named_plugins(overrides)):
        if check:
            check_choices(overrides)
        try:
            cfg, chosen = compose_plain(config_name, overrides)
        except ConfigError:
            if check:
                check_keys(config_name, overrides)  # says more exactly which
            raise
        values = plain(cfg) | {"choices": chosen, "config_name": config_name}
        return run_from(values, overrides, tuple(values.get("plugins") or ()))


def options(cfg: DictConfig, cls: type[T]) -> T:
    """The options of one command: the dataclass `cls` from the top-level keys of its names."""
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    return build_as(cls, {k: v for k, v in plain(cfg).items() if k in names})


def as_yaml(values: Mapping[str, Any]) -> str:
    """Plain values as YAML."""
    return OmegaConf.to_yaml(OmegaConf.create(dict(values)))


def fitting_agent_of(config_name: str, typed: Sequence[str]) -> list[str]:
    """The word for an overlay's agent, to be added to the words; empty where none is needed."""

    def composed(words: Sequence[str]) -> DictConfig:
        with composing(words):
            return compose(config_name, list(words))

    return fitting_words(typed, composed)
