"""An entry as the overrides that say the same here; what they cannot say is refused by its key."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.run.nearness import nearest
from frugal_rl.run.zoo.algorithms import ALGORITHMS, Algorithm
from frugal_rl.run.zoo.entry import ATARI, Entry, find_entry

OPTIONS = ("env", "algo", "file", "without")
POLICIES = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy")
ACTIVATIONS = {"ReLU": "relu", "Tanh": "tanh", "SiLU": "silu"}
COUNTS = ("buffer_size", "learning_starts", "batch_size", "train_freq", "gradient_steps")
PLAIN, RESERVED = re.compile(r"[A-Za-z][\w./+-]*"), ("true", "false", "null", "inf", "nan")
"""Text that Hydra reads without quotes, and words that would become something else."""
LINEAR = "frugal_rl.learn.schedules.Linear"


def translated(words: Sequence[str]) -> list[str]:
    """A command line with `algo=zoo` as the words that its entry says; others as they are.

    Words that were typed beside it come last, and win.

    Raises:
        ConfigError: naming the key of the entry that has no counterpart, and the remedy.
    """
    zoo = [w for w in words if w.startswith("zoo.")]
    if "algo=zoo" not in words:
        if zoo:
            raise ConfigError(f"{zoo[0]} says nothing without algo=zoo; add it, or leave it out.")
        return list(words)
    typed = [w for w in words if w not in zoo and w != "algo=zoo"]
    known = {w.lstrip("+").partition("=")[0] for w in typed}
    said = words_of(read_options(zoo))
    return [*(f"{k}={written(v)}" for k, v in said.items() if k not in known), *typed]


def read_options(words: Sequence[str]) -> dict[str, str]:
    """`zoo.env=...` and the others by name."""
    given = {}
    for word in words:
        key, _, value = word.removeprefix("zoo.").partition("=")
        if key not in OPTIONS:
            raise ConfigError(f"zoo.{key} is no option; {nearest(key, OPTIONS)}")
        given[key] = value.strip().strip("'\"")
    if not given.get("env"):
        raise ConfigError("algo=zoo needs an environment: zoo.env=CartPole-v1.")
    return given


def words_of(options: Mapping[str, str]) -> dict[str, Any]:
    """Values of our configuration by their keys."""
    name, env = options.get("algo") or "ppo", options["env"]
    if name not in ALGORITHMS:
        raise ConfigError(f"zoo.algo={name} has no learner here; {nearest(name, ALGORITHMS)}")
    without = [w.strip() for w in options.get("without", "").strip("[]").split(",") if w.strip()]
    entry, algorithm = find_entry(options.get("file", ""), name, env, without), ALGORITHMS[name]
    said: dict[str, Any] = {"env": "gymnasium", "env.id": env}
    if ATARI.fullmatch(env):
        said["env.modules"] = ["ale_py"]
    with entry.odd_values_told():
        said |= environment(entry) | {"algo": algorithm.choice}
        said |= learning(entry, algorithm) | agent(entry, algorithm)
    refuse_the_rest(entry, algorithm)
    return said


def environment(entry: Entry) -> dict[str, Any]:
    """Wrappers, stacks and arguments of the environment."""
    said: dict[str, Any] = {}
    wrappers = entry.take("env_wrapper", [])
    nodes = [_wrapper(w) for w in (wrappers if isinstance(wrappers, list) else [wrappers])]
    if nodes:
        said["env.wrappers"] = nodes
    stack = entry.take("frame_stack", 1)
    if stack != 1:
        said["env.frame_stack"] = stack
    arguments = entry.arguments("env_kwargs")
    return said | ({"env.kwargs": arguments} if arguments else {})


def _wrapper(node: Any) -> dict[str, Any]:
    """`package.Class`, or `{package.Class: {argument: value}}`."""
    if not isinstance(node, Mapping):
        return {"wrapper": str(node)}
    (name, arguments), *_ = node.items()
    return {"wrapper": str(name), "kwargs": dict(arguments or {})}


def learning(entry: Entry, algorithm: Algorithm) -> dict[str, Any]:
    """What the algorithm is told, its defaults included, and how long it learns."""
    said = {"num_envs": int(entry.take("n_envs", 1))}
    said["total_steps"] = int(float(entry.take("n_timesteps", 1_000_000)))
    for key, default in algorithm.defaults.items():
        said[key] = _value(entry, key, entry.take(key, default))
    if algorithm.learns_from_replay:
        said |= _replay(entry, algorithm, said)
    else:
        said["batched_bootstrap"] = False  # one by one is theirs, to the last bit
    said |= _normalised(entry, algorithm)
    return {f"algo.{key}": value for key, value in said.items()}


def _value(entry: Entry, key: str, value: Any) -> Any:
    """A number, also one that is written as text, or a schedule `lin_0.001`."""
    if value is None or isinstance(value, bool):
        return value
    text = str(value)
    linear = text.removeprefix("lin_")
    try:
        number = float(linear)
    except ValueError:
        what = "learn by steps: train_freq=1" if key == "train_freq" else ""
        raise entry.refusal(key, f"{text} is no number and no lin_ schedule", what) from None
    if linear != text:
        return {"_target_": LINEAR, "start": number}
    whole = key in COUNTS and math.isfinite(number) and number.is_integer()
    return int(number) if whole or isinstance(value, int) else number


def _replay(entry: Entry, algorithm: Algorithm, said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns over several steps, as many minibatches as steps, noise."""
    more: dict[str, Any] = {}
    if "n_steps" in entry.values:
        more["return_steps"] = entry.take("n_steps")
    if said["gradient_steps"] == -1:
        more["gradient_steps"] = int(said["train_freq"]) * said["num_envs"]
    entry.take("optimize_memory_usage")  # a smaller store of ours serves both of its values
    noise = entry.take("noise_type"), entry.take("noise_std", 0.0)
    if algorithm.choice == "td3":
        if noise[0] not in (None, "normal"):
            raise entry.refusal("noise_type", f"{noise[0]} noise is not offered", "")
        more["action_noise"] = _value(entry, "noise_std", noise[1]) if noise[0] else 0.0
    elif noise[0]:
        raise entry.refusal("noise_type", f"algo={algorithm.choice} adds no noise of its own", "")
    return more


