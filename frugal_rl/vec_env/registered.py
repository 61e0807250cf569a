"""`env=gymnasium`: any registered Gymnasium environment, its observation read from its space."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import gymnasium as gym
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing, program
from frugal_rl.memory.part import Part
from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.observation.found_spec import FoundSpec, read_found_spec
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.ranges import at_least
from frugal_rl.vec_env.ending import close_all, program_ended
from frugal_rl.vec_env.leaves import Leaf, LeavesEnv, actions_from_zero, leaves_of
from frugal_rl.vec_env.serial import Serial

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv

PROVIDERS = {
    "ALE": ("ale_py", "ale-py"),
    "MiniGrid": ("minigrid", "minigrid"),
    "BabyAI": ("minigrid", "minigrid"),
    "highway": ("highway_env", "highway-env"),
    "NetHack": ("nle", "nle"),
    "MiniHack": ("minihack", "minihack"),
    "MiniWorld": ("miniworld", "miniworld"),
    "Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom"),
}
"""What an id's beginning needs imported, and the package that has it."""
EPISODE_STEPS = 1 << 20
"""The most steps of an episode whose environment states no limit."""
TRIAL_STEPS = 5_000
"""After which an evaluation cuts such an episode off."""
TINY_EPISODE_STEPS = 200
"""Of a run that tries in small what a run loads."""


@dataclass(frozen=True)
class Registered:
    """An environment by its id. `wrappers` are put around it in order, the first one innermost."""

    compiles: ClassVar[bool] = True
    """Its libraries are unknown: it is tried out in small first (`frugal_rl.memory.kernels`)."""
    weighed: ClassVar[bool] = True
    """What one of it holds is measured, by difference between several (`frugal_rl.run.weigh`)."""
    undeclared: ClassVar[bool] = True
    """Nobody said what matters of its observation: what a network leaves out is told."""
    tools: ClassVar[str] = "frugal_rl.rendered"
    vouched: ClassVar[tuple[str, ...]] = (
        "gymnasium.wrappers",
        "stable_baselines3.common.atari_wrappers",
        *(m for m, _ in PROVIDERS.values()),
    )
    """What a saved configuration may have imported without a word of the user's."""
    name: str = "gymnasium"
    id: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What `gymnasium.make` is given beside the id."""
    wrappers: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    """`{wrapper: package.module.Class, kwargs: {...}}` each."""
    modules: tuple[str, ...] = ()
    """Modules whose import registers the id."""
    spec_file: str | None = None
    """A YAML file that `scripts/study.py` wrote: what was found, with the bytes that it takes."""
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    frame_stack: Annotated[int, at_least(1)] = 1
    """How many of the newest observations are shown; each is held once."""
    scale_integers: bool = False
    """Networks divide the whole numbers of a Box that is no picture by its bound."""
    episode_steps: int = 0
    """Steps after which an episode is cut off; 0 takes what the id is registered with."""

    def __post_init__(self) -> None:
        if not self.id:
            raise ConfigError("env.id is empty; name a registered environment: env.id=CartPole-v1.")
        if not self.episode_steps:
            object.__setattr__(self, "episode_steps", self._usual_steps())

    @staticmethod
    def named_code(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """What plain values of this class would have imported, with the key of each."""
        for module in values.get("modules") or ():
            yield "modules", str(module)
        for node in values.get("wrappers") or ():
            yield "wrappers", str(node.get("wrapper"))
        module, colon, _ = str(values.get("id")).partition(":")
        if colon:
            yield "id", module

    def tiny(self) -> Registered:
        """With short episodes: an untrained policy may stand still until a limit that is far."""
        return replace(self, episode_steps=min(self.episode_steps, TINY_EPISODE_STEPS))

    def tried(self) -> Registered:
        """For evaluations, which wait for their episodes to end: a policy may stand still."""
        return replace(self, episode_steps=TRIAL_STEPS) if self.unlimited else self

    @property
    def unlimited(self) -> bool:
        """Whether nobody states when an episode is cut off."""
        return self.episode_steps == EPISODE_STEPS

    def _usual_steps(self) -> int:
        """The limit of an episode where nobody names one."""
        self._import()
        known = gym.registry.get(self.id)
        registered = known.max_episode_steps if known else None
        return int(self.kwargs.get("max_episode_steps") or registered or EPISODE_STEPS)

    def _import(self) -> None:
        """Import what registers the id."""
        for module in self.modules:
            try:
                importlib.import_module(module)
            except (Exception, SystemExit) as error:  # a stranger's module may raise anything
                quits = isinstance(error, SystemExit)  # a script, run as it is imported
                why = f"it ends the program by sys.exit({error})" if quits else error
                raise ConfigError(
                    f"env.modules names '{module}', which cannot be imported: {why}. Install it "
                    "into this environment, or set PYTHONPATH to the folder that it lies in."
                ) from error
        provider = PROVIDERS.get(self.id.split("/")[0].split("-")[0])
        if provider is None or self.id in gym.registry:
            return
        module, package = provider
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"env.id={self.id} needs {package}: {program('pip', 'install', package)}, or all "
                f"of them with {installing('environments')}"
            ) from error

    def plain(self) -> gym.Env[Any, Any]:
        """The environment with its wrappers, its observation as it is."""
        limit: dict[str, Any] = {}
        if self.episode_steps != self._usual_steps():
            limit = {"max_episode_steps": self.episode_steps}
        try:
            env = gym.make(self.id, **{**self.kwargs, **limit})
        except SystemExit as end:
            raise program_ended(end, f"while env.id={self.id} was made") from end
        except TypeError as error:  # what Python says of an argument that nobody takes
            raise ConfigError(
                f"env.id={self.id} cannot be made with env.kwargs={dict(self.kwargs)}: {error}"
            ) from error
        except gym.error.Error as error:
            raise ConfigError(
                f"env.id={self.id} cannot be made: {error} {self._who_registers()}"
            ) from error
        for node in self.wrappers:
            env = _wrapped(env, node)
        return env

    def _who_registers(self) -> str:
        """What to name where nothing that was imported registers the id."""
        if not self.modules:
            return "If a package registers it on import, name it: env.modules=[package]."
        packages = [m for m in self.modules if hasattr(importlib.import_module(m), "__path__")]
        inner = [f"{p}.envs" for p in packages]  # where Gymnasium's own template puts it
        found = [name for name in inner if importlib.util.find_spec(name)]
        named = f"env.modules=[{','.join(self.modules)}] registers none of that name"
        if not found:
            return f"{named}; the package's documentation says which module to import."
        return f"{named}; a module inside may: env.modules=[{','.join(found)}]."

    def spec(self) -> ObservationSpec:
        """One stored field per leaf of the observation space."""
        leaves, _ = _spaces(self)
        known = read_found_spec(Path(self.spec_file)) if self.spec_file else FoundSpec({})
        known.check({leaf.name: (leaf.shape, leaf.dtype) for leaf in leaves}, str(self.spec_file))
        return ObservationSpec(tuple(self._field(leaf, known) for leaf in leaves))

    def _field(self, leaf: Leaf, known: FoundSpec) -> Stored:
        share, form = known.share(leaf.name), known.form(leaf.name)
        return Stored(
            leaf.name,
            leaf.shape,
            leaf.dtype,
            leaf.low,
            leaf.high,
            "one-hot" if leaf.counts else "",
            scaled=self.scale_integers or leaf.choice,
            codecs=(FoundCodec(expected_share=share, form=form),),
            window=self.frame_stack,
        )

    def action_space(self) -> spaces.Space[Any]:
        """What the environment says, choices counted from 0."""
        return _spaces(self)[1]

    def make(self, seed: int | None = None) -> gym.Env[Any, Any]:
        """One environment that hands out its leaves by name."""
        env = LeavesEnv(self.plain())
        if seed is not None:
            env.reset(seed=seed)
        return env

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """Single environments in whatever `vec` builds; `vec=batch` takes them one by one."""
        backend = Serial() if vec is None or vec.native else vec
        built: VectorEnv = backend.build(self, num_envs, encoding, memory)
        return built

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Only what the observations take: a stranger's simulator says nothing of its own size."""
        row = sum(f.nbytes for f in encoding.spec.fields)
        return [Part("simulators", f"{num_envs} observations x {row} B", num_envs * row)]


