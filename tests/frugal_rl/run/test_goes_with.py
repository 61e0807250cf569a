"""What cannot be trained is refused by its values alone, before a plan measures anything."""

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.run.compose import compose_run
from frugal_rl.run.preflight import check_chosen

COMPILED = "env=toy algo.engine=compiled"
PIXELS = "env=fighting env.obs=gray"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("env=toy vec=episodes algo.reward_normalisation=true", "algo.reward_normalisation=false"),
        (f"{COMPILED} memory.precision=bf16", "memory.precision=float32"),
        (f"{COMPILED} memory.micro_batch=8", "memory.micro_batch=0"),
        (f"{COMPILED} algo.fused_adam=true", "algo.fused_adam=false"),
        (f"{COMPILED} agent.activation=silu", "agent.activation=tanh or relu"),
        ("env=toy algo.overlap=true", "use algo.engine=compiled"),
        (f"{COMPILED} algo.overlap=true vec=episodes", "does not go with whole episodes"),
        (f"{COMPILED} algo.overlap=true launch.processes=2", "use launch.processes=1"),
        (
            "env=nclone algo=cloned_ppo algo.engine=compiled algo.overlap=true",
            "an algorithm of its own way",
        ),
        ("env=nclone agent=attention algo.engine=compiled", "no passes of agent=attention"),
        (f"{PIXELS} agent=nature_cnn algo.engine=compiled", "the field 'frame' is a picture"),
        (f"{PIXELS} algo.engine=compiled", "the field 'frame' is a picture"),
        ("env=nclone agent=nature_cnn", "at least 36 x 36, got 15 x 15 in 'tile_window'"),
        ("env=toy algo=cloned_ppo", "choose env=nclone"),
        ("env=toy algo=fighting_self_play", "needs env.opponent=self_play or mixed"),
        ("env=fighting algo=fighting_self_play", "env.opponent=self_play or mixed"),
        ("env=fighting algo=fighting_taught", "algo.teacher=RUN"),
        ("env=toy algo=fighting_taught", "choose env=fighting"),
        ("env=toy algo=sac", "Choose algo=dqn or qr_dqn"),
        ("env=toy algo=dqn algo.her=true", "env=toy shows no observation"),
        ("env=nclone agent=attention algo=dqn", "choose agent=mlp"),
    ],
)
def test_what_excludes_each_other_is_refused_by_its_values(words, said):
    run = compose_run(words.split())
    with pytest.raises(ConfigError) as refused:
        check_chosen(run)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        "env=toy vec=episodes",
        COMPILED,
        f"{COMPILED} algo.overlap=true",
        "env=nclone algo.engine=compiled",
        "env=nclone env.obs=pixels agent=nature_cnn",
        "env=nclone algo=cloned_ppo",
        "env=toy algo=dqn",
    ],
)
def test_what_goes_together_is_not_refused(words):
    check_chosen(compose_run(words.split()))
