"""Learners' configurations by hand: what they hand on, explore, refuse, and in which words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing
from frugal_rl.learn.agents import MlpAgent, NatureCnnAgent, is_image, observed_shape
from frugal_rl.learn.networks import channels_first, small_cnn
from frugal_rl.learn.off_policy import stacks_of
from frugal_rl.learn.off_policy_config import Auto, agent_of
from frugal_rl.learn.off_policy_kinds import (
    CrossQConfig,
    DqnConfig,
    QrDqnConfig,
    SacConfig,
    Td3Config,
    TqcConfig,
)
from frugal_rl.learn.on_policy_config import Terms
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.prioritised import PrioritisedDQN
from frugal_rl.learn.ranks import Ranks
from frugal_rl.learn.schedules import Linear
from frugal_rl.learn.transitions import TransitionCollector
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import EPISODE, ObservationSpec, Static, Stored
from frugal_rl.store.dense import DenseMinibatch
from frugal_rl.store.pixels import spread_table
from frugal_rl.store.priorities import PrioritisedDictReplayBuffer
from frugal_rl.store.replay import DictReplayBuffer
from frugal_rl.testing.refusals import text_of
from frugal_rl.testing.toy import TOY_SPEC

ACTIONS = spaces.Discrete(3), spaces.Box(-1, 1, (2,))


@pytest.mark.parametrize(
    ("config", "kind", "own", "networks"),
    [
        (DqnConfig(), "DQN",
         {"tau": 1.0, "target_update_interval": 10_000, "exploration_fraction": 0.1,
          "exploration_initial_eps": 1.0, "exploration_final_eps": 0.05, "max_grad_norm": 10.0},
         (1, 1)),
        (QrDqnConfig(), "QRDQN",
         {"tau": 1.0, "target_update_interval": 10_000, "exploration_fraction": 0.1,
          "exploration_initial_eps": 1.0, "exploration_final_eps": 0.01, "max_grad_norm": 10.0},
         (1, 1)),
        (SacConfig(), "SAC", {"tau": 0.005}, (3, 2)),
        (TqcConfig(tau=0.1), "TQC", {"tau": 0.1}, (3, 2)),
        (Td3Config(), "TD3", {"tau": 0.005}, (3, 3)),
        (CrossQConfig(), "CrossQ", {}, (3, 0)),
    ],
)  # fmt: skip
def test_an_algorithm_hands_on_its_own_options_and_counts_its_networks(config, kind, own, networks):
    discrete = isinstance(config, DqnConfig)

    assert (config.kind, config.options(), config.networks) == (kind, own, networks)
    assert config.algorithm().__name__ == kind
    config.check(ACTIONS[not discrete])
    words = ("one of a number", "sac, td3, tqc or crossq") if discrete else (
        "vectors of numbers", "dqn or qr_dqn",
    )  # fmt: skip
    wrong = ACTIONS[discrete]
    assert text_of(ConfigError, lambda: config.check(wrong)) == (
        f"{kind} chooses actions that are {words[0]}; these are {wrong}. Choose algo={words[1]} "
        "where they fit, or algo=ppo."
    )


def test_a_tiny_learner_keeps_few_transitions_and_learns_at_once():
    config = DqnConfig(batch_size=7, gamma=0.5)

    assert config.tiny() == replace(
        config, buffer_size=64, learning_starts=8, train_freq=1, gradient_steps=1
    )


def test_a_missing_library_is_named_with_the_command_that_installs_it():
    class Elsewhere(QrDqnConfig):
        room = "no_such_room"

    assert text_of(ConfigError, Elsewhere().algorithm) == (
        f"QRDQN comes with no-such-room: {installing('contrib')}"
    )
    assert text_of(ConfigError, lambda: QrDqnConfig(prioritised=True)) == (
        "algo.prioritised=true is offered by algo=dqn; QR-DQN draws uniformly. Choose algo=dqn, or "
        "leave it out."
    )


def test_priorities_choose_the_learner_and_the_replay_that_know_them():
    config = DqnConfig(prioritised=True, priority_exponent=0.3, importance_exponent=0.2)

    made, kept = config.algorithm(), config.replay_class()
    assert (made.func, made.keywords) == (PrioritisedDQN, {"importance_exponent": 0.2})
    assert (kept.func, kept.keywords) == (PrioritisedDictReplayBuffer, {"alpha": 0.3})
    assert DqnConfig().replay_class() is DictReplayBuffer


def test_a_size_is_that_which_was_given():
    assert DqnConfig(buffer_size=5).size(None) == 5
    assert DqnConfig(buffer_size=Auto.auto).buffer_size is Auto.auto


def test_exploration_takes_random_actions_at_its_rate_and_noise_stays_in_its_bounds():
    best, drawn = np.zeros(1000, int), np.ones(1000, int)
    rng = np.random.default_rng(0)
    taken = DqnConfig().explore(SimpleNamespace(exploration_rate=0.3), best, drawn, rng)
    assert taken.mean() == pytest.approx(0.3, abs=0.04)
    assert (taken == (np.random.default_rng(0).random(1000) < 0.3)).all()
    means = np.tile(np.array([[0.0, 0.95]], np.float32), (500, 1))
    noisy = Td3Config(action_noise=0.2).explore(None, means, means, rng)
    assert noisy.dtype == np.float32
    assert noisy[:, 0].std() == pytest.approx(0.2, abs=0.03)
    assert noisy.max() == 1.0
    assert SacConfig().explore(None, means, means, rng) is means


def test_an_agent_without_features_cannot_stand_before_anothers_networks():
    run = SimpleNamespace(agent=MlpAgent())
    assert agent_of(run, "DQN") is run.agent
    run.agent = SimpleNamespace(name="attention")
    assert text_of(ConfigError, lambda: agent_of(run, "DQN")) == (
        "DQN puts its own networks behind the agent's features, which agent=attention does not "
        "offer; choose agent=mlp, agent=cnn or agent=nature_cnn."
    )


def test_frames_are_as_many_as_a_window_shows_and_one_of_a_whole_episode():
    stacks = stacks_of(Encoding.choose(TOY_SPEC))

    assert stacks == {
        "map_id": 1, "action_mask": 1, "position": 1, "speed": 1, "trail": 3, "moves": 1,
    }  # fmt: skip


def test_ppos_terms_follow_their_schedules():
    config = PpoConfig(clip_range=Linear(0.4, 0.2), clip_range_vf=Linear(1.0), ent_coef=0.01,
                       vf_coef=0.7, max_grad_norm=2.0, target_kl=0.03)  # fmt: skip

    assert config.terms(0.5) == Terms(pytest.approx(0.3), 0.5, 0.01, 0.7, True, 2.0, 0.03)
    assert PpoConfig().terms(0.5).clip_range_vf is None
    assert text_of(ConfigError, lambda: PpoConfig(num_envs=1, n_steps=1)) == (
        "One step of one environment has no deviation to normalise by; raise algo.n_steps or set "
        "algo.normalize_advantage=false."
    )
    PpoConfig(num_envs=1, n_steps=2)


FRAME = Stored("frame", (8, 9), np.uint8, 0, 255)
FIELDS = (
    FRAME,
    Stored("stack", (8, 8), np.uint8, 0, 255, window=4),
    Stored("thin", (7, 99), np.uint8, 0, 255),
    Stored("wide", (90, 92), np.float32),
    Static("walls", (8, 8), np.uint8, table="map"),
    Stored("log", (1,), np.int8, window=EPISODE),
)


def test_what_has_two_axes_of_eight_bytes_is_a_picture():
    assert [f.name for f in FIELDS if is_image(f)] == ["frame", "stack", "walls"]
    assert observed_shape(FIELDS[1]) == (4, 8, 8)


def test_an_agent_reads_pictures_and_what_is_small_or_what_it_was_told():
    encoding = Encoding.choose(ObservationSpec(FIELDS))

    assert [f.name for f in MlpAgent().fields(encoding)] == ["frame", "stack", "thin", "walls"]
    assert [f.name for f in MlpAgent(largest_field=8280).fields(encoding)][3] == "wide"
    assert "wide" not in [f.name for f in MlpAgent(largest_field=8279).fields(encoding)]
    assert [f.name for f in MlpAgent(read=("wide", "log")).fields(encoding)] == ["wide", "log"]
    assert text_of(ConfigError, lambda: MlpAgent(read=("wid", "a")).fields(encoding)) == (
        "agent.read names ['a', 'wid']; this environment observes ['frame', 'log', 'stack', "
        "'thin', 'walls', 'wide']."
    )
    only = Encoding.choose(ObservationSpec((FIELDS[3],)))
    assert text_of(ConfigError, lambda: MlpAgent().fields(only)) == (
        "No observed field has at most 8192 values; raise agent.largest_field, name fields in "
        "agent.read, or choose another agent."
    )


@pytest.mark.parametrize("layer", [(16, 8), (16, 0, 4), (16, 8, 4, 2)])
def test_a_convolution_has_three_positive_numbers(layer):
    assert text_of(ConfigError, lambda: MlpAgent(convolutions=(layer,))) == (
        f"agent.convolutions has {list(layer)}; give [channels,kernel,stride] of each layer, for "
        "instance [[16,8,4],[32,4,2]]."
    )


def test_small_pictures_are_read_by_a_linear_layer_alone_and_others_by_their_convolutions():
    tiny, large = small_cnn((3, 10, 12), 5), small_cnn((3, 20, 24), 5)

    assert [type(m).__name__ for m in tiny] == ["Flatten", "Linear", "ReLU"]
    assert tiny[1].in_features == 360
    names = ["Conv2d", "ReLU", "Conv2d", "ReLU", "Flatten", "Linear", "ReLU"]
    assert [type(m).__name__ for m in large] == names
    assert (large[5].in_features, large[5].out_features) == (32 * 1 * 1, 5)
    assert text_of(ConfigError, lambda: NatureCnnAgent().cnn()((3, 35, 99), 5)) == (
        "agent=nature_cnn needs pictures of at least 36 x 36, got 35 x 99; choose agent=mlp."
    )


@pytest.mark.parametrize(
    ("shape", "order"),
    [((2, 9, 8), (2, 1, 9, 8)), ((2, 3, 9, 8), (2, 3, 9, 8)), ((2, 9, 8, 3), (2, 3, 9, 8)),
     ((2, 4, 9, 8, 3), (2, 12, 9, 8))],
)  # fmt: skip
def test_the_two_largest_axes_are_the_picture(shape, order):
    assert channels_first(torch.zeros(shape)).shape == order


def test_a_rank_says_which_size_can_be_split():
    ranks = Ranks(0, 3)

    assert ranks.share(9, "algo.num_envs") == 3
    for count, most in ((10, 9), (11, 12), (1, 3)):
        assert text_of(ConfigError, lambda c=count: ranks.share(c, "algo.num_envs")) == (
            f"algo.num_envs={count} cannot be split evenly over 3 processes; use "
            f"algo.num_envs={most}."
        )


def collector(space, mask=None) -> TransitionCollector:
    spec = ObservationSpec((Stored("x", (1,), np.float32, -9, 9),))
    encoding = Encoding.choose(spec)
    vec = SimpleNamespace(encoding=encoding, action_space=space, num_envs=400)
    made = TransitionCollector(vec, None, History(encoding, 400), None)
    made.rng = np.random.default_rng(0)
    return made


def test_boxes_are_drawn_between_minus_one_and_one_and_stepped_in_their_units():
    low, high = np.array([-2.0, 10.0], np.float32), np.array([4.0, 20.0], np.float32)
    made = collector(spaces.Box(low, high))
    drawn = made.random_actions()

    assert (drawn.shape, drawn.dtype) == ((400, 2), np.float32)
    assert -1 <= drawn.min() < -0.9 < 0.9 < drawn.max() <= 1
    scaled = made._in_units(np.array([[-1, -1], [0, 0], [1, 1], [0.5, -0.5]], np.float32))
    assert scaled.tolist() == [[-2, 10], [1, 15], [4, 20], [2.5, 12.5]]
    assert scaled.dtype == np.float32


def test_choices_are_drawn_from_all_that_there_are_and_stepped_as_they_are():
    made = collector(spaces.Discrete(3, start=5))
    drawn = made.random_actions()

    assert np.bincount(drawn, minlength=8)[5:].min() > 100
    assert set(drawn.tolist()) == {5, 6, 7}
    assert made._in_units(drawn) is drawn


class Noted:
    """Notes what a learner logs."""

    def __init__(self) -> None:
        self.said = {}

    def record(self, name, value, exclude=None) -> None:
        self.said[name] = (value, exclude)


def prioritised(remaining: float, exponent: float) -> PrioritisedDQN:
    """A learner without a network, whose losses are 1, 2 and 3."""
    made = PrioritisedDQN.__new__(PrioritisedDQN)
    made.importance_exponent, made._current_progress_remaining = exponent, remaining
    made.policy = SimpleNamespace(set_training_mode=lambda mode: None, optimizer=None)
    made._update_learning_rate = lambda optimizer: None
    made.replay_buffer, made._n_updates, made._logger = SimpleNamespace(), 4, Noted()
    losses = iter((1.0, 2.0, 3.0))
    made._update = lambda size: next(losses)
    return made


@pytest.mark.parametrize(("remaining", "beta"), [(1.0, 0.4), (0.5, 0.7), (0.0, 1.0)])
def test_importance_rises_to_one_and_losses_are_logged_by_their_mean(remaining, beta):
    made = prioritised(remaining, 0.4)
    made.train(3, 10)

    assert made.replay_buffer.beta == pytest.approx(beta)
    assert made._n_updates == 7
    assert made._logger.said == {
        "train/n_updates": (7, "tensorboard"), "train/loss": (2.0, None),
    }  # fmt: skip


def test_targets_are_rewards_and_the_discounted_best_of_what_goes_on():
    made = PrioritisedDQN.__new__(PrioritisedDQN)
    made.gamma = 0.5
    made.q_net_target = lambda rows: torch.tensor([[1.0, 8.0], [2.0, -2.0]])
    made.q_net = lambda rows: torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    drawn = SimpleNamespace(
        observations=None, next_observations=None, discounts=None,
        rewards=torch.tensor([[10.0], [20.0]]), dones=torch.tensor([[0.0], [1.0]]),
        actions=torch.tensor([[1], [0]]),
    )  # fmt: skip

    assert made._targets(drawn).tolist() == [[14.0], [20.0]]
    assert made._values(drawn).tolist() == [[2.0], [3.0]]
    drawn.discounts = torch.tensor([[0.25], [0.25]])
    assert made._targets(drawn).tolist() == [[12.0], [20.0]]


def test_four_pixels_of_a_byte_are_spread_over_four_bytes():
    table = spread_table()

    for byte in (0, 1, 0b11, 0b1100, 0b110000, 0b11000000, 0b11100100, 255):
        pixels = [byte >> 2 * i & 3 for i in range(4)]
        assert int(table[byte]).to_bytes(8, "little") == bytes([*pixels, 0, 0, 0, 0])
    assert (table.shape, table.dtype) == ((256,), np.uint64)


def test_a_plain_rollout_is_no_dense_minibatch():
    plain = SimpleNamespace(encoding=None)

    assert text_of(ValueError, lambda: DenseMinibatch(plain, None, 3)) == (
        "A rollout without an encoding delivers plain arrays by itself."
    )
