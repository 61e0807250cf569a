"""Hyperparameter files of RL Baselines3 Zoo become overrides of ours, or are refused by key."""

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, DataError, FrugalError
from frugal_rl.learn.schedules import Linear
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run
from frugal_rl.run.zoo.expressions import Named, read_expression
from frugal_rl.run.zoo.words import translated, written
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.vec_env.registered import Registered

FILE = """
CartPole-v1: &cartpole
  n_envs: 8
  n_timesteps: !!float 1e5
  policy: 'MlpPolicy'
  n_steps: 32
  batch_size: 256
  gae_lambda: 0.8
  n_epochs: 20
  ent_coef: 0.0
  learning_rate: lin_0.001
  clip_range: 7e-2
MountainCar-v0:
  <<: *cartpole
  frame_stack: 3
  normalize: "{'norm_obs': False, 'norm_reward': True}"
  policy_kwargs: "dict(activation_fn=nn.ReLU, net_arch=[dict(pi=[32], vf=[16, 8])])"
Acrobot-v1:
  <<: *cartpole
  KEY
atari:
  policy: CnnPolicy
  frame_stack: 4
  env_wrapper: [{a.B: {skip: 2, name: "it's"}}, c.D]
"""


@pytest.fixture
def words(tmp_path):
    """Words of one entry, with a line of its own."""

    def of(env, *more, line="n_epochs: 1"):
        (tmp_path / "ppo.yml").write_text(FILE.replace("KEY", line))
        file = f"zoo.file={tmp_path}/ppo.yml"
        return translated(["algo=zoo", f"zoo.env={env}", file, *more])

    return of


def test_an_entry_says_all_that_stable_baselines_would_take(words):
    run = compose_run([*words("CartPole-v1", "algo.n_steps=16"), "tracking=disabled"])

    assert (run.env.id, run.algo.num_envs, run.algo.total_steps) == ("CartPole-v1", 8, 100_000)
    assert run.algo.learning_rate == Linear(0.001)
    assert (run.algo.clip_range, run.algo.gamma, run.algo.n_epochs) == (0.07, 0.99, 20)
    assert run.algo.n_steps == 16  # what was typed beside it wins
    assert not run.algo.batched_bootstrap


def test_layers_rewards_and_stacks_are_read_from_text(words):
    run = compose_run([*words("MountainCar-v0"), "tracking=disabled"])

    assert (run.agent.actor, run.agent.critic) == ((32,), (16, 8))
    assert run.agent.activation.name == "relu"
    assert run.algo.reward_normalisation
    assert run.env.spec().by_name["observation"].observed_shape == (3, 2)


def test_all_games_share_the_entry_of_atari(words):
    said = words("PongNoFrameskip-v4")

    assert "env.frame_stack=4" in said
    assert "agent=nature_cnn" in said
    assert r"env.wrappers=[{wrapper:a.B,kwargs:{skip:2,name:'it\'s'}},{wrapper:c.D}]" in said
    with pytest.raises(ConfigError, match=r"no entry for zoo\.env=CartPol-v1.*'CartPole-v1'"):
        words("CartPol-v1")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("normalize: true", "normalize"),
        ("use_sde: true", "use_sde"),
        ("vec_env_wrapper: a.B", "vec_env_wrapper"),
        ("learning_rate: cosine", "learning_rate"),
        ("policy: MlpLstmPolicy", "policy"),
        ('policy_kwargs: "dict(ortho_init=False)"', r"policy_kwargs\.ortho_init"),
        ('policy_kwargs: "dict(activation_fn=nn.GELU)"', "policy_kwargs"),
        ("policy_kwargs: \"__import__('os').abort()\"", "policy_kwargs.*would have to be run"),
        ('policy_kwargs: "dict(net_arch=[2**9])"', "policy_kwargs.*would have to be run"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_its_key(words, line, names):
    with pytest.raises(ConfigError, match=rf"'Acrobot-v1' in ppo\.yml sets {names}"):
        words("Acrobot-v1", line=line)
    key = line.partition(":")[0] + (".ortho_init" if "ortho" in line else "")
    assert "algo.n_steps=32" in words("Acrobot-v1", f"zoo.without=[{key}]", line=line)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (["zoo.env=Pong"], r"without algo=zoo"),
        (["algo=zoo"], r"zoo\.env=CartPole-v1"),
        (["algo=zoo", "zoo.enw=a"], r"zoo\.enw is no option; did you mean 'env'"),
        (["algo=zoo", "zoo.env=a", "zoo.algo=a2c"], r"zoo\.algo=a2c has no learner"),
        (["algo=zoo", "zoo.env=a", "zoo.file=/none.yml"], r"/none\.yml cannot be read"),
    ],
)
def test_words_that_name_nothing_are_refused(given, match):
    with pytest.raises((ConfigError, DataError), match=match):
        translated(given)


