"""Compositions of `conf/` with words, as plain values, and what is mistyped in the words.

Imports Hydra and little else: `--help` waits for nothing that only a run needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from hydra import __version__, compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.core.plugins import Plugins
from hydra.errors import ConfigCompositionException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf, _utils, basecontainer
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.run.arguments import OPEN
from frugal_rl.run.fitting import fitting_words
from frugal_rl.run.mistyped import absent, check_swept, meant, mend, one_only, several_values
from frugal_rl.run.nearness import in_one_line
from frugal_rl.run.own_files import UNREADABLE, fault_in_words
from frugal_rl.run.past_hydra import parse_by_libyaml
from frugal_rl.run.search_path import choices, folder, further, groups, is_group, own_choices

_RUN = Late("frugal_rl.run.config")


class FurtherFolders(SearchPathPlugin):
    """Tells Hydra of the folders beside our own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append them, after what Hydra has itself."""
        for conf in further():
            search_path.append(provider="frugal_rl", path=f"file://{conf}")


Plugins.instance().register(FurtherFolders)
parse_by_libyaml(_utils, basecontainer)


def version_base() -> dict[str, str]:
    """Hydra 1.3 needs `version_base`; from 1.4 on it is deprecated."""
    major, minor = (int(n) for n in __version__.split(".")[:2])
    return {"version_base": "1.3"} if (major, minor) < (1, 4) else {}


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
    known, names = set(_dotted(cfg)) | groups(), [str(o.key_or_group) for o in keys]
    for name in names:
        if name not in known and not _inside_open(cfg, name, names):
            raise ConfigError(f"{name} is no option; {absent(name, known)}")


def _ours(words: Sequence[str]) -> list[Override]:
    return [o for o in _parsed(words) if not str(o.key_or_group).startswith("hydra")]


def _chosen(ours: Sequence[Override]) -> list[Override]:
    """The words that choose something of a group; one that every run needs is not taken away."""
    for override in ours:
        if override.is_delete() and str(override.key_or_group) in _RUN.RUN_FIELDS:
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
        if isinstance(value, list) and group in _RUN.RUN_FIELDS:
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


def _inside_open(cfg: DictConfig, name: str, named: Collection[str]) -> bool:
    """Whether an item (`levels.0`) or a keyword of somebody else's (`env.kwargs.x`) is meant.

    A list that is itself among the named keys is as long as its word makes it.

    Raises:
        ConfigError: an item that its list does not have.
    """
    above, _, last = name.rpartition(".")
    parent: Any = OmegaConf.select(cfg, above) if above else None
    if not OmegaConf.is_list(parent):
        return name.startswith(OPEN) and OmegaConf.is_dict(parent)
    if above not in named and not (last.isdecimal() and int(last) < len(parent)):
        raise ConfigError(f"{name} is no item: {above} has {len(parent)}; write {above}=[...].")
    return True


@contextmanager
def composing(words: Sequence[str]) -> Iterator[None]:
    """Compose inside the block; what cannot be is told with the user's file that it lies in."""
    opened: Any = nullcontext()
    if not GlobalHydra.instance().is_initialized():  # inside a job its search path is used
        opened = initialize_config_dir(str(folder("conf")), **version_base())
    try:
        with opened:
            yield
    except ConfigError:
        raise
    except (ConfigCompositionException, OmegaConfBaseException, ValueError, *UNREADABLE) as error:
        raise ConfigError(fault_in_words(words, str(error))) from error


def compose_plain(config_name: str, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, Any]]:
    """The composed configuration without Hydra's own keys, and the choice of each group."""
    with composing(overrides):
        fitting = fitting_words(overrides, lambda some: compose(config_name, list(some)))
        words = [*overrides, *fitting]
        cfg = compose(config_name, words, return_hydra_config=True)
    chosen = own_choices(cfg.hydra.runtime.choices)
    return without_hydra(cfg), chosen


def without_hydra(cfg: DictConfig) -> DictConfig:
    """A composed configuration without Hydra's own part."""
    OmegaConf.set_struct(cfg, False)
    del cfg["hydra"]
    return cfg


def typed_values(words: Sequence[str]) -> dict[str, Any]:
    """The keys of words, and their values as Hydra reads them."""
    return {str(o.key_or_group): o.value() for o in _parsed(words)}


def named_plugins(words: Sequence[str]) -> list[str]:
    """Packages that `plugins=[...]` names among the words of a command line."""
    named: list[str] = []
    for word in words:
        if word.lstrip("+").startswith("plugins="):
            value = _parsed([word])[0].value()
            named += [str(v) for v in (value if isinstance(value, list) else [value])]
    return named
