"""A switch of the memory profile is honoured or refused, never ignored."""

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.choices import Graphs, RolloutLocation, Shuffle
from frugal_rl.memory.honour import AS_IT_IS, ENCODED, honoured, settle, unread
from frugal_rl.memory.savings import SAVINGS, Reader, readers_of
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import Evaluation

ABOUT_THE_RUN = {"profile", "label", "budget_gib", "max_hours", "allow", "watchdog_share"}
ENVS = ("toy", "nclone", "mine", "mine_cpit", "mine_daily_small", "fighting", "fighting_game_boy")
SMALL = {"mine": ["env.data=porphyry_tiny"], "mine_cpit": ["env.data=porphyry_tiny"]}


def words(env: str, *more: str) -> list[str]:
    return [f"env={env}", *SMALL.get(env, []), "tracking=disabled", *more]


def test_every_switch_of_the_profile_stands_in_the_table_with_its_readers():
    switches = {f.name for f in fields(MemoryProfile)} - ABOUT_THE_RUN

    assert switches == {name for s in SAVINGS for name in s.switches}
    assert all(readers_of(name) for name in switches)


@pytest.mark.parametrize("env", [e for e in ENVS if e != "nclone"])
@pytest.mark.parametrize(
    "word",
    ["level_data=per_env", "graphs=always", "rendering=full", "animation=true"],
)
def test_what_an_environment_does_not_read_is_refused_with_where_it_is_read(env, word):
    with pytest.raises(ConfigError) as error:
        compose_run(words(env, f"memory.{word}"))
    said = str(error.value)

    assert said.startswith(f"memory.{word} is not honoured by env={env}, which always has memory.")
    assert "env=nclone would honour it" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["memory.trajectories=views"], "vec=batch.*vec=episodes would honour it"),
        (["vec=episodes", "memory.shuffle=copy"], "vec=episodes.*vec=batch.*would honour it"),
        (["vec=episodes", "memory.rollout_location=memmap"], "not honoured by vec=episodes"),
        (["vec=episodes", "memory.frame_stack=copies"], "not honoured by vec=episodes"),
        (["memory.rollout_location=device", "memory.shuffle=copy"], "has no effect with memory.ro"),
    ],
)
def test_what_algorithm_and_backend_do_not_read_is_refused(more, said):
    with pytest.raises(ConfigError, match=said):
        compose_run(words("toy", *more))


def test_a_learner_without_a_network_update_reads_no_switch_of_it():
    with pytest.raises(ConfigError, match=r"algo=evolution.*algo=ppo"):
        compose_run(words("mine_cpit", "agent=priority", "algo=evolution", "memory.micro_batch=8"))


def test_a_replay_lies_where_it_is_told_to_and_is_drawn_in_one_way():
    assert compose_run(words("toy", "algo=dqn", "memory.rollout_location=memmap")).notes == ()
    with pytest.raises(ConfigError, match="not honoured by algo=dqn"):
        compose_run(words("toy", "algo=dqn", "memory.shuffle=copy"))


@pytest.mark.parametrize(
    ("place", "device", "her", "said"),
    [
        ("pinned", "cuda", False, "'pinned'.*Choose ram, device, memmap"),
        ("device", "cuda", True, r"algo.her=true.*memory.rollout_location=device"),
        ("device", "cpu", False, "twice in memory: there is no accelerator"),
    ],
)
def test_a_replay_lies_where_it_can_be_drawn_from_and_once(place, device, her, said):
    where = (f"memory.rollout_location={place}", f"hardware.device={device}")
    run = compose_run(words("toy", "algo=dqn", *where))

    with pytest.raises(ConfigError, match=said):
        replace(run.algo, her=her).goes_with(run)


@pytest.mark.parametrize("env", ENVS)
def test_the_value_that_a_run_has_anyway_may_be_typed(env):
    run = compose_run(words(env, "memory.level_data=shared", "memory.graphs=lazy"))

    assert run.notes == ()


@pytest.mark.parametrize("env", ENVS)
def test_baseline_serves_every_environment_and_says_what_is_not_read(env):
    run = compose_run(words(env, "memory=baseline"))
    guide = {"level_data", "graphs", "rendering", "animation"}
    said = " ".join(run.notes)

    assert unread(run) == []
    assert run.memory.shuffle is Shuffle.copy
    assert all((name in said) == (env != "nclone") for name in guide)
    assert (run.memory.graphs is Graphs.always) == (env == "nclone")
    assert "trajectories" in said  # vec=batch merges none


