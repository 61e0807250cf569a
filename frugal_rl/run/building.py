"""Plain values to frozen dataclasses, with errors in the words that the user typed.

A node is a mapping whose `_target_` names the dataclass. Only dataclasses inside our packages, or
inside plug-ins (see `frugal_rl.plugins`), are built: configurations arrive with checkpoints.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, Union

from frugal_rl.errors import ConfigError, FrugalError
from frugal_rl.plugins import trusted
from frugal_rl.ranges import check_ranges
from frugal_rl.run.nearness import in_plain_digits, nearest, several_numbers
from frugal_rl.run.renamed import VALUES, current
from frugal_rl.untrusted.printing import printable

T = TypeVar("T")
LARGEST_WHOLE = 2**53
"""Beyond it numbers are no longer told apart; whoever types one has slipped."""


def build(node: Mapping[str, Any], where: str = "", plugins: Sequence[str] = ()) -> Any:
    """The dataclass that `node["_target_"]` names, filled with the node's other values.

    Args:
        node: plain values, as a YAML file holds them.
        where: dotted key of the node, for messages.
        plugins: packages of the user's own whose dataclasses may be built too.

    Raises:
        ConfigError: unknown target or key, or a value of the wrong type.
    """
    if "_target_" not in node:
        raise ConfigError(f"{where or 'The node'} has no _target_, so it is not known what it is.")
    cls = find_class(str(node["_target_"]), where, plugins)
    return build_as(cls, {k: v for k, v in node.items() if k != "_target_"}, where, plugins)


def find_class(target: str, where: str = "", plugins: Sequence[str] = ()) -> type[Any]:
    """The dataclass at "package.module.Class", refused outside the trusted packages."""
    module_name, _, class_name = current(target).rpartition(".")
    packages = trusted(plugins)
    if module_name.split(".")[0] not in packages:
        raise ConfigError(
            f"{where}._target_={target} lies outside {', '.join(packages)}. "
            "Add plugins=[package] to the command line if you trust it."
        )
    try:
        module = importlib.import_module(module_name)
    except FrugalError:
        raise
    except SystemExit as end:
        raise ConfigError(
            f"{where}._target_={target}: importing {module_name} ends the program by sys.exit()."
        ) from end
    except Exception as error:  # whatever a stranger's module raises, a slip of the pen included
        kind = "" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: "
        said = f"{kind}{printable(str(error))}"
        raise ConfigError(f"{where}._target_={target} cannot be imported: {said}.") from error
    cls = getattr(module, class_name, None)
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        classes = [n for n, c in vars(module).items() if dataclasses.is_dataclass(c)]
        raise ConfigError(
            f"{where}._target_={target} is not a dataclass; {nearest(class_name, classes)}"
        )
    return cls


def build_as(
    cls: type[T], values: Mapping[str, Any], where: str = "", plugins: Sequence[str] = ()
) -> T:
    """An instance of the dataclass `cls` from plain values; see `build`."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            name = f"{_join(where, str(key))} is no option of {cls.__name__}"
            raise ConfigError(f"{name}; {nearest(str(key), fields)}")
    hints = typing.get_type_hints(cls)
    made = {k: convert(v, hints[k], _join(where, k), plugins) for k, v in values.items()}
    for name, f in fields.items():
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if required and name not in made:
            raise ConfigError(f"{_join(where, name)} has no value; add {_join(where, name)}=...")
    try:
        built = cls(**made)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from error
    check_ranges(built, where)
    return built


def convert(value: Any, hint: Any, where: str, plugins: Sequence[str] = ()) -> Any:
    """`value` as the type `hint`, refused in words where it does not fit."""
    if isinstance(value, Mapping) and "_target_" in value:
        return _checked(build(value, where, plugins), hint, where)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return _one_of(value, typing.get_args(hint), where, plugins)
    if origin in (tuple, list, Sequence):
        return _sequence(value, hint, where, plugins)
    if origin in (dict, Mapping):
        return _mapping(value, hint, where, plugins)
    if hint is Any or hint is None or isinstance(hint, TypeVar):
        return value
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member(value, hint, where)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if isinstance(value, hint):  # handed over in Python
            return value
        if not isinstance(value, Mapping):
            names = ", ".join(field.name for field in dataclasses.fields(hint)[:MOST_NAMED])
            raise _wrong(value, f"options of its own, as {where}.NAME= ({names})", where)
        return build_as(hint, value, where, plugins)
    return _scalar(value, hint, where)


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


MOST_NAMED = 5
"""Options of a group that an error names."""


