"""A run: the frozen dataclasses that a composed configuration turns into, and their contracts.

There is no registry: an environment, agent, algorithm or vector backend is a dataclass that a
YAML node names by `_target_` and that offers the methods below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Protocol, runtime_checkable

from frugal_rl.errors import ConfigError
from frugal_rl.memory.probe import Planning
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.ranges import SEED, above, at_least, between, one_of

if TYPE_CHECKING:
    import gymnasium as gym
    from gymnasium import spaces

    from frugal_rl.learn.learner import Learner
    from frugal_rl.memory.part import Part
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.observation.tables import Tables
    from frugal_rl.vec_env.interface import VectorEnv


@runtime_checkable
class EnvConfig(Protocol):
    """A problem: its observation, one environment of it, many of them.

    What else can be done with it (play, film, draw, record, generate, tournament, checks) are its
    tools, in a package that its class names: see `frugal_rl.run.tools`. One with tables that fill
    up over a run offers `tiny() -> EnvConfig`, itself with tables that a tiny run may fill.
    One whose episodes may never end offers `tried() -> EnvConfig`, which cuts them off. One with
    large kernels may offer `observed() -> EnvConfig`, itself such that a reset calls none of those
    that steps call: two processes compile them at once.

    `libraries_bytes: ClassVar[int]` is what its libraries hold beyond a bare process,
    `compiles: ClassVar[bool]` tells that its kernels take long to compile,
    `weighed: ClassVar[bool]` that one of it has to be measured before its size is known,
    `evaluates_natively: ClassVar[bool]` that no process of `vec` plays its evaluations, and
    `static_rows` the most rows of a static table that a rollout can show, where that is known.
    `honours: ClassVar[frozenset[str]]` names the switches of the memory profile that it reads,
    where these are more than `frugal_rl.memory.honour.ENCODED`: any other value is refused. One
    that reads files offers `check()`, which refuses those that are missing before anything begins.
    One with rows of varying length offers `content(num_envs, steps) -> Content`, what a rollout
    shows of them: then no plan makes it (`frugal_rl.observation.content`).
    """

    name: str
    fields: Mapping[str, str]
    """Representation per field, over the profile's default."""
    episode_steps: int
    """The most steps that an episode can take; bounds `EPISODE` windows."""

    def spec(self) -> ObservationSpec:
        """The observation, declared."""

    def action_space(self) -> spaces.Space[Any]:
        """The actions, without building an environment."""

    def make(self, seed: int | None = None) -> gym.Env[Any, Any]:
        """One plain Gymnasium environment with the full observation."""

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """`num_envs` environments; `split` is "train" or "eval"."""

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Bytes of simulators, workers and static tables, by arithmetic, before anything exists.

        Nothing is compiled for it: what a compiler leaves would stay in the process that trains.
        """


@runtime_checkable
class AgentConfig(Protocol):
    """A policy: networks as values.

    One that keeps something between two steps also offers `parts(run) -> list[Part]`; one that can
    show what it looks at has the tool `draw`: see `frugal_rl.run.tools`. One that reads not every
    observation offers `check(encoding, action_space)`, which refuses the others without torch. An
    agent or algorithm that goes with some others only offers `goes_with(run)`: it refuses the rest.
    """

    name: str

    def build(self, encoding: Encoding, tables: Tables, action_space: Any) -> Any:
        """A torch module that maps decoded fields to features, logits and value."""


@runtime_checkable
class AlgoConfig(Protocol):
    """A learning algorithm and the sizes of its rollout.

    One that keeps no rollout also offers `learner_parts(run) -> list[Part]`: its bytes by
    arithmetic, in the place of a rollout and a probe. One that holds more than a rollout offers
    `parts(run) -> list[Part]`, and one that keeps earlier weights `kept_weights(run) -> int`, how
    many times; one whose beginning takes long offers `tiny()`, itself without that.
    One that reads switches of the memory profile names them in `honours: ClassVar[frozenset[str]]`.
    One that several processes can train together offers `shared(ranks)`: itself with one's share.
    """

    num_envs: int
    n_steps: int
    batch_size: int
    total_steps: int

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments."""


@dataclass(frozen=True)
class Evaluation:
    """When and how a policy is tried out."""

    every_steps: Annotated[int, at_least(0)] = 0
    """Environment steps between evaluations; 0 evaluates at the end only."""
    episodes: Annotated[int, at_least(0)] = 100
    """Episodes per evaluation."""
    num_envs: Annotated[int, at_least(1)] = 32
    """Environments that play them side by side."""
    deterministic: bool = True
    """True takes the most likely action."""
    seed: Annotated[int, SEED] = 1_000_003
    """Seed of the evaluation episodes, the same in every evaluation."""
    film: bool = False
    """Film an episode of each evaluation: environments that have the tool `film`."""


MOST_THREADS = 1024
"""The system ends a process that asks for hundreds of thousands, without a word."""