def test_a_typed_word_beside_a_profile_is_refused_all_the_same():
    with pytest.raises(ConfigError, match=r"memory\.graphs=always is not honoured"):
        compose_run(words("toy", "memory=baseline", "memory.graphs=always"))


@dataclass(frozen=True)
class Deaf:
    """A plug-in that declares nothing."""

    name: str = "deaf"


@dataclass(frozen=True)
class Listening:
    """A plug-in that declares one switch more."""

    honours: ClassVar[frozenset[str]] = ENCODED | {"graphs"}
    name: str = "listening"


def test_a_plug_in_that_declares_nothing_is_taken_to_encode():
    assert honoured(Deaf(), Reader.env) == ENCODED
    assert honoured(Deaf(), Reader.algo) == frozenset()
    assert honoured(Listening(), Reader.env) == ENCODED | {"graphs"}


def test_a_plug_in_is_named_in_its_own_refusal():
    run = replace(compose_run(words("toy")), env=Deaf(), resolved={})
    run = replace(run, memory=replace(AS_IT_IS, graphs=Graphs.always))

    with pytest.raises(ConfigError, match=r"env=deaf, .* nothing that is installed would"):
        settle(run, ["memory.graphs=always"], lambda switch, role: [])
    heard = replace(run, env=Listening())
    assert settle(heard, ["memory.graphs=always"], lambda s, r: [])[0] == heard.memory


def test_what_is_no_switch_is_never_unread():
    run = compose_run(words("toy", "memory.budget_gib=3", "memory.watchdog_share=0.5"))

    assert run.memory.budget_gib == 3
    assert unread(run) == []
    assert isinstance(run.evaluation, Evaluation)


def refused(run, word: str, **readers: list[str]) -> str:
    with pytest.raises(ConfigError) as error:
        settle(run, [word], lambda switch, role: readers[role.value])
    return str(error.value)


def test_a_refusal_names_all_who_do_not_read_and_all_who_would():
    copied = replace(AS_IT_IS, shuffle=Shuffle.copy)
    run = replace(
        compose_run(words("toy")), algo=Deaf("old"), vec=Deaf(), resolved={}, memory=copied
    )

    assert refused(
        run, "+memory.shuffle=copy", algo=["algo=ppo"], vec=["vec=batch", "vec=sb3"]
    ) == (
        "memory.shuffle=copy is not honoured by algo=old and vec=deaf, which always have "
        "memory.shuffle=gather; algo=ppo, vec=batch, vec=sb3 would honour it. Leave it out."
    )
    one = replace(run, vec=Listening(), resolved={"choices": {"algo": "mine"}})
    assert honoured(one.vec, Reader.vec) == Listening.honours
    said = refused(replace(run, resolved={"choices": {"algo": "mine"}}), "memory.shuffle=copy",
                   algo=[], vec=[])  # fmt: skip
    assert said.startswith("memory.shuffle=copy is not honoured by algo=mine and vec=deaf, which ")
    assert "; nothing that is installed would honour it." in said


def test_a_profiles_value_that_nobody_reads_is_told_with_the_one_that_holds():
    odd = replace(AS_IT_IS, profile="old", shuffle=Shuffle.copy, animation=True)
    run = replace(compose_run(words("toy")), algo=Deaf(), resolved={}, memory=odd)
    memory, said = settle(run, ["memory=old", "seed=3"], lambda switch, role: [])

    assert memory == replace(AS_IT_IS, profile="old")
    assert said == (
        "memory=old sets animation, shuffle, which nothing in this run reads; it has "
        "memory.animation=false, memory.shuffle=gather."
    )


def test_a_copy_beside_a_rollout_on_the_device_has_no_effect():
    both = replace(AS_IT_IS, shuffle=Shuffle.copy, rollout_location=RolloutLocation.device)
    run = replace(compose_run(words("toy")), memory=both)

    assert refused(run, "memory.shuffle=copy") == (
        "memory.shuffle=copy has no effect with memory.rollout_location=device; leave it out."
    )
