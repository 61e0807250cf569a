"""The one door to Hydra: `run_jobs` composes conf/, `build_run` makes frozen dataclasses."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import hydra
from hydra import compose, initialize_config_dir
from hydra._internal import utils
from hydra._internal.hydra import Hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.core.plugins import Plugins
from hydra.errors import ConfigCompositionException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from frugal_rl.errors import ConfigError, FrugalError
from frugal_rl.memory.honour import settle
from frugal_rl.run.arguments import FOLDERS, OPEN, in_our_words
from frugal_rl.run.building import build, build_as
from frugal_rl.run.config import RunConfig
from frugal_rl.run.fitting import fitting_agent, fitting_words, refuse_without_overlay
from frugal_rl.run.honouring import honouring
from frugal_rl.run.mistyped import absent, check_swept, meant, mend, one_only, several_values
from frugal_rl.run.nearness import in_one_line
from frugal_rl.run.own_files import UNREADABLE, fault_in_words
from frugal_rl.run.past_hydra import Refused, mode_known, past_hydra, version_base
from frugal_rl.run.preflight import Command, Job
from frugal_rl.run.search_path import (
    choices,
    folder,
    further,
    groups,
    is_group,
    own_choices,
    searching,
    typed_folder,
)
from frugal_rl.run.zoo.words import translated

__all__ = ["as_yaml", "build", "build_run", "compose_run", "folder", "options", "run_from"]

T = TypeVar("T")
RUN_FIELDS = frozenset(f.name for f in fields(RunConfig)) - {
    "resolved",
    "overrides",
    "notes",
    "composer",
}


class FurtherFolders(SearchPathPlugin):
    """Tells Hydra of the folders beside our own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append them, after what Hydra has itself."""
        for conf in further():
            search_path.append(provider="frugal_rl", path=f"file://{conf}")


Plugins.instance().register(FurtherFolders)


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
    with _composing(own):
        cfg = compose(config_name, own, return_hydra_config=True)
        return Path(str(cfg.hydra.sweep.dir))


def composed_command(config_name: str, words: Sequence[str]) -> Command:
    """The command that words compose, before anything of it runs or is written.

    Raises:
        ConfigError: the words compose nothing.
    """
    with _composing(words):
        cfg = compose(config_name, list(words), return_hydra_config=True)
        at, choices = Path(str(cfg.hydra.run.dir)), dict(cfg.hydra.runtime.choices)
        mode, notes = cfg.hydra.mode, cfg.hydra.output_subdir is not None
        values = plain(_without_hydra(cfg))
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
    """The run that other words would be.

    Where only switches of the memory profile differ, which nothing else is made of, their values
    are put in the place of those that were composed: a tenth of the time.
    """
    made = {f"{group}={choice}" for group, choice in (values.get("choices") or {}).items()}
    new = [word for word in words if word not in typed and word not in made]
    keys = {word.partition("=")[0] for word in new}
    gone = {word.partition("=")[0] for word in typed if word not in words}
    if not all(key.startswith("memory.") for key in keys) or gone - keys:
        return compose_run(words, str(values.get("config_name", "train")), check=False)
    memory = dict(values.get("memory") or {})
    for override in OverridesParser.create().parse_overrides(new):
        memory[str(override.key_or_group).partition(".")[2]] = override.value()
    return run_from({**values, "memory": memory}, words, plugins)


def compose_run(
    overrides: Sequence[str] = (), config_name: str = "train", check: bool = True
) -> RunConfig:
    """The run that `scripts/train.py <overrides>` would be, without running Hydra's job.

    `check=False` trusts the words, as those that were checked before.
    """
    overrides = translated(in_our_words(overrides))
    with searching(named_plugins(overrides)):
        if check:
            check_words(config_name, overrides)
        cfg, chosen = compose_plain(config_name, overrides)
        values = plain(cfg) | {"choices": chosen, "config_name": config_name}
        return run_from(values, overrides, tuple(values.get("plugins") or ()))


def options(cfg: DictConfig, cls: type[T]) -> T:
    """The options of one command: the dataclass `cls` from the top-level keys of its names."""
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    return build_as(cls, {k: v for k, v in plain(cfg).items() if k in names})


def plain(cfg: DictConfig, whole: bool = True) -> dict[str, Any]:
    """The composed configuration as resolved plain values; `whole` refuses one that misses any."""
    try:
        values = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=whole, enum_to_str=True)
    except MissingMandatoryValue as error:
        key = getattr(error, "full_key", None) or "A value"
        raise ConfigError(f"{key} has no value; add {key}=... to the command line.") from error
    except OmegaConfBaseException as error:
        said = in_one_line(str(error))
        raise ConfigError(f"The configuration does not resolve: {said}") from error
    return {str(k): v for k, v in dict(values).items() if k != "hydra"}  # type: ignore[arg-type]


def as_yaml(values: Mapping[str, Any]) -> str:
    """Plain values as YAML."""
    return OmegaConf.to_yaml(OmegaConf.create(dict(values)))


def check_words(config_name: str, overrides: Sequence[str], sweep: bool = True) -> None:
    """Refuse mistyped groups, choices and keys, naming the nearest valid one.

    Args:
        config_name: what is composed.
        overrides: the words.
        sweep: whether a word may name several values, a job for each.

    Raises:
        ConfigError: for the first word that names nothing.
    """
    check_choices(overrides, sweep)
    check_keys(config_name, overrides)


def check_choices(overrides: Sequence[str], sweep: bool = True) -> None:
    """Refuse what can be refused of words without composing them; `sweep` as above.

    Raises:
        ConfigError: for the first word that cannot be read, or chooses what is not there.
    """
    ours = _ours(overrides)
    several = [o for o in ours if o.is_sweep_override()]
    if several and not sweep:
        raise ConfigError(several_values(str(several[0].input_line)))
    for override in several:
        of_choices, word = isinstance(override.value(), Glob), str(override.input_line)
        check_swept(word, override.is_interval_sweep(), of_choices)
    for override in _chosen(ours):
        _check_choice(override)


def check_keys(config_name: str, overrides: Sequence[str]) -> None:
    """Refuse keys that the chosen groups do not have: composes the groups alone.

    Raises:
        ConfigError: for the first, naming the nearest one.
    """
    ours = _ours(overrides)
    chosen = _chosen(ours)
    keys = [o for o in ours if o not in chosen and not (o.is_add() or o.is_delete())]
    if not keys:
        return
    words = [f"{o.key_or_group}={v[0]}" if (v := _values(o)) else o.input_line for o in chosen]
    cfg, _ = compose_plain(config_name, [str(word) for word in words])
    known = set(_dotted(cfg)) | groups()
    for override in keys:
        name = str(override.key_or_group)
        if name not in known and not _inside_free_mapping(cfg, name):
            raise ConfigError(f"{name} is no option; {absent(name, known)}")


def _ours(words: Sequence[str]) -> list[Override]:
    return [o for o in _parsed(words) if not str(o.key_or_group).startswith("hydra")]


def _chosen(ours: Sequence[Override]) -> list[Override]:
    """The words that choose something of a group; one that every run needs is not taken away."""
    for override in ours:
        if override.is_delete() and str(override.key_or_group) in RUN_FIELDS:
            name = override.key_or_group
            raise ConfigError(f"{override.input_line} leaves no {name}; write {name}=CHOICE.")
    return [o for o in ours if is_group(o.key_or_group) and not o.is_delete()]


def _parsed(words: Sequence[str]) -> list[Override]:
    """The words as Hydra reads them.

    Raises:
        ConfigError: for the first that it cannot read.
    """
    parser, parsed = OverridesParser.create(), []
    for word in words:
        try:
            parsed += parser.parse_overrides([word])
        except OverrideParseException as error:
            raise ConfigError(f"{word} cannot be read: {mend(word)}.") from error
    return parsed


def _check_choice(override: Override) -> None:
    group = str(override.key_or_group)
    offered = choices(group)
    if override.is_add() or override.is_force_add():
        word = str(override.input_line)
        raise ConfigError(f"{word} adds what there is already; write {word.lstrip('+')}.")
    for value in _values(override):
        if isinstance(value, list) and group in RUN_FIELDS:
            raise ConfigError(one_only(str(override.input_line), group, value))
        names = value if isinstance(value, list) else [value]
        for name in (n for n in names if n is not None and str(n) not in offered):
            raise ConfigError(f"{group}={name} is no choice; {meant(group, str(name), offered)}")


def _values(override: Override) -> list[Any]:
    value = override.value()
    if isinstance(value, Glob):
        return list(value.filter(sorted(choices(str(override.key_or_group)))))
    if override.is_sweep_override():
        return list(override.sweep_iterator()) if not override.is_range_sweep() else []
    return [override.value()]


def _dotted(node: Any, prefix: str = "") -> Iterator[str]:
    if OmegaConf.is_dict(node):
        for key in node:
            name = f"{prefix}{key}"
            yield name
            if not OmegaConf.is_missing(node, key) and not OmegaConf.is_interpolation(node, key):
                yield from _dotted(node._get_node(key), f"{name}.")


def _inside_free_mapping(cfg: DictConfig, name: str) -> bool:
    """Whether an item (`levels.0`) or a keyword of somebody else's (`env.kwargs.x`) is meant."""
    parent = OmegaConf.select(cfg, name.rpartition(".")[0]) if "." in name else None
    return OmegaConf.is_list(parent) or (name.startswith(OPEN) and OmegaConf.is_dict(parent))


