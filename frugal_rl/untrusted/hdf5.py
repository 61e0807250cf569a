"""HDF5 files of strangers: what they hold lies in themselves, and unpacks to what is free."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from frugal_rl.errors import DataError
from frugal_rl.untrusted.files import refuse_irregular
from frugal_rl.untrusted.limits import LIMITS, MIB, Limits, lack_of_room
from frugal_rl.untrusted.printing import printable, shown


def check_hdf5(path: Path, limits: Limits = LIMITS) -> int:
    """Look at all that a file says of itself, without reading it; the bytes of its arrays.

    Raises:
        DataError: it is no regular file, damaged, leads into other files, or unpacks to too much.
    """
    h5py = import_module("h5py")
    try:
        packed = refuse_irregular(path).st_size
        with h5py.File(path, "r") as file:
            sizes = {name: sum(_sizes(h5py, file[name], limits)) for name in _names(h5py, file)}
    except DataError as error:
        words = str(error)
        raise DataError(words if shown(path) in words else f"{shown(path)}: {words}") from error
    except Exception as error:  # the library raises whatever a damaged table runs it into
        raise DataError(f"{shown(path)} cannot be read: {printable(str(error))}") from error
    unpacked = sum(sizes.values())
    if unpacked > MIB and unpacked / packed > limits.ratio:
        raise DataError(f"{shown(path)} unpacks to {unpacked / packed:,.0f} times its size.")
    if lack := lack_of_room(max(sizes.values(), default=0)):  # one group is read at a time
        raise DataError(f"{shown(path)} is not read: {lack}")
    return unpacked


def _names(h5py: Any, group: Any) -> Iterator[str]:
    """What lies in a group itself."""
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise DataError(f"'{printable(name)}' leads elsewhere.")
        yield name


def _sizes(h5py: Any, item: Any, limits: Limits) -> Iterator[int]:
    """Bytes of each array in an item, unpacked; an item that holds itself is met once."""
    met: set[int] = set()
    waiting = [item]
    while waiting:
        item = waiting.pop()
        place = h5py.h5o.get_info(item.id).addr
        if place in met:
            continue
        met.add(place)
        if len(met) > limits.entries:
            raise DataError(f"more than {limits.entries:,} entries.")
        if isinstance(item, h5py.Group):
            waiting += [item[name] for name in _names(h5py, item)]
        elif isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise DataError(f"'{printable(item.name)}' lies in other files.")
            yield int(item.nbytes)
