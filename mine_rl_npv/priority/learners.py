"""Learners of one-shot priorities on the trainer's interface: evolution and policy gradient.

A priority is a score per block. Learning decodes whole schedules (two passes); the same scores
play the environment step by step, as logits of the columns' next blocks, so evaluation, video and
checkpoints are the trainer's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from frugal_rl.learn.networks import Fields, Network
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.update import ALONE
from frugal_rl.memory.part import Phase
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.decode import Decoder
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.priority.evolution import CovarianceAdaptation, EvolutionConfig
from mine_rl_npv.priority.gradient import GradientConfig, PriorityGradient
from mine_rl_npv.priority.task import Mine, PriorityTask
from mine_rl_npv.rules.features import VIEW, block_views

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv
    from mine_rl_npv.priority.config import EvolutionAlgo, ScheduleAlgo, ScheduleGradientAlgo
    from mine_rl_npv.rules.layout import MineLayout


class PriorityNetwork(Network):
    """Scores of the columns' next blocks: linear path beside a hidden layer; no value."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(len(VIEW), 1, bias=False)
        self.inner = nn.Linear(len(VIEW), hidden)
        self.outer = nn.Linear(hidden, 1, bias=False)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.outer.weight)
        with torch.no_grad():
            self.linear.weight[0, VIEW.index("best_prefix")] = 1.0

    def scores(self, features: Tensor) -> Tensor:
        """[..., len(VIEW)] -> [...]."""
        deep = self.outer(torch.tanh(self.inner(features)))
        return (self.linear(features) + deep).squeeze(-1)

    def actor(self, fields: Fields) -> Tensor:
        """Logits [B, C]."""
        columns = fields["columns"][:, : len(VIEW)].flatten(2).transpose(1, 2)
        return self.scores(columns)

    def critic(self, fields: Fields) -> Tensor:
        """Zero [B, 1]: whole schedules need no value of a state."""
        columns = fields["columns"]
        return torch.zeros(len(columns), 1, device=columns.device)


def mine_of(layout: MineLayout) -> Mine:
    """A mine of the environment, bounded and with the environment's own features."""
    bound = relaxation(layout.instance)
    problem = prepare(layout.instance)
    by_block = np.zeros((layout.instance.blocks, len(VIEW)), np.float32)
    by_block[layout.block] = block_views(layout)
    return Mine(problem, by_block[problem.inside], bound)


def build_policy(algo: ScheduleAlgo, run: RunConfig, vec_env: VectorEnv) -> FrugalPolicy:
    """The run's policy without a learner around it."""
    policy = FrugalPolicy(
        vec_env.encoding.policy_space(run.env.episode_steps),
        vec_env.action_space,
        lambda _: 1e-3,
        agent=run.agent,
        encoding=vec_env.encoding,
        tables=vec_env.tables,
    )
    return policy


class _ScheduleLearner(ABC):
    """Policy, task and book-keeping of both learners."""

    def __init__(self, algo: ScheduleAlgo, run: RunConfig, vec_env: VectorEnv) -> None:
        self.algo, self.vec_env, self.num_steps = algo, vec_env, 0
        self.ranks = run.ranks or ALONE
        self.mines = [mine_of(layout) for layout in algo.layouts(run)]
        self.task = PriorityTask(self.mines, Decoder.two_pass, algo.threads, run.ranks)
        self.seed = self.ranks.from_first(run.seed)  # all ranks draw the same candidates
        self.rng = np.random.default_rng(self.seed)
        self.policy = algo.build_policy(run, vec_env)
        vec_env.reset(run.seed)

    def chosen(self) -> list[int]:
        """Mines of this update."""
        count = min(self.algo.mines_per_update, len(self.mines))
        return self.rng.choice(len(self.mines), count, replace=False).tolist()

    def score(self, mine: Mine) -> np.ndarray:
        """Priorities (m,) of a mine by the policy's present weights."""
        with torch.no_grad():
            return self.policy.network.scores(torch.from_numpy(mine.features)).double().numpy()

    def parts(self) -> dict[str, int]:
        """Bytes of weights, search, features and graphs."""
        weights = sum(p.nbytes for p in self.policy.parameters())
        features = sum(m.features.nbytes for m in self.mines)
        graphs = [g for m in self.mines for g in (m.problem.graph, m.problem.graph.successors)]
        return {
            "parameters": weights,
            "search": self.search_bytes(),
            "features": features,
            "schedule graphs": sum(g.index.nbytes for g in graphs),
        }

    @abstractmethod
    def search_bytes(self) -> int:
        """Bytes of what the search holds for each weight."""

    def figures(self) -> dict[str, float]:
        """Mean gap to the certified bound of the present weights' schedules, of eight mines."""
        if not self.ranks.first:
            return {}
        shown = self.mines[:8]
        gaps = [100 * (1 - m.worth(m.decode(self.score(m), self.task.decoder))) for m in shown]
        return {"schedule/gap_percent": float(np.mean(gaps))}

    def placed(self, candidates: int, chosen: list[int]) -> int:
        """Blocks that the decoder placed for some candidates."""
        return candidates * sum(self.mines[i].problem.blocks for i in chosen)

    def base_state(self) -> dict[str, Any]:
        """What both keep."""
        return {
            "num_steps": self.num_steps,
            "policy": dict(self.policy.state_dict()),
            "rng": self.rng.bit_generator.state,
        }

    def load_base(self, state: dict[str, Any]) -> None:
        """Continue from `base_state`."""
        self.num_steps = int(state["num_steps"])
        self.policy.load_state_dict(state["policy"])
        self.rng.bit_generator.state = state["rng"]


