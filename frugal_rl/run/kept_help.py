"""The help of a command as it was last written, for as long as all that it is made of is the same.

Composing a configuration takes as long as importing Hydra, and help is asked for again and again.
What was written is kept with a fingerprint of the contents of every file that it comes from.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from frugal_rl import remembered
from frugal_rl.run.search_path import conf_folders

MOST = 8
"""Texts of a command that are kept: of other words, or of files as they were before."""
HYDRAS = {"hydra_joblib_launcher", "hydra_optuna_sweeper", "hydra_submitit_launcher"}
"""Plug-ins of Hydra that change no search path."""
OF_HYDRA = re.compile(rb"^ +(dir|subdir): .*$", re.MULTILINE)
"""Lines that say where a run lies; no help shows them."""
RESOLVED = re.compile(rb"\$\{(?!oc\.select:)[\w.]+:")
"""A value that something else than these files decides: the environment, the time."""


def recipe(words: Sequence[str]) -> str | None:
    """A fingerprint of what help is made of, and of `words`; None where it depends on more."""
    files = [path for conf in conf_folders() for path in sorted(conf.rglob("*.yaml"))]
    texts = [path.read_bytes() for path in files if path.is_file()]
    elsewhere = any(RESOLVED.search(OF_HYDRA.sub(b"", text)) for text in texts)
    if elsewhere or _plugins_of_hydra() - HYDRAS or any("${" in word for word in words):
        return None
    code = remembered.code_digest("frugal_rl.run", "hydra", "omegaconf", "yaml")
    contents = [hashlib.sha256(text).hexdigest() for text in texts]
    return remembered.fingerprint(sys.version, code, *files, *contents, *words)


def _plugins_of_hydra() -> set[str]:
    spec = find_spec("hydra_plugins")
    places = map(Path, spec.submodule_search_locations or () if spec else ())
    found = (path for place in places if place.is_dir() for path in place.iterdir())
    return {path.stem for path in found if not path.stem.startswith("_")}


def read(config_name: str, made_of: str) -> str | None:
    """The help of a command that was made of the same; None where there is none."""
    return _all(config_name).get(made_of)


def write(config_name: str, made_of: str, text: str) -> None:
    """Keep the help of a command beside the last few of it."""
    others = list(_all(config_name).items())[1 - MOST :]
    remembered.write(f"help-{config_name}", dict([*others, (made_of, text)]))


def _all(config_name: str) -> dict[str, str]:
    kept = remembered.read(f"help-{config_name}")
    return kept if isinstance(kept, dict) else {}