@contextmanager
def _composing(words: Sequence[str]) -> Iterator[None]:
    """Compose inside the block; what cannot be is told with the user's file that it lies in."""
    opened: Any = nullcontext()
    if not GlobalHydra.instance().is_initialized():  # inside a job its search path is used
        opened = initialize_config_dir(str(folder("conf")), **version_base())
    try:
        with opened:
            yield
    except (ConfigCompositionException, OmegaConfBaseException, *UNREADABLE) as error:
        raise ConfigError(fault_in_words(words, str(error))) from error


def compose_plain(config_name: str, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, Any]]:
    """The composed configuration without Hydra's own keys, and the choice of each group."""
    with _composing(overrides):
        fitting = fitting_words(overrides, lambda some: compose(config_name, list(some)))
        words = [*overrides, *fitting]
        cfg = compose(config_name, words, return_hydra_config=True)
    chosen = own_choices(cfg.hydra.runtime.choices)
    return _without_hydra(cfg), chosen


def _without_hydra(cfg: DictConfig) -> DictConfig:
    OmegaConf.set_struct(cfg, False)
    del cfg["hydra"]
    return cfg


def fitting_agent_of(config_name: str, typed: Sequence[str]) -> list[str]:
    """The word for an overlay's agent, to be added to the words; empty where none is needed."""

    def composed(words: Sequence[str]) -> DictConfig:
        with _composing(words):
            return compose(config_name, list(words))

    return fitting_words(typed, composed)


def named_plugins(words: Sequence[str]) -> list[str]:
    """Packages that `plugins=[...]` names among the words of a command line."""
    named: list[str] = []
    for word in words:
        if word.lstrip("+").startswith("plugins="):
            value = _parsed([word])[0].value()
            named += [str(v) for v in (value if isinstance(value, list) else [value])]
    return named
