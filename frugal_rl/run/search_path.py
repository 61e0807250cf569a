"""Where configurations are looked for: our `conf/`, a typed `--config-dir`, and plug-ins' own.

A plug-in's folder `conf/` lies inside its package. It comes last, so that it adds choices and
cannot replace ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.plugins import declared
from frugal_rl.untrusted.files import read_text
from frugal_rl.untrusted.nested import parse_yaml

PACKAGE = Path(__file__).resolve().parents[1]
_FURTHER: ContextVar[tuple[Path, ...]] = ContextVar("further", default=())
"""Folders of the present command line."""


def folder(name: str) -> Path:
    """The folder `conf` or `scripts`: beside the package in a checkout, inside it in the wheel."""
    for candidate in (PACKAGE.parent / name, PACKAGE / name):
        if (candidate / ("train.yaml" if name == "conf" else "train.py")).is_file():
            return candidate
    raise ConfigError(
        f"The folder '{name}' is neither beside nor inside {PACKAGE.name}; reinstall it."
    )


def conf_folders() -> list[Path]:
    """All folders with configurations, the first found in wins."""
    return [folder("conf"), *further()]


def further() -> list[Path]:
    """The folders beside our own."""
    of_installed = [conf for name in declared() if (conf := plugin_conf(name)) is not None]
    return list(dict.fromkeys([*_FURTHER.get(), *of_installed]))


def check_named_configuration(arguments: Sequence[str]) -> None:
    """Refuse `--config-name NAME` of a file that there is not; Hydra says it in eight lines.

    Raises:
        ConfigError: with how a configuration of one's own is used.
    """
    named = dict(pairwise(arguments))
    name = named.get("--config-name") or named.get("-cn")
    if name is None or {"--config-path", "-cp"} & set(arguments):
        return
    stem = name.removesuffix(".yaml")
    if not any((conf / f"{stem}.yaml").is_file() for conf in conf_folders()):
        raise ConfigError(
            f"--config-name {name} names no file. Options are words: env=nclone algo.n_steps=64; a "
            "file of your own is a choice of its group: --config-dir FOLDER env=NAME."
        )


def is_group(name: str) -> bool:
    """Whether a word's key is a group of configurations."""
    return any((conf / name).is_dir() for conf in conf_folders())


def choices(group: str) -> set[str]:
    """What may stand behind `group=`."""
    found = (path for conf in conf_folders() for path in (conf / group).glob("*.yaml"))
    return {path.stem for path in found if path.is_file()}


def values_of(name: str) -> Mapping[str, Any]:
    """The file `group/choice.yaml` by itself; empty where there is none."""
    paths = (conf / f"{name}.yaml" for conf in conf_folders())
    found = next((path for path in paths if path.is_file()), None)
    values = parse_yaml(read_text(found)) if found else None
    return values if isinstance(values, dict) else {}


def groups() -> set[str]:
    """The names of all groups."""
    return {path.name for conf in conf_folders() for path in conf.iterdir() if path.is_dir()}


def plugin_conf(package: str) -> Path | None:
    """The folder `conf` of a package, which is not imported for it; None without one.

    Raises:
        ConfigError: where Python does not find the package.
    """
    if package.endswith(".py") or not all(map(str.isidentifier, package.split("."))):
        raise ConfigError(
            f"plugins names '{package}', and a package's name has neither path nor ending. Set "
            f"PYTHONPATH to the folder that it lies in, and write plugins=[{_bare(package)}]."
        )
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:  # of a name with a dot, whose first part there is not
        spec = None
    except Exception as error:  # the first part of such a name is imported, and raises what it may
        said = f"{type(error).__name__}: {error}"
        raise ConfigError(f"plugins names '{package}', whose import fails: {said}.") from error
    if spec is None:
        raise ConfigError(
            f"plugins names '{package}', which Python does not find. Install it into this "
            "environment, or set PYTHONPATH to the folder that it lies in."
        )
    places = (Path(place) / "conf" for place in spec.submodule_search_locations or ())
    return next((conf for conf in places if conf.is_dir()), None)


def _bare(name: str) -> str:
    """What is probably meant by a path: its last part, without the ending of a file."""
    return Path(name.rstrip("/")).name.removesuffix(".py") or "NAME"


@contextmanager
def searching(plugins: Sequence[str], config_dirs: Sequence[str] = ()) -> Iterator[None]:
    """Look also into `config_dirs` and into the folders of the packages `plugins`."""
    of_plugins = [conf for name in plugins if (conf := plugin_conf(name)) is not None]
    before = _FURTHER.get()
    kept = dict.fromkeys([*before, *(Path(d).resolve() for d in config_dirs), *of_plugins])
    token = _FURTHER.set(tuple(kept))
    try:
        yield
    finally:
        _FURTHER.reset(token)


def typed_folder(sources: Sequence[Any]) -> str:
    """The folder of `--config-dir`, empty where none was typed."""
    return next((str(s["path"]) for s in sources if s["provider"] == "command-line"), "")


def own_choices(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The choice of each of our groups, without Hydra's own."""
    return {str(k): v for k, v in choices.items() if not str(k).startswith("hydra")}