class EvolutionLearner(_ScheduleLearner):
    """One generation per iteration; the policy carries the distribution's mean."""

    def __init__(self, algo: EvolutionAlgo, run: RunConfig, vec_env: VectorEnv) -> None:
        super().__init__(algo, run, vec_env)
        start = nn.utils.parameters_to_vector(self.policy.network.parameters())
        config = EvolutionConfig(algo.population, algo.sigma)
        self.search = CovarianceAdaptation(start.detach().numpy(), config, self.seed)

    def iterate(self, phase: Any) -> dict[str, float]:
        """Decode a population and move towards its better half."""
        chosen = self.chosen()
        with phase(Phase.rollout):
            candidates = self.search.ask()
            every = np.arange(len(candidates))
            keys = {n: self._keys(candidates[n], chosen) for n in every[self.task.own]}
            totals = [
                self.task.values(
                    lambda row, mine, place=place: keys[int(row)][place],
                    every,
                    [i],
                )
                for place, i in enumerate(chosen)
            ]
            values = np.mean(totals, axis=0)
        with phase(Phase.update):
            self.search.tell(candidates, values)
            self._show(self.search.mean)
        self.num_steps += self.placed(len(candidates), chosen)
        return {
            "schedule/best": float(values.max()),
            "schedule/mean": float(values.mean()),
            "schedule/sigma": float(self.search.sigma),
            **self.figures(),
        }

    def search_bytes(self) -> int:
        """Mean, paths, covariance and roots."""
        s = self.search
        held = (s.mean, s.path, s.step_path, s.covariance, s.root, s.inverse_root)
        return sum(a.nbytes for a in held)

    def _keys(self, weights: np.ndarray, chosen: list[int]) -> list[np.ndarray]:
        self._show(weights)
        return [self.score(self.mines[i]) for i in chosen]

    def _show(self, weights: np.ndarray) -> None:
        vector = torch.from_numpy(np.asarray(weights, np.float32))
        nn.utils.vector_to_parameters(vector, self.policy.network.parameters())

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        return self.base_state() | {"search": self.search.state()}

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        self.load_base(state)
        self.search.load(state["search"])


class GradientLearner(_ScheduleLearner):
    """One update of Adam per iteration."""

    def __init__(self, algo: ScheduleGradientAlgo, run: RunConfig, vec_env: VectorEnv) -> None:
        super().__init__(algo, run, vec_env)
        config = GradientConfig(algo.pairs, algo.sigma, algo.learning_rate)
        self.ascent = PriorityGradient(
            self.mines, self.task, self.seed, config, net=self.policy.network
        )

    def iterate(self, phase: Any) -> dict[str, float]:
        """Decode mirrored schedules and climb."""
        with phase(Phase.update):
            before = self.ascent.placed
            metrics = self.ascent.update()
        self.num_steps += self.ascent.placed - before
        return {f"schedule/{name}": value for name, value in metrics.items()} | self.figures()

    def search_bytes(self) -> int:
        """Gradients and Adam's two moments."""
        return 3 * sum(p.nbytes for p in self.policy.parameters())

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        return self.base_state() | {
            "optimizer": deepcopy(self.ascent.optimizer.state_dict()),
            "ascent_rng": self.ascent.rng.bit_generator.state,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        self.load_base(state)
        self.ascent.optimizer.load_state_dict(deepcopy(state["optimizer"]))
        self.ascent.rng.bit_generator.state = state["ascent_rng"]