def test_a_replays_entry_counts_minibatches_by_steps(tmp_path):
    entry = "n_envs: 2\n  train_freq: 8\n  gradient_steps: -1\n  buffer_size: !!float 1e5\n"
    (tmp_path / "dqn.yml").write_text(f"CartPole-v1:\n  {entry}  policy: MlpPolicy\n")
    given = ["algo=zoo", "zoo.env=CartPole-v1", "zoo.algo=dqn", f"zoo.file={tmp_path}/dqn.yml"]
    run = compose_run([*given, "tracking=disabled"])

    assert (run.algo.gradient_steps, run.algo.buffer_size, run.algo.tau) == (16, 100_000, 1.0)
    assert run.agent.activation.name == "relu"


def test_expressions_are_read_and_never_run():
    assert read_expression("dict(a=nn.ReLU, b=-1.5, c=(1, 2))") == {
        "a": Named("nn.ReLU"),
        "b": -1.5,
        "c": [1, 2],
    }
    for text in ("f()", "[x for x in y]", "a if b else c", "dict(**a)", "{1: 2}", "1 +", "(" * 999):
        with pytest.raises(DataError):
            read_expression(text)


def test_values_are_written_as_hydra_reads_them():
    assert written({"a": [1, 2.5, None, True], "b": "x y"}) == "{a:[1,2.5,null,true],b:'x y'}"
    assert written("ALE/Pong-v5") == "ALE/Pong-v5"
    assert written("true") == "'true'"


def test_a_stack_is_held_once_and_shown_whole():
    """Frames that the environment shows one by one, as the policy is shown them."""
    config = Registered(id="CartPole-v1", frame_stack=3)
    encoding = Encoding.choose(config.spec())
    vec_env = config.make_vec(2, encoding, MemoryProfile(), None, "train")
    history = History(encoding, 2)
    shown, zeros = history.reset(vec_env.reset(0)), np.zeros(2)
    space = encoding.policy_space()
    buffer = RolloutBuffer(512, space, vec_env.action_space, "cpu", n_envs=2, encoding=encoding)
    kept = []
    for t in range(512):
        kept.append(shown["observation"].copy())
        buffer.add(shown, zeros[:, None], zeros, zeros, zeros, zeros)
        step = vec_env.step(np.full(2, t % 2))
        shown, _ = history.push(step.rows, step.done, step.final_index, step.final_rows)
    t, n = np.divmod(np.arange(1024), 2)
    drawn = buffer.observations_at(t, n)["observation"].numpy()

    assert drawn.tobytes() == np.array(kept).reshape(1024, 3, 4).tobytes()
    assert not kept[0][:, :2].any()
    assert (kept[1][:, 1] == kept[0][:, 2]).all()
    assert buffer.columns["observation"].nbytes < 0.6 * 1024 * 48


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("n_timesteps: '[1]*999999999'", "n_timesteps"),
        ("n_timesteps: .nan", "n_timesteps"),
        ("n_envs: {a: 1}", "n_envs"),
        ("n_envs: 1e400", "n_envs"),
        ("env_wrapper: {}", ""),
        ("env_wrapper: {a: 1}", "env_wrapper"),
        ("env_wrapper: [{}]", "env_wrapper"),
        ("frame_stack: [[]]", ""),
        ('clip_range: "\\x1b[2J"', "clip_range"),
        ('policy: "\\x1b[2J"', "policy"),
        ("policy_kwargs: 'dict(net_arch=[[[]]])'", ""),
        ("normalize: [1]", ""),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_key_in_one_line(line, key, words):
    with pytest.raises(FrugalError) as refused:
        compose_run([*words("Acrobot-v1", line=line), "tracking=disabled"])
    assert key in str(refused.value)
    assert str(refused.value).isprintable()
