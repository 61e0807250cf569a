"""Masks, action heads and networks."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.learn.actions import action_head, mask_logits
from frugal_rl.learn.agents import MlpAgent, NatureCnnAgent, is_image
from frugal_rl.learn.networks import channels_first
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.memory import MemoryProfile, Storage
from frugal_rl.observation.decoder import to_tensors
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.testing.toy import Toy

torch.set_num_threads(1)


def policy_on(spec, action_space, agent, storage=Storage.lossless):
    encoding = Encoding.choose(spec, storage)
    return FrugalPolicy(
        encoding.policy_space(), action_space, lambda _: 1e-3,
        agent=agent, encoding=encoding, tables=Tables(),
    )  # fmt: skip


def toy_policy(num_envs=64):
    toy = Toy()
    encoding = Encoding.choose(toy.spec(), Storage.lossless)
    env = toy.make_vec(num_envs, encoding, MemoryProfile(), None, "train")
    history = History(encoding, num_envs, 20)
    policy = FrugalPolicy(
        encoding.policy_space(20), env.action_space, lambda _: 1e-3,
        agent=MlpAgent(), encoding=encoding, tables=env.tables,
    )  # fmt: skip
    return policy, env, history


def test_no_forbidden_action_is_taken_in_ten_thousand_steps():
    policy, env, history = toy_policy()
    rows = history.reset(env.reset(0))
    for _ in range(160):
        tensors = to_tensors(rows, torch.device("cpu"))
        with torch.no_grad():
            actions, _, log_prob = policy(tensors)
        allowed = policy.decoder(tensors)["action_mask"]
        assert allowed.gather(1, actions[:, None]).all()
        assert torch.isfinite(log_prob).all()
        step = env.step(actions.numpy())
        rows, _ = history.push(step.rows, step.done)


def test_acting_and_evaluating_give_the_same_log_probability_and_value():
    policy, env, history = toy_policy()
    tensors = to_tensors(history.reset(env.reset(3)), torch.device("cpu"))
    actions, values, log_prob = policy(tensors)
    values_again, log_prob_again, _ = policy.evaluate_actions(tensors, actions)
    assert torch.equal(log_prob, log_prob_again)
    assert torch.equal(values, values_again)
    assert torch.equal(values, policy.predict_values(tensors))


def test_entropy_counts_allowed_actions_only_and_forbidden_ones_get_no_gradient():
    logits = torch.zeros(1, 4, requires_grad=True)
    mask = torch.tensor([[True, False, True, False]])
    head = action_head(spaces.Discrete(4))
    log_prob, entropy = head.evaluate(mask_logits(logits, mask), torch.tensor([2]), True)
    (log_prob + entropy).sum().backward()
    assert entropy.item() == pytest.approx(math.log(2))
    assert logits.grad[0, [1, 3]].tolist() == [0.0, 0.0]
    assert torch.isfinite(logits.grad).all()


every_head = pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(5),
        spaces.Box(-1, 1, (3,), np.float32),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(4),
    ],
    ids=lambda s: type(s).__name__,
)


@every_head
@pytest.mark.parametrize(("learns", "entropy"), [(True, True), (True, False), (False, True)])
def test_entropy_has_a_gradient_where_it_is_asked_for_and_gradients_are_kept(
    space, learns, entropy
):
    head = action_head(space)
    output = torch.randn(6, head.size, requires_grad=True)
    actions, _ = head.act(output, deterministic=False)
    with torch.set_grad_enabled(learns):
        log_prob, spread = head.evaluate(output, actions, entropy)

    assert log_prob.requires_grad is learns
    # Gaussian entropy depends on the deviation alone, which is a parameter
    assert spread.requires_grad is (learns and entropy)


@every_head
def test_heads_equal_the_distributions_of_stable_baselines3(space):
    head = action_head(space)
    output = torch.randn(6, head.size)
    torch.manual_seed(1)
    actions, log_prob = head.act(output, deterministic=False)
    torch.manual_seed(1)
    distribution = head.distribution(output)
    assert torch.equal(actions, distribution.get_actions())
    assert torch.equal(log_prob, distribution.log_prob(actions))
    again, entropy = head.evaluate(output, actions, entropy=True)
    assert torch.equal(again, log_prob)
    assert torch.equal(entropy, distribution.entropy())
    most_likely, _ = head.act(output, deterministic=True)
    assert torch.equal(most_likely, distribution.get_actions(deterministic=True))


def test_an_unknown_action_space_is_refused_in_words():
    with pytest.raises(TypeError, match="Text"):
        action_head(spaces.Text(3))


@pytest.mark.parametrize(
    ("shape", "first"), [((84, 84), 1), ((84, 84, 1), 1), ((4, 84, 84), 4), ((4, 60, 80, 3), 12)]
)
def test_pictures_of_every_layout_become_channels_first(shape, first):
    images = torch.zeros(2, *shape, dtype=torch.uint8)
    assert channels_first(images).shape == (2, first, *(n for n in shape if n >= 60))


def test_stacked_pictures_are_read_by_the_nature_cnn():
    spec = ObservationSpec((Stored("screen", (84, 84), np.uint8, 0, 255, window=4),))
    policy = policy_on(spec, spaces.Discrete(3), NatureCnnAgent())
    rows = {
        "screen": torch.randint(255, (2, 4, 84, 84), dtype=torch.uint8),
        "age": torch.ones(2, 1),
    }
    assert is_image(spec.fields[0])
    read = [m for m in policy.network.embedding.cnns["screen"] if isinstance(m, torch.nn.Conv2d)]
    assert [(*m.weight.shape, *m.stride) for m in read] == [  # Mnih et al. 2015
        (32, 4, 8, 8, 4, 4),
        (64, 32, 4, 4, 2, 2),
        (64, 64, 3, 3, 1, 1),
    ]
    assert policy.outputs(rows).logits.shape == (2, 3)


def test_pictures_may_have_names_that_torch_takes_for_no_module():
    names = ("a.b", "type", "keys", "frame")
    spec = ObservationSpec(tuple(Stored(n, (40, 40), np.uint8, 0, 255) for n in names))
    policy = policy_on(spec, spaces.Discrete(3), MlpAgent())
    rows = {n: torch.randint(255, (2, 40, 40), dtype=torch.uint8) for n in names}
    before = policy.outputs(rows).logits
    for name in names:
        assert not torch.equal(policy.outputs(rows | {name: rows[name] // 2}).logits, before)
    assert list(policy.network.embedding.cnns) == ["field 0", "field 1", "field 2", "frame"]


def test_channels_last_gives_the_same_outputs_and_gradients_up_to_rounding():
    spec = ObservationSpec((Stored("frame", (84, 84), np.uint8, 0, 255, window=4),))
    rows = {
        "frame": torch.randint(0, 255, (8, 4, 84, 84), dtype=torch.uint8),
        "age": torch.full((8, 1), 3, dtype=torch.int32),
    }
    outputs, gradients, seen = [], [], []
    for last in (False, True):
        torch.manual_seed(0)
        agent = NatureCnnAgent(channels_last=last)
        policy = policy_on(spec, spaces.Discrete(4), agent)
        first = policy.network.embedding.cnns["frame"][0]
        first.register_forward_hook(lambda m, x, y: seen.append(y.stride(1)))
        out = policy.outputs(rows)
        (out.logits.sum() + out.value.sum()).backward()
        outputs.append(out.logits)
        gradients.append(first.weight.grad)

    assert seen == [400, 1]
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("side", [84, 8])  # by convolutions, by one linear layer alone
def test_the_mean_of_pixels_is_taken_off_before_the_first_layer(side):
    spec = ObservationSpec((Stored("frame", (side, 2 * side), np.uint8, 0, 255),))
    rows = {"frame": torch.full((3, side, 2 * side), 204, dtype=torch.uint8)}  # 0.8 everywhere
    torch.manual_seed(0)
    plain, centred = (
        policy_on(spec, spaces.Discrete(4), MlpAgent(pixel_mean=mean)) for mean in (0.0, 0.8)
    )
    centred.load_state_dict(plain.state_dict())
    black = {"frame": torch.zeros_like(rows["frame"])}

    torch.testing.assert_close(centred.outputs(rows).logits, plain.outputs(black).logits)
    assert not torch.equal(centred.outputs(rows).logits, plain.outputs(rows).logits)
    pixels = centred.network.embedding.pixels_of(rows, "frame")  # as the compiled engine reads
    assert pixels.abs().max() < 1e-6


def test_small_pictures_for_the_nature_cnn_are_refused_in_words():
    spec = ObservationSpec((Stored("screen", (20, 20), np.uint8, 0, 255),))
    with pytest.raises(ConfigError, match="agent=mlp"):
        policy_on(spec, spaces.Discrete(3), NatureCnnAgent())


def test_fields_too_large_for_a_perceptron_are_left_out_unless_named():
    spec = ObservationSpec((Stored("big", (100, 100), np.float32), Stored("x", (2,), np.float32)))
    encoding = Encoding.choose(spec, Storage.dense)
    assert [f.name for f in MlpAgent().fields(encoding)] == ["x"]
    assert [f.name for f in MlpAgent(read=("big",)).fields(encoding)] == ["big"]
    with pytest.raises(ConfigError, match=r"agent\.read"):
        MlpAgent(read=("bog",)).fields(encoding)


def test_whole_numbers_are_scaled_by_their_declared_bound():
    spec = ObservationSpec((Stored("count", (2,), np.int32, 0, 50), Stored("flag", (1,), np.bool_)))
    network = policy_on(spec, spaces.Discrete(2), MlpAgent(), Storage.dense).network
    fields = {"count": torch.tensor([[25, 50]]), "flag": torch.tensor([[True]])}
    embedded = network.embedding(fields, network.run)
    assert embedded.tolist() == [[0.5, 1.0, 1.0]]


def test_bf16_outputs_are_float32_and_near():
    spec = ObservationSpec((Stored("x", (64,), np.float32),))
    policy = policy_on(spec, spaces.Discrete(3), MlpAgent(actor=(64,), critic=(64,)))
    rows = {"x": torch.rand(8, 64)}
    exact = policy.outputs(rows)
    policy.bf16 = True
    rounded = policy.outputs(rows)
    assert rounded.logits.dtype == rounded.value.dtype == torch.float32
    assert not torch.equal(exact.value, rounded.value)
    torch.testing.assert_close(exact.value, rounded.value, atol=0.05, rtol=0.05)


def test_the_first_weights_do_not_depend_on_the_number_of_threads():
    spec = ObservationSpec((Stored("seen", (600,), np.float32, -1, 1),))
    weights = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        policy = policy_on(spec, spaces.Discrete(3), MlpAgent(actor=(512, 512), critic=(512,)))
        weights.append(policy.state_dict())
        assert torch.get_num_threads() == threads
    torch.set_num_threads(1)

    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