def _wrong(value: Any, wanted: str, where: str) -> ConfigError:
    hint = in_plain_digits(value) or several_numbers(where, value) if "number" in wanted else ""
    return ConfigError(f"{where}={value!r} does not fit: it takes {wanted}.{hint}")


def _checked(made: Any, hint: Any, where: str) -> Any:
    """Refuse an object that is not what the field declares: a value, a dataclass, a protocol."""
    if typing.get_origin(hint) in (tuple, list, Sequence, dict, Mapping):
        raise _wrong(made, "no object", where)
    checkable = dataclasses.is_dataclass(hint) or getattr(hint, "_is_runtime_protocol", False)
    valued = hint in (int, float, bool, str) or (isinstance(hint, type) and issubclass(hint, Enum))
    if isinstance(hint, type) and (checkable or valued) and not isinstance(made, hint):
        raise _wrong(made, f"{article(hint.__name__)}{_lacking(made, hint)}", where)
    return made


def article(name: str) -> str:
    """As in "an EnvConfig"."""
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _lacking(made: Any, hint: Any) -> str:
    """What a value misses of a protocol: its class, or members of it."""
    if isinstance(made, Mapping):
        return ", named by a line _target_: package.module.Class"
    public = [name for name in vars(hint) if not name.startswith("_")]
    members = dict.fromkeys([*getattr(hint, "__annotations__", {}), *public])
    missing = [name for name in members if not hasattr(made, name)]
    return f", which also has {', '.join(missing)}" if missing else ""


def _one_of(value: Any, options: tuple[Any, ...], where: str, plugins: Sequence[str]) -> Any:
    if value is None:
        if type(None) in options:
            return None
        raise _wrong(value, _words(options), where)
    errors = []
    for option in (o for o in options if o is not type(None)):
        try:
            return convert(value, option, where, plugins)
        except ConfigError as error:
            errors.append(error)
    raise errors[0] if len(errors) == 1 else _wrong(value, _words(options), where)


def _sequence(value: Any, hint: Any, where: str, plugins: Sequence[str]) -> Any:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _wrong(value, f"a list, as in {where}=[{value}]", where)
    args = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        if len(value) != len(args):
            raise _wrong(list(value), f"a list of {len(args)} values", where)
        wanted = list(args)
    else:
        wanted = [args[0] if args else Any] * len(value)
    items = [
        convert(v, w, f"{where}[{i}]", plugins)
        for i, (v, w) in enumerate(zip(value, wanted, strict=True))
    ]
    return items if typing.get_origin(hint) is list else tuple(items)


def _mapping(value: Any, hint: Any, where: str, plugins: Sequence[str]) -> dict[str, Any]:
    """Entries by name; an entry that is null, where its type has no null, is left out."""
    if not isinstance(value, Mapping):
        example = f"names with values, as {where}.NAME=VALUE"
        if where.endswith("]"):  # an item of a list is written whole
            example = "names with values, as {NAME: VALUE}"
        raise _wrong(value, example, where)
    args = typing.get_args(hint)
    item = args[1] if args else Any
    optional = item is Any or type(None) in typing.get_args(item)
    given = {str(k): v for k, v in value.items() if v is not None or optional}
    return {k: convert(v, item, _join(where, k), plugins) for k, v in given.items()}


def _member(value: Any, hint: type[Enum], where: str) -> Enum:
    if isinstance(value, hint):
        return value
    # YAML reads a bare `off` or `on` as a boolean.
    word = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    members = {name.lower(): m for name, m in hint.__members__.items()}  # aliases too
    if word in VALUES.get(where, {}):
        now = VALUES[where][word]
        raise ConfigError(f"{where}={word} is called {now} now: type {where}={now}.")
    if word not in members:
        raise ConfigError(f"{where}={word} is no choice; {nearest(word, members)}")
    return members[word]


def _scalar(value: Any, hint: Any, where: str) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and number and math.isfinite(value):
        return float(value)
    if hint is int and number and abs(value) > LARGEST_WHOLE:
        raise _wrong(value, f"a whole number of at most {LARGEST_WHOLE:,}", where)
    if hint is int and number and float(value).is_integer():
        return int(value)
    if hint in (bool, str) and isinstance(value, hint):
        return value
    if hint is str and number:
        return str(value)
    if hint is float and number:
        raise _wrong(value, "a finite number", where)
    if hint in (int, float, bool, str):
        raise _wrong(value, _words((hint,)), where)
    return _checked(value, hint, where)


def _words(hints: tuple[Any, ...]) -> str:
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a word",
        type(None): "null",
    }
    return " or ".join(names.get(h, getattr(h, "__name__", str(h))) for h in hints)