@lru_cache(maxsize=8)
def _spaces(config: Registered) -> tuple[list[Leaf], spaces.Space[Any]]:
    env = config.plain()
    try:
        return leaves_of(env.observation_space), actions_from_zero(env.action_space)[0]
    finally:
        close_all([env])


def _wrapped(env: gym.Env[Any, Any], node: Mapping[str, Any]) -> gym.Env[Any, Any]:
    module, _, name = str(node.get("wrapper", "")).rpartition(".")
    try:
        wrapper = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, SystemExit) as error:
        raise ConfigError(
            f"env.wrappers names '{node.get('wrapper')}', which cannot be imported: {error}. "
            "Write {wrapper: gymnasium.wrappers.FrameStackObservation, kwargs: {stack_size: 4}}."
        ) from error
    try:
        wrapped: gym.Env[Any, Any] = wrapper(env, **dict(node.get("kwargs") or {}))
    except SystemExit as end:
        raise program_ended(end, f"as {node.get('wrapper')} was put around it") from end
    except TypeError as error:
        raise ConfigError(
            f"env.wrappers: '{node.get('wrapper')}' takes no such values: {error}"
        ) from error
    except Exception as error:  # whatever a stranger's wrapper raises at values that it cannot take
        raise ConfigError(
            f"env.wrappers: '{node.get('wrapper')}' cannot be put around this environment with "
            f"{dict(node.get('kwargs') or {})}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(wrapped, gym.Env):
        raise ConfigError(f"env.wrappers names '{node.get('wrapper')}', which is no wrapper.")
    return wrapped
