"""What is said of mistyped words: the nearest ones. Imports nothing of ours, so it is cheap."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

MOST_OPTIONS, SHOWN_OPTIONS = 12, 5
"""Longer lists of options are not shown whole, but the nearest of them."""
SURE = 0.75
"""So near nothing else can be meant."""
ELSEWHERE = {
    "checkpoint": "resume",
    "clip": "clip_range",
    "entropy_coef": "ent_coef",
    "episodes": "episodes",
    "epochs": "n_epochs",
    "eval_freq": "every_steps",
    "freq": "every_steps",
    "hidden": "actor",
    "hidden_sizes": "actor",
    "horizon": "n_steps",
    "load": "resume",
    "lr": "learning_rate",
    "n_env": "num_envs",
    "n_envs": "num_envs",
    "n_eval_episodes": "episodes",
    "n_timesteps": "total_steps",
    "net_arch": "actor",
    "num_steps": "n_steps",
    "policy": "agent",
    "project_name": "project",
    "rollout_steps": "n_steps",
    "save_freq": "checkpoint_every_steps",
    "steps": "total_steps",
    "tensorboard_log": "tensorboard",
    "timesteps": "total_steps",
    "total_timesteps": "total_steps",
    "value_coef": "vf_coef",
    "workers": "num_envs",
}
"""What other programs call an option; no two of these words look alike."""


def _shortened(name: str, word: str) -> bool:
    """Whether a word spells a short option out, as `environment` does `env`."""
    return 2 < len(name) < len(word) and word.startswith(name)


def nearest(word: str, options: Collection[str]) -> str:
    """A hint for a mistyped word: the nearest option; where none is near, a few of them."""
    if not options:
        return "there is nothing to choose from"
    names = sorted(options)
    if same := [name for name in names if name.lower() == word.lower()]:
        return f"did you mean '{same[0]}'?"
    close = difflib.get_close_matches(word, names, n=1, cutoff=SURE)
    close = close or [name for name in names if _shortened(name, word)]
    close = close or difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    shown = names
    if len(names) > MOST_OPTIONS:
        shown = difflib.get_close_matches(word, names, n=SHOWN_OPTIONS, cutoff=0.0)
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return f"choose from {', '.join(shown)}{more}"


def nearest_key(name: str, known: set[str]) -> str:
    """A hint for a mistyped dotted key: its nearest sibling first, else the nearest of all."""
    ours = ELSEWHERE.get(name.rpartition(".")[2])
    meant = sorted(key for key in known if ours and key.rpartition(".")[2] == ours)
    if meant:
        return f"did you mean '{meant[0]}'?"
    parent = name.rpartition(".")[0]
    known = {k for k in known if not k.endswith("_target_")}
    siblings = {k for k in known if k.rpartition(".")[0] == parent}
    if parent and siblings:
        return nearest(name, siblings)
    return nearest(name, known)


UNITS = {"k": 1e3, "m": 1e6, "%": 1e-2, "g": 1, "gb": 1, "gib": 1}
"""What people write behind a number, and what it is multiplied by."""


def several_numbers(where: str, value: object) -> str:
    """A hint for numbers from one to another (`1-3`); empty for other words."""
    found = re.fullmatch(r"(\d{1,9})(?:-|\.\.\.?|:)(\d{1,9})", str(value))
    if found is None or int(found[1]) >= int(found[2]):
        return ""
    return f" A job for each of them is -m '{where}=range({found[1]},{int(found[2]) + 1})'."


def in_plain_digits(value: object) -> str:
    """A hint for a number that was typed with a unit; empty where it has none."""
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?) ?([A-Za-z%]+)", str(value))
    if found is None:
        return ""
    times = UNITS.get(found[2].lower())
    plain = f": {float(found[1]) * times:.12g}" if times else ""
    return f" Write it without a unit{plain}."


TIPS = ("Note", "See http", "full_key", "reference_type", "object_type")
"""Beginnings of lines that help nobody who types a command."""


def in_one_line(words: str) -> str:
    """What Hydra says, without its tips."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith(TIPS))
