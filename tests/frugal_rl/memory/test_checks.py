"""Each check has a failing and a passing case; the guide's configuration its known findings."""

from dataclasses import replace

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory.auto import choose
from frugal_rl.memory.checks import RULES, check, check_run, errors
from frugal_rl.memory.facts import Facts, facts_of
from frugal_rl.memory.finding import Severity, worst
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.run.compose import compose_run

GIB, MIB = 1 << 30, 1 << 20
FRAME = 144 * 160 * 3
PARAMETERS = 7_200_000
"""Of the guide's convolution network: 4 x 4 bytes each with gradient and two moments = 0.11 GiB."""

GUIDE = Facts(
    observation_bytes=4 * FRAME,
    rollout_bytes=8192 * 2 * 4 * FRAME,
    flattened_bytes=8192 * 2 * 4 * FRAME,
    env_bytes=2 * 182 * MIB,
    total_bytes=int(9.1 * GIB),
    largest="rollout",
    minibatch_bytes=2048 * 4 * FRAME,
    decoded_bytes=2048 * 4 * FRAME * 4,
    activation_bytes=int(0.9 * GIB),
    weight_bytes=PARAMETERS * 16,
    num_envs=2,
    n_steps=8192,
    batch_size=2048,
    n_epochs=10,
    total_steps=10_000_000,
    episode_steps=(100, 500),
    time_limit_steps=8192,
    vec="sb3",
    cores=8,
    ram_bytes=32 * GIB,
    vram_bytes=16 * GIB,
    on_device=True,
    checkpoint_bytes=PARAMETERS * 12 + MIB,
    save_every_steps=163_840,
    free_disk_bytes=200 * GIB,
)
"""The configuration of the fighting guide on its machine of 32 GB, 16 GB on the device."""


def found(facts: Facts) -> dict:
    return {f.id: f for f in check(facts)}


@pytest.mark.parametrize(
    ("check_id", "severity", "value"),
    [
        ("F01", "info", "276,480 B"),
        ("F02", "ok", "4.2 GiB"),
        ("F03", "ok", "8.4 GiB"),
        ("F06", "ok", "364.0 MiB"),
        ("F08", "ok", "3.6 GiB"),
        ("F09", "ok", "8 minibatches"),
        ("F10", "ok", "rest 0"),
        ("F11", "info", "611 iterations, 48,880 gradient steps"),
        ("F12", "warning", "80"),
        ("F13", "warning", "16 to 82 episodes"),
        ("F14", "warning", "8192 and 8192"),
        ("F16", "warning", "2 of 8"),
        ("F24", "ok", "5.0 GiB"),
        ("F35", "info", "10,010,624 steps"),
    ],
)
def test_the_guides_configuration_gives_its_known_findings(check_id, severity, value):
    finding = found(GUIDE)[check_id]

    assert (finding.severity.value, finding.value) == (severity, value)


def test_what_the_findings_say_of_the_guides_configuration():
    findings = found(GUIDE)

    assert "16 to 82 episodes per rollout" in findings["F13"].message
    assert "610.35 -> 611 rollouts" in findings["F35"].message


def test_the_same_samples_stored_once_and_packed_pass():
    packed = replace(
        GUIDE,
        rollout_bytes=(1024 + 3) * 16 * 5760,
        flattened_bytes=0,
        env_bytes=int(16 * 0.92 * MIB),
        num_envs=16,
        n_steps=1024,
        vec="threads",
    )
    findings = found(packed)

    assert packed.samples == GUIDE.samples
    assert findings["F02"].value == findings["F03"].value == "90.3 MiB"  # 0.088 GiB
    assert findings["F06"].value == "14.7 MiB"
    assert findings["F13"].severity is Severity.ok


PASSING = Facts(
    observation_bytes=100, rollout_bytes=MIB, total_bytes=GIB, num_envs=16, n_steps=128,
    batch_size=256, n_epochs=4, total_steps=2048 * 100, episode_steps=(50, 200),
    time_limit_steps=200, vec="threads", workers=2, cores=2,
    vram_bytes=8 * GIB, weight_bytes=MIB, save_every_steps=20480,
    checkpoint_bytes=MIB, free_disk_bytes=GIB, eval_steps=2000, eval_every_steps=20480,
    gamma=0.99,
)  # fmt: skip


def test_a_sound_configuration_has_no_warning():
    assert worst(check(PASSING)) is Severity.info
    assert [f.id for f in check(PASSING) if f.severity is not Severity.ok] == ["F01", "F11"]


