"""Runs of strangers: whatever their configuration says is opened, or refused in one line."""

import random
import sys
from copy import deepcopy
from dataclasses import replace

import pytest

from frugal_rl.errors import CheckpointError, ConfigError, FrugalError
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.identity import check_same_run, identity
from frugal_rl.run.saved import open_saved, told_in_a_line
from frugal_rl.testing.fuzz import MIB, Reading

SMALL = ("algo.num_envs=2", "algo.n_steps=8",
         "algo.batch_size=8", "tracking=disabled", "evaluation.episodes=2",
         "evaluation.num_envs=2", "hardware.device=cpu", "hardware.threads=1")  # fmt: skip
NETWORKS = ("agent=mlp", "agent.actor=[4]", "agent.critic=[4]")
ODD = (
    *(None, True, -1, 0, 3, 10**9, 1 << 70, 1.5, 1e300, "", "x", "0", "\x1b[2J\n# x", "a" * 9000),
    *([], [1], [[1]], [None], {}, {"a": 1}, {"_target_": "os.system"}, {1: 2}, b"x", (1, 2)),
    {"_target_": "frugal_rl.testing.toy.Toy"},
)
"""What stands where another value was expected."""


def content_of(*words):
    """What a stranger needs of a checkpoint to have it opened: configuration and weights."""
    run = compose_run([*words, *SMALL], check=False)
    vec_env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
    try:
        weights = run.algo.build(run, vec_env).policy.state_dict()
    finally:
        vec_env.close()
    return {"config": dict(run.resolved), "identity": identity(run), "num_steps": 0,
            "learner": {"policy": weights}}  # fmt: skip


@pytest.fixture(scope="module")
def toy():
    return content_of("env=toy")


@pytest.fixture(scope="module")
def registered():
    return content_of("env=gymnasium")


@pytest.fixture(scope="module")
def asked():
    return compose_run(["evaluation.episodes=2"])


def opened(content, path, asked):
    with open_saved(str(save_checkpoint(path, content)), asked) as saved:
        return saved.num_steps


def places(values, at=()):
    """Every place of a nested configuration."""
    for key, value in values.items():
        yield (*at, key)
        if isinstance(value, dict):
            yield from places(value, (*at, key))


def spoilt(content, count, seed):
    """Configurations with one or two values that are another thing than was expected."""
    chance = random.Random(seed)
    everywhere = list(places(content["config"]))
    for number in range(count):
        changed = {**content, "config": deepcopy(content["config"])}
        what = []
        for place in chance.sample(everywhere, chance.choice([1, 1, 2])):
            node = changed["config"]
            for key in place[:-1]:
                node = node[key] if isinstance(node.get(key), dict) else {}
            node[place[-1]] = odd = chance.choice(ODD)
            what.append(f"{'.'.join(map(str, place))}={odd!r:.40}")
        yield f"{number} {' '.join(what)}", changed


def problems(content, count, folder, asked, seed=0):
    def files():
        for what, changed in spoilt(content, count, seed):
            yield what, save_checkpoint(folder / "made.pt", changed).read_bytes()

    def read(path):
        with open_saved(str(path), asked):
            pass

    opened(content, folder / "sound.pt", asked)  # what is imported then counts for no file
    reading = Reading(folder / "a.pt", read, name=" ", bytes_allowed=256 * MIB)
    found = reading.problems(files())
    assert reading.refused > 0
    return found


def test_odd_values_anywhere_in_a_strangers_configuration_are_refused_in_a_line(
    toy, asked, tmp_path
):
    assert problems(toy, 25, tmp_path, asked) == []


MINES = ("env=mine_daily_small env.deposits=2 env.eval_deposits=1 env.deposit.nx=6 "
         "env.deposit.ny=6 env.deposit.nz=4 env.deposit.richness=1.5")  # fmt: skip