@dataclass(frozen=True)
class Hardware:
    """The machine that the planner assumes; None means: look."""

    device: Annotated[str, one_of("auto", "cpu", "cuda", pattern=r"cuda:\d+")] = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:0`."""
    threads: Annotated[int, between(0, MOST_THREADS)] = 0
    """Torch threads while updating; 0 means all cores."""
    ram_gib: Annotated[float | None, above(0)] = None
    """Pretend this much memory."""
    vram_gib: Annotated[float | None, at_least(0)] = None
    """Pretend this much device memory."""
    cores: Annotated[int | None, at_least(1)] = None
    """Pretend this many cores."""


@dataclass(frozen=True)
class Launch:
    """How many processes train one run together, and what happens when one is lost."""

    processes: Annotated[int, at_least(1)] = 1
    """Processes per machine; each has its share of environments, rollout and minibatch."""
    nodes: Annotated[int, at_least(1)] = 1
    """Machines; each is given the same command."""
    meet: str = ""
    """`host:port` of the first machine, where all of them meet; empty with one machine."""
    address: str = ""
    """Under which the others reach this machine; empty means its name."""
    restarts: Annotated[int, at_least(0)] = 0
    """How often all processes start again after one was lost, from the last sound checkpoint."""
    timeout_s: Annotated[float, between(5, 86_400)] = 1800.0
    """Seconds that a process waits for the others; who works for all says once a second so."""
    scheduler: Annotated[str, one_of("", "slurm", "ray")] = ""
    """Who starts the processes on the machines; empty means you."""
    partition: str = ""
    account: str = ""
    minutes: Annotated[int, at_least(1)] = 60
    """Time that is asked of the scheduler; it warns two minutes before, and the run saves."""
    bandwidth_gbit: Annotated[float, above(0)] = 10.0
    """Between two machines, for the plan of what the network costs."""
    latency_ms: Annotated[float, at_least(0)] = 0.1
    """One way between two machines, for the same plan."""
    steps_per_second: Annotated[float, at_least(0)] = 0.0
    """Of one process alone, as a run prints it, for the same plan; 0 means unknown."""

    @property
    def size(self) -> int:
        """Processes of all machines together."""
        return self.nodes * self.processes


@dataclass(frozen=True)
class Sweep:
    """How runs share this machine with each other, in a sweep or side by side."""

    ledger: str = ""
    """File in which running ones reserve what they are planned to hold; empty means none."""
    budget_gib: Annotated[float | None, above(0)] = None
    """What they may hold together; None means what the machine has."""
    skip_impossible: bool = False
    """Pass over combinations that are refused."""


@dataclass(frozen=True)
class Tracking:
    """Where the numbers go, beside `metrics.jsonl` in the run folder."""

    wandb: Annotated[str, one_of("offline", "online", "disabled")] = "offline"
    """`offline`, `online` or `disabled`."""
    project: str = "frugal-rl"
    entity: str | None = None
    group: str | None = None
    tensorboard: bool = False


@dataclass(frozen=True)
class RunConfig:
    """Everything that one run is."""

    env: EnvConfig
    agent: AgentConfig
    algo: AlgoConfig
    memory: MemoryProfile
    vec: Any
    evaluation: Evaluation = field(default_factory=Evaluation)
    hardware: Hardware = field(default_factory=Hardware)
    tracking: Tracking = field(default_factory=Tracking)
    launch: Launch = field(default_factory=Launch)
    sweep: Sweep = field(default_factory=Sweep)
    seed: Annotated[int, SEED] = 0
    run_dir: str = "runs/latest"
    checkpoint_every_steps: Annotated[int, at_least(0)] = 0
    """Environment steps between checkpoints; 0 saves at the end only."""
    keep_checkpoints: Annotated[int, at_least(1)] = 3
    """Newest checkpoints that stay, beside the best."""
    resume: str | None = None
    """Run folder to continue from."""
    plan: Planning = Planning.arithmetic
    """`arithmetic`, or `probe`: refine it by a tiny run and real updates of this very run."""
    debug: bool = False
    """Look at every number that the environments give, instead of a sample."""
    visualization: bool = False
    """Draw what the trained policy does, where the environment offers pictures."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """The whole composed configuration as plain values, for checkpoints and W&B."""
    overrides: tuple[str, ...] = ()
    """The overrides that the user typed."""
    notes: tuple[str, ...] = ()
    """What composing it has to say: switches of a profile that nothing in this run reads."""
    composer: Callable[[Sequence[str]], RunConfig] | None = field(
        default=None, repr=False, compare=False
    )
    """Composes the run that other words would be; None where no configuration composed this one."""
    config_dir: str = ""
    """The folder of `--config-dir`, whose YAML files stand beside our own."""
    ranks: Any = field(default=None, repr=False, compare=False)
    """The `Ranks` that train this run together, once they have met; None alone."""
    split: int = field(default=1, repr=False, compare=False)
    """Into how many shares environments and minibatches were split, of which a plan is of one."""

    def variant(self, extra: Sequence[str]) -> RunConfig:
        """The same run with more overrides; a later word beats an earlier one of the same key."""
        if self.composer is None:
            raise ConfigError("A run that no configuration composed cannot be varied.")
        keys = {word.split("=")[0] for word in extra}
        kept = [word for word in self.overrides if word.split("=")[0] not in keys]
        varied = self.composer([*kept, *extra])
        return replace(varied, run_dir=self.run_dir, config_dir=self.config_dir)

    def encoding(self) -> Encoding:
        """How this run stores its observation."""
        return Encoding.choose(
            self.env.spec(),
            self.memory.storage,
            self.memory.frame_stack,
            self.memory.internal_observations,
            self.env.fields,
        )


RUN_FIELDS = frozenset(f.name for f in fields(RunConfig)) - {
    "resolved",
    "overrides",
    "notes",
    "composer",
    "split",
}
"""What a configuration says of a run."""