@pytest.mark.parametrize(
    ("check_id", "severity", "change"),
    [
        ("F02", "warning", {"rollout_bytes": 9 * GIB}),
        ("F02", "error", {"rollout_bytes": 33 * GIB}),
        ("F03", "warning", {"rollout_bytes": 14 * GIB, "flattened_bytes": 14 * GIB}),
        ("F03", "error", {"rollout_bytes": 17 * GIB, "flattened_bytes": 17 * GIB}),
        ("F06", "warning", {"env_bytes": 4 * GIB}),
        ("F07", "warning", {"total_bytes": 24 * GIB}),
        ("F07", "warning", {"total_bytes": 32 * GIB}),
        ("F07", "error", {"total_bytes": 33 * GIB}),
        ("F08", "warning", {"activation_bytes": 5 * GIB}),
        ("F08", "warning", {"activation_bytes": 7 * GIB}),
        ("F08", "error", {"activation_bytes": 8 * GIB}),
        ("F20", "info", {"activation_bytes": 5 * GIB}),
        ("F09", "error", {"batch_size": 4096}),
        ("F10", "warning", {"batch_size": 300}),
        ("F11", "warning", {"total_steps": 2048 * 49}),
        ("F12", "warning", {"n_epochs": 9}),
        ("F13", "warning", {"n_steps": 20}),
        ("F14", "warning", {"n_steps": 200}),
        ("F16", "warning", {"num_envs": 7}),
        ("F17", "warning", {"workers": 5}),
        ("F23", "info", {"save_every_steps": 3000}),
        ("F24", "warning", {"checkpoint_bytes": 60 * MIB}),
        ("F25", "warning", {"eval_seed_is_training_seed": True}),
        ("F25", "warning", {"eval_steps": 10_000}),
        ("F30", "warning", {"gamma": 0.9}),
        ("F30", "info", {"gamma": 0.999}),
        ("F37", "warning", {"bf16": True, "has_bf16": False}),
        ("F35", "info", {"total_steps": 2048 * 100 + 1}),
    ],
)
def test_each_check_fails_where_its_condition_is_broken(check_id, severity, change):
    assert found(replace(PASSING, **change))[check_id].severity.value == severity


def test_the_advised_micro_batch_divides_the_minibatch():
    finding = found(replace(PASSING, activation_bytes=20 * GIB))["F20"]
    size = int(finding.override.split("=")[1])

    assert PASSING.batch_size % size == 0
    assert 20 * GIB * size / PASSING.batch_size < 0.6 * PASSING.vram_bytes


def test_a_real_run_is_checked_from_its_plan():
    run = compose_run(["env=toy", "algo.batch_size=3000", "memory=baseline"])
    findings = {f.id: f for f in check_run(run, draw_up(run))}

    assert findings["F10"].severity is Severity.warning
    assert findings["F01"].value == "179 B"
    assert findings["F02"].value == "836.0 KiB"


EVERY_FACT = [
    "env=nclone", "env.stack=4", "env.obs=pixels", "tracking=disabled", "memory.precision=bf16",
    "hardware=laptop_32g_16g", "hardware.device=cuda", "vec=shared_memory", "vec.workers=2",
    "checkpoint_every_steps=4096", "evaluation.every_steps=4096", "memory=baseline",
]  # fmt: skip


def test_every_rule_has_a_run_that_it_looks_at():
    """A check that no run can feed would be counted as passed for ever."""
    looked_at = set()
    undeclared = ["env=gymnasium", "env.id=CartPole-v1"]
    gpu = ["env=toy", "hardware.vram_gib=0.0001", "hardware.device=cuda"]
    for words in (EVERY_FACT, undeclared, gpu):
        run = compose_run(words)
        looked_at |= {f.id for f in check(facts_of(run, draw_up(run)))}
    of_rules = {rule.__doc__.split(":")[0] for rule in RULES}

    assert of_rules == looked_at


def test_only_what_was_looked_at_is_counted():
    blind = {f.id for f in check(replace(PASSING, gamma=None, episode_steps=None, bf16=False))}

    assert {"F13", "F30", "F37"}.isdisjoint(blind)


def test_a_minibatch_above_the_rollout_stops_a_run_before_it_is_probed():
    run = compose_run(["env=toy", "algo.batch_size=100000", "tracking=disabled"])

    with pytest.raises(ConfigError, match=r"F09.*exceeds the rollout of 4096.*Try algo\.batch"):
        plan_memory(run, lambda run: pytest.fail("it must not be probed"))


def test_auto_never_takes_a_plan_of_which_a_check_says_error():
    words = ["env=toy", "memory=auto", "algo.batch_size=100000", "tracking=disabled"]
    with pytest.raises(ConfigError, match="F09"):
        choose(compose_run(words), lambda run: pytest.fail("it must not be probed"))
    capacity = compose_run([*words, "memory.allow=[capacity]"])
    chosen = choose(capacity)

    assert not errors(check_run(chosen.run, chosen.plan))
    assert chosen.run.algo.batch_size <= chosen.run.algo.n_steps * chosen.run.algo.num_envs