def _normalised(entry: Entry, algorithm: Algorithm) -> dict[str, Any]:
    """Running normalisation: of rewards for algorithms that learn from fresh steps."""
    if entry.values.get("normalize") in (None, False):
        entry.take("normalize")
        return {}
    if isinstance(entry.values["normalize"], bool):
        entry.values["normalize"] = {}
    asked = entry.arguments("normalize")
    if asked.get("norm_obs", True):
        raise entry.refusal(
            "normalize",
            "observations are not normalised as they come",
            "zoo.without=[normalize] learns from them as they are, and "
            "algo.reward_normalisation=true divides rewards",
        )
    if algorithm.learns_from_replay:
        raise entry.refusal("normalize", "a replay keeps rewards as they are", "")
    return {"reward_normalisation": bool(asked.get("norm_reward", True))}


def agent(entry: Entry, algorithm: Algorithm) -> dict[str, Any]:
    """The network that the policy's name and arguments mean."""
    policy = str(entry.take("policy", "MlpPolicy"))
    if policy not in POLICIES:
        raise entry.refusal("policy", f"{policy} is not offered", nearest(policy, POLICIES)[:-1])
    given = entry.arguments("policy_kwargs")
    units = () if policy == "CnnPolicy" and algorithm.units == (64, 64) else algorithm.units
    actor, critic, shared = _layers(entry, given.pop("net_arch", list(units)))
    activation = str(given.pop("activation_fn", algorithm.activation)).rpartition(".")[2]
    chosen = ACTIVATIONS.get(activation, activation)
    if chosen not in ACTIVATIONS.values():
        raise entry.refusal("policy_kwargs", f"activation_fn={activation} is not offered", "")
    if given:
        name, value = next(iter(given.items()))
        raise entry.refusal(f"policy_kwargs.{name}", f"{value!s:.60} has no counterpart", "")
    said: dict[str, Any] = {"agent": "mlp" if policy == "MlpPolicy" else "nature_cnn"}
    if policy == "MultiInputPolicy":
        said["agent.image_features"] = 256
    layers = {"agent.actor": actor, "agent.critic": critic, "agent.shared": shared}
    return said | layers | {"agent.activation": chosen}


def _layers(entry: Entry, given: Any) -> tuple[list[int], list[int], list[int]]:
    """Units of actor, critic and what they share, in any of the ways that files write them."""
    listed = given if isinstance(given, list) else [given]
    *front, last = listed or [None]
    if isinstance(last, Mapping):
        actor, critic = last.get("pi", []), last.get("vf", last.get("qf", []))
        shared = front
    else:
        actor, critic, shared = listed, listed, []
    if all(isinstance(n, int) for layers in (actor, critic, shared) for n in layers):
        return list(actor), list(critic), list(shared)
    raise entry.refusal("policy_kwargs", f"net_arch={given} names no units", "")


def refuse_the_rest(entry: Entry, algorithm: Algorithm) -> None:
    """What nobody took must change nothing.

    Raises:
        ConfigError: naming the key and its value.
    """
    for key, value in {**algorithm.constants, "use_sde": False}.items():
        if entry.values.get(key, value) == value:
            entry.take(key)
    if "use_sde" not in entry.values:
        entry.take("sde_sample_freq")  # without state-dependent noise it says nothing
    for key, value in entry.values.items():
        raise entry.refusal(key, f"{value!s:.60} has no counterpart", "")


def written(value: Any) -> str:
    """A value as Hydra reads it on a command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, str) and (value in RESERVED or not PLAIN.fullmatch(value)):
        quoted = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{quoted}'"
    return str(value)
