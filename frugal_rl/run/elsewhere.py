"""Choices as people know them from other programs, and what they are called here."""

from __future__ import annotations

import re
from collections.abc import Iterable

from frugal_rl.late import Late

_GYMNASIUM = Late("gymnasium.envs.registration")
NEAREST = {
    "algo": {
        "a2c": "algo=ppo algo.n_epochs=1 comes nearest",
        "a3c": "algo=ppo algo.n_epochs=1 comes nearest",
        "c51": "algo=qr_dqn comes nearest",
        "ddpg": "algo=td3 comes nearest",
        "ddqn": "algo=dqn comes nearest",
        "double_dqn": "algo=dqn comes nearest",
        "her": "it is an option of algo=sac and others: algo.her=true",
        "maskableppo": "algo=ppo reads action masks itself",
        "maskable_ppo": "algo=ppo reads action masks itself",
        "qrdqn": "did you mean 'qr_dqn'?",
        "rainbow": "algo=dqn algo.prioritised=true comes nearest",
        "reinforce": "algo=ppo algo.n_epochs=1 comes nearest",
        "trpo": "algo=ppo comes nearest",
    },
    "agent": {
        "cnnpolicy": "did you mean 'nature_cnn'?",
        "mlppolicy": "did you mean 'mlp'?",
        "multiinputpolicy": "agent=mlp reads several fields",
    },
    "tracking": {
        "false": "did you mean 'disabled'?",
        "none": "did you mean 'disabled'?",
        "null": "did you mean 'disabled'?",
        "off": "did you mean 'disabled'?",
        "tensorboard": "that is tracking.tensorboard=true",
        "true": "did you mean 'online'?",
        "wandb": "did you mean 'online'?",
    },
    "vec": {
        "dummy": "did you mean 'serial'?",
        "dummyvecenv": "did you mean 'serial'?",
        "subproc": "did you mean 'shared_memory'?",
        "subprocvecenv": "did you mean 'shared_memory'?",
    },
}
"""By group: hints for names that look like others, or like nothing, here."""

NO_OPTION = {
    "callback": "evaluation.every_steps=, checkpoint_every_steps= and evaluation.film= are options",
    "n_jobs": "jobs side by side: -m hydra/launcher=joblib hydra.launcher.n_jobs=2",
    "policy_kwargs": "the network's options are those of agent=, as agent.actor=[64,64]",
    "render_mode": "play shows what a run has learned, video=film.mp4 films it",
    "verbose": "--quiet and --json say less",
}
"""What others give a keyword for, and how it is had here."""


def hint_for(group: str, name: str) -> str:
    """What a choice that others have is here; empty for words that nobody has."""
    return NEAREST.get(group, {}).get(name.lower().replace("-", "_"), "")


def registered(name: str) -> str:
    """A hint for the newest Gymnasium environment of a name, whichever way it is written."""
    wanted = _letters(name.rpartition("/")[2])
    found = [known for known in _ids() if _letters(known.rpartition("/")[2]) == wanted]
    return f"did you mean env=gymnasium env.id={found[-1]}?" if found else ""


def _ids() -> Iterable[str]:
    """All that are registered, older versions first, Gymnasium's own last."""
    specs = _GYMNASIUM.registry.values()
    return [spec.id for spec in sorted(specs, key=lambda s: (not s.namespace, s.version or 0))]


def _letters(name: str) -> str:
    """A name without its version, capitals and signs."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"-v\d+$", "", name).lower())
