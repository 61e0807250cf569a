"""Policy gradient on whole schedules: noisy priorities, one decision per episode.

Keys are Normal(score(features), sigma); the decoder turns them into a schedule, whose value is the
return (REINFORCE, Williams 1992). Mirrored pairs share their noise, so that the difference of a
pair's returns is the advantage: the baseline of each sample is its mirror.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from mine_rl_npv.priority.features import feature_names
from mine_rl_npv.priority.watch import Watch, going_on

if TYPE_CHECKING:
    from mine_rl_npv.priority.task import Mine, PriorityTask


@dataclass(frozen=True)
class GradientConfig:
    """Size and pace of the ascent."""

    pairs: int = 12
    """Mirrored pairs of schedules per update."""
    sigma: float = 0.15
    """Deviation of a key around its score; scores have unit deviation."""
    learning_rate: float = 0.01
    hidden: int = 24


class ScoreNet(nn.Module):
    """Scores from features: a linear path beside a hidden layer."""

    def __init__(self, features: int, hidden: int, guide: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 1, bias=False)
        self.inner = nn.Linear(features, hidden)
        self.outer = nn.Linear(hidden, 1, bias=False)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.outer.weight)
        with torch.no_grad():
            self.linear.weight[0, guide] = -1.0

    def scores(self, features: Tensor) -> Tensor:
        """[m, F] -> [m]."""
        deep = self.outer(torch.tanh(self.inner(features)))
        return (self.linear(features) + deep).squeeze(-1)


@dataclass
class Ascent:
    """What the gradient has learned."""

    net: ScoreNet
    value: float
    decodes: int
    seconds: float

    @torch.no_grad()
    def priority(self, features: np.ndarray) -> np.ndarray:
        """Priorities (m,) float64 without noise."""
        return self.net.scores(torch.from_numpy(features)).double().numpy()


def _guided(features: int, seed: int, config: GradientConfig) -> ScoreNet:
    """A network that starts as TopoSort, or as capacity pits where it sees no relaxation."""
    names = feature_names(relaxation=features == len(feature_names(True)))
    guide = "expected_period" if "expected_period" in names else "filled"
    torch.manual_seed(seed)
    return ScoreNet(features, config.hidden, names.index(guide))


class PriorityGradient:
    """One network on the mines of a task; `update` is one step of Adam."""

    def __init__(
        self,
        mines: list[Mine],
        task: PriorityTask,
        seed: int,
        config: GradientConfig,
        net: Any = None,
    ) -> None:
        """`net` is any module with `scores([m, F]) -> [m]`; None makes a `ScoreNet`."""
        self.mines, self.task, self.config = mines, task, config
        self.net = net if net is not None else _guided(mines[0].features.shape[1], seed, config)
        self.optimizer = torch.optim.Adam(self.net.parameters(), config.learning_rate)
        self.rng = np.random.default_rng(seed)
        self.inputs = [torch.from_numpy(mine.features) for mine in mines]
        self.decodes = 0
        self.placed = 0

    def update(self) -> dict[str, float]:
        """Samples mirrored schedules of one mine, and climbs."""
        i = int(self.rng.integers(len(self.mines)))
        score = self.net.scores(self.inputs[i])
        middle = score.detach().double().numpy()
        noise = self.rng.standard_normal((self.config.pairs, len(middle)))
        keys = np.concatenate(
            (middle + self.config.sigma * noise, middle - self.config.sigma * noise)
        )
        values = self.task.values(lambda key, mine: key, keys, [i])
        self.decodes += len(keys)
        self.placed += len(keys) * self.mines[i].problem.blocks
        half = self.config.pairs
        advantage = (values[:half] - values[half:]) / 2
        advantage /= max(float(np.abs(advantage).mean()), 1e-12)
        slope = torch.from_numpy((advantage @ noise / half / self.config.sigma).astype(np.float32))
        self.optimizer.zero_grad()
        (-(score * slope).mean()).backward()
        self.optimizer.step()
        return {"best": float(values.max()), "mean": float(values.mean())}

    def noiseless(self) -> float:
        """Mean relative value of the schedules of the scores themselves."""
        with torch.no_grad():
            keys = [net_scores.double().numpy() for net_scores in map(self.net.scores, self.inputs)]
        total = [
            mine.worth(mine.decode(key, self.task.decoder))
            for mine, key in zip(self.mines, keys, strict=True)
        ]
        return float(np.mean(total))


def ascend(
    mines: list[Mine],
    task: PriorityTask,
    seconds: float,
    seed: int,
    config: GradientConfig | None = None,
    decodes: int = 0,
    watch: Watch | None = None,
) -> Ascent:
    """Climbs for `seconds` or `decodes`, keeping the weights whose noiseless schedules were best.

    Ctrl-C ends it as the clock does.
    """
    run = PriorityGradient(mines, task, seed, config or GradientConfig())
    best, kept = -np.inf, None
    started = time.perf_counter()
    updates = 0
    try:
        while going_on(time.perf_counter() - started, seconds, run.decodes, decodes):
            run.update()
            updates += 1
            if updates % 5 == 0 or kept is None:
                value = run.noiseless()
                if value > best:
                    best = value
                    kept = {name: t.clone() for name, t in run.net.state_dict().items()}
            if watch is not None:
                watch(time.perf_counter() - started, run.decodes, best)
    except KeyboardInterrupt:
        if watch is not None:
            watch(float("nan"), run.decodes, best)
    if kept is not None:
        run.net.load_state_dict(kept)
    return Ascent(run.net, best, run.decodes, time.perf_counter() - started)
