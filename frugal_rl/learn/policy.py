"""The policy: stored rows in, actions and values out. Works under Stable-Baselines3 as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from frugal_rl.errors import ConfigError
from frugal_rl.learn.actions import action_head, mask_logits
from frugal_rl.learn.networks import Network, Output
from frugal_rl.observation.decoder import DecodedFields, Decoder

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables

Rows = Mapping[str, Tensor]


class Actor(Protocol):
    """What collecting asks of a policy."""

    @property
    def device(self) -> torch.device:
        """Where rows are wanted."""

    @property
    def network(self) -> Network:
        """What may need labels."""

    def set_training_mode(self, mode: bool) -> None:
        """Batch norm and dropout learn, or not."""

    def __call__(self, obs: Rows, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions [B, ...], values [B, 1], log-probabilities [B]."""

    def predict_values(self, obs: Rows) -> Tensor:
        """Values [B, 1]."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: orthogonal weights differ in their last bits with the number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class FrugalPolicy(ActorCriticPolicy):
    """Decodes stored rows, runs the agent's network, masks what the spec's mask forbids.

    `preprocess_obs` is never called: stored types reach the decoder, which is the first layer for
    acting and learning alike.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        lr_schedule: Callable[[float], float],
        *,
        agent: Any,
        encoding: Encoding,
        tables: Tables,
        plugins: tuple[str, ...] = (),
        bf16: bool = False,
        recompute: bool = False,
        adam_eps: float = 1e-5,
        use_sde: bool = False,
    ) -> None:
        # ActorCriticPolicy's own constructor would build networks that are never used.
        BasePolicy.__init__(self, observation_space, action_space, normalize_images=False)
        if use_sde:
            raise ConfigError("State-dependent exploration is not offered by FrugalPolicy.")
        self.agent, self.use_sde, self.bf16 = agent, False, bf16
        self.decoder = Decoder(encoding, tables, plugins)
        self.mask_name = encoding.spec.action_mask
        self.head = action_head(action_space)
        with one_thread():
            self.network: Network = agent.build(encoding, tables, action_space)
        self.network.recompute = recompute
        self._one = [next(self.parameters())]  # in a list: no second parameter of the module
        self._adam: dict[str, Any] = {"lr": lr_schedule(1), "eps": adam_eps}

    @property
    def device(self) -> torch.device:
        """Where the parameters lie; Stable-Baselines3 walks over all modules to find one."""
        return self._one[0].device

    def precision(self) -> AbstractContextManager[Any]:
        """How the network computes: a context that changes nothing is not worth entering."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    @cached_property
    def optimizer(self) -> torch.optim.Optimizer:  # type: ignore[override]
        """Adam for Stable-Baselines3's own learners; ours have one of theirs and ask for none."""
        return torch.optim.Adam(self.parameters(), **self._adam)

    def extract_features(  # type: ignore[override]
        self, obs: Rows, features_extractor: BaseFeaturesExtractor | None = None
    ) -> DecodedFields:
        """Stored rows [B, ...] -> decoded fields, computed when a network reads them."""
        return self.decoder(obs)

    def outputs(self, obs: Rows) -> Output:
        """The network's masked output, value and extras, in float32."""
        fields = self.extract_features(obs)
        with self.precision():
            out = self.network(fields)
        return Output(self._mask(out.logits, fields), out.value.float(), out.losses, out.metrics)

    def _mask(self, logits: Tensor, fields: DecodedFields) -> Tensor:
        return mask_logits(logits.float(), fields[self.mask_name] if self.mask_name else None)

    def forward(  # type: ignore[override]
        self, obs: Rows, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions [B, ...], values [B, 1], log-probabilities [B]."""
        out = self.outputs(obs)
        actions, log_prob = self.head.act(out.logits, deterministic)
        return actions.reshape((-1, *cast(Any, self.action_space.shape))), out.value, log_prob

    def evaluate_actions(  # type: ignore[override]
        self, obs: Rows, actions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values [B, 1], log-probabilities [B] and entropies [B] of given actions."""
        out = self.outputs(obs)
        log_prob, entropy = self.head.evaluate(out.logits, actions, entropy=True)
        return out.value, log_prob, entropy

    def predict_values(self, obs: Rows) -> Tensor:  # type: ignore[override]
        """Values [B, 1]."""
        with self.precision():
            return self.network.critic(self.extract_features(obs)).float()

    def actor_output(self, obs: Rows) -> Tensor:
        """Masked logits, or means, [B, size]; the critic is not run."""
        fields = self.extract_features(obs)
        with self.precision():
            logits = self.network.actor(fields)
        return self._mask(logits, fields)

    def get_distribution(self, obs: Rows) -> Distribution:  # type: ignore[override]
        """Stable-Baselines3's distribution over actions."""
        return self.head.distribution(self.actor_output(obs))

    def _predict(self, observation: Rows, deterministic: bool = False) -> Tensor:  # type: ignore[override]
        return self.head.act(self.actor_output(observation), deterministic)[0]

    def reset_noise(self, n_envs: int = 1) -> None:
        """Nothing to reset: there is no state-dependent exploration."""
