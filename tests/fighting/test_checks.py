"""The emulator's checks, each with a failing and a passing case; bytes of the guide's setting."""

import gymnasium
import numpy as np
import pytest

import fighting  # noqa: F401 - registers the environments
from fighting.config import DuelConfig
from fighting.spec import View
from fighting.tools.checks import EmulatorFacts, checks, facts_of, findings, version_numbers
from frugal_rl.memory.finding import Severity
from frugal_rl.observation.choices import FrameStack, Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.run.compose import compose_run
from frugal_rl.store.layout import columns_of, planned_bytes

GIB = 1 << 30

CASES = {
    "F21": ({"packed": True, "four_shades": False}, Severity.error),
    "F27": ({"sound": True}, Severity.warning),
    "F28": ({"observes_pixels": False}, Severity.warning),
    "F29": ({"frame_skip": 6}, Severity.warning),
    "F33": ({"loads_states": True, "episode_steps": 50}, Severity.warning),
    "F34": ({"pyboy": (2, 4, 0)}, Severity.error),
    "F36": ({"hides_health": True}, Severity.warning),
}


@pytest.mark.parametrize("check", CASES)
def test_each_check_fails_where_it_should_and_passes_else(check):
    facts, severity = CASES[check]
    failing = {f.id: f for f in findings(EmulatorFacts(**facts))}
    passing = {f.id: f for f in findings(EmulatorFacts())}
    assert failing[check].severity is severity
    assert failing[check].message
    assert failing[check].override or failing[check].command
    assert passing[check].severity is Severity.ok
    assert not passing[check].message


def test_a_stack_that_sees_less_than_the_slowest_attack_is_reported():
    found = {f.id: f for f in findings(EmulatorFacts(stack=3))}
    assert "12 frames are seen" in found["F29"].message


def test_the_guides_configuration_gives_its_known_findings():
    run = compose_run(["env=fighting", "memory=baseline", "hardware=laptop_32g_16g"])
    found = {f.id: (f.severity.value, f.value) for f in checks(run)}
    pyboy = ".".join(map(str, version_numbers()))
    assert found == {
        "F21": ("ok", "not packed"),
        "F27": ("ok", "off"),
        "F28": ("ok", "pixels"),
        "F29": ("ok", "0.27 s"),
        "F33": ("ok", "0.0% of the time"),
        "F34": ("ok", pyboy),
        "F36": ("ok", "shown"),
    }


def test_the_present_configuration_passes():
    assert {f.severity for f in findings(facts_of(DuelConfig()))} == {Severity.ok}
    assert version_numbers("2.8.1") == (2, 8, 1)


@pytest.mark.parametrize(("view", "hidden"), [("half_size", True), ("both", False), ("ram", False)])
def test_a_crop_that_hides_the_health_is_reported(view, hidden):
    found = {f.id: f for f in findings(facts_of(DuelConfig(obs=View(view), crop=True)))}
    assert (found["F36"].severity is Severity.warning) == hidden


def rollout(view, storage, stack, **fields):
    config = DuelConfig(obs=view)
    encoding = Encoding.choose(config.spec(), storage, stack, fields=fields)
    return planned_bytes(encoding, 8192, 2, config.action_space())


def test_the_guides_rollout_takes_4_22_gib_dense_and_0_088_packed():
    dense = rollout(View.rgb, Storage.dense, FrameStack.copies)
    packed = rollout(View.gray, Storage.lossless, FrameStack.once, frame="packed")
    delta = rollout(View.gray, Storage.lossless, FrameStack.once, frame="delta")
    scalars = 16384 * (8 + 6 * 4 + 1)
    assert dense == pytest.approx(16384 * 276_480 + scalars, rel=0.001)
    assert dense / GIB == pytest.approx(4.22, abs=0.005)
    assert packed / GIB == pytest.approx(0.088, abs=0.001)
    assert delta / GIB <= 0.02


def test_the_baseline_overlay_is_the_guides_configuration():
    run = compose_run(["env=fighting", "memory=baseline"])
    assert run.env.obs is View.rgb
    assert (run.algo.num_envs, run.algo.n_steps, run.algo.batch_size) == (2, 8192, 2048)
    assert run.encoding().row_bytes == 4 * 69_120
    ours = compose_run(["env=fighting", "env.obs=gray"])
    assert ours.encoding().row_bytes == 5_760


def test_a_delta_is_offered_for_packed_frames():
    config = DuelConfig(obs=View.gray)
    encoding = Encoding.choose(config.spec(), Storage.lossless, fields={"frame": "delta"})
    assert [c.codec.pool for c in columns_of(encoding, 0) if c.codec is not None] == ["delta"]


@pytest.mark.parametrize("name", ["Duel", "DuelSelfPlay", "GameBoy"])
def test_registered_environments_can_be_made_and_played(name):
    env = gymnasium.make(f"fighting/{name}-v0")
    observation, _ = env.reset(seed=0)
    again, _ = env.reset(seed=0)
    for key in observation:
        np.testing.assert_array_equal(observation[key], again[key])
    for action in (1, 9, 2):
        observation, _, _, _, _ = env.step(action)
    assert env.observation_space.contains(observation)
    env.close()


def test_registered_environments_take_options_as_words():
    env = gymnasium.make("fighting/Duel-v0", obs="gray", levels=[3], opponent="cpu")
    observation, info = env.reset(seed=1)
    assert observation["frame"].shape == (4, 144, 160)
    assert info["level"] == 3
    env.close()