"""Every change of their money has all of them opened anew."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "env=toy",
        "env=gymnasium",
        "env=nclone",
        pytest.param(MINES, id="mine"),
        "env=fighting env.obs=ram",
    ],
)
def test_five_hundred_odd_configurations_of_each_guest_are_refused_or_opened(
    words, asked, tmp_path
):
    content = content_of(*words.split(), *NETWORKS)  # large ones would be read 500 times
    assert problems(content, 500, tmp_path, asked, 1) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"modules": ["stranger"]}, r"imports stranger by its env\.modules.*plugins=\[stranger\]"),
        ({"id": "stranger:A-v0"}, r"imports stranger by its env\.id"),
        ({"wrappers": [{"wrapper": "stranger.Wrapper"}]}, r"imports stranger\.Wrapper by its env"),
        ({"wrappers": [{"wrapper": "os.system"}]}, r"imports os\.system by its env\.wrappers"),
        ({"wrappers": [{"wrapper": "gymnasium.wrappers.TimeLimit",
                        "kwargs": {"no": 1}}]}, "takes no such values"),
        ({"wrappers": [{"wrapper": "gymnasium.wrappers.FrameStackObservation",
                        "kwargs": {"stack_size": 0}}]}, "cannot be put around this environment"),
        ({"wrappers": [{"wrapper": "gymnasium.wrappers.nothing"}]}, "cannot be imported"),
        ({"wrappers": [3]}, "cannot be opened"),
        ({"kwargs": {"no_such": 1}}, r"env\.kwargs=.*no_such"),
    ],
)  # fmt: skip
def test_a_strangers_run_imports_nothing_that_nobody_named(
    values, words, registered, asked, tmp_path, monkeypatch
):
    (tmp_path / "stranger.py").write_text("raise SystemExit('executed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    changed = deepcopy(registered)
    changed["config"]["env"] |= values
    with pytest.raises(FrugalError, match=words) as refused:
        opened(changed, tmp_path / "a.pt", asked)
    assert str(refused.value).isprintable()
    assert "stranger" not in sys.modules


def test_who_names_the_package_trusts_it(registered, asked, tmp_path, monkeypatch):
    (tmp_path / "friend.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    changed = deepcopy(registered)
    changed["config"]["env"]["modules"] = ["friend"]
    with pytest.raises(ConfigError, match="friend"):
        opened(changed, tmp_path / "a.pt", asked)
    named = replace(asked, resolved={**asked.resolved, "plugins": ["friend"]})
    assert opened(changed, tmp_path / "a.pt", named) == 0
    typed = compose_run(["env=gymnasium", "env.modules=[friend]", "evaluation.episodes=2"])
    assert opened(changed, tmp_path / "a.pt", typed) == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.update(num_steps="x"),
        lambda c: c.update(num_steps=None),
        lambda c: c["config"].update(seed={"_target_": "frugal_rl.testing.toy.Toy"}),
        lambda c: c["config"]["agent"].update(actor={"_target_": "frugal_rl.testing.toy.Toy"}),
        lambda c: c["config"].update(sweep={3: 1}),
        lambda c: c["config"].update(memory=[1]),
        lambda c: c["config"].pop("env"),
        lambda c: c["config"].update({"\x1b]0;x\x07": 1, "env": {"_target_": "\x1b[2J"}}),
        lambda c: c["config"]["agent"].update(name="\x1b[2J", actor=[9]),
        lambda c: c.update(config={}),
    ],
)
def test_a_content_that_is_none_is_refused_in_one_printable_line(spoil, toy, asked, tmp_path):
    changed = deepcopy(toy)
    spoil(changed)
    with pytest.raises(FrugalError) as refused:
        opened(changed, tmp_path / "a.pt", asked)
    assert str(refused.value).isprintable()


def test_a_saved_identity_is_shown_without_its_escape_codes(toy, tmp_path):
    run = compose_run(["env=toy", *SMALL], check=False)
    identity = deepcopy(toy["identity"])
    identity["algo"]["\x1b[2Jgamma"] = "\x1b[31m" * 2000
    with pytest.raises(CheckpointError, match="was trained with") as refused:
        check_same_run(run, identity, "\x1b[1m")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


def test_a_sound_run_still_opens(toy, asked, tmp_path):
    assert opened(toy, tmp_path / "a.pt", asked) == 0
    assert load_checkpoint(tmp_path / "a.pt")["num_steps"] == 0


def test_an_error_of_several_lines_is_told_in_one():
    told = pytest.raises(ConfigError, match=r"^2 files: Notes/a\.map is empty\. Mend them\.$")
    with told, told_in_a_line("run"):
        raise ConfigError("2 files:\n  Notes/a.map is empty.\nMend them.")
