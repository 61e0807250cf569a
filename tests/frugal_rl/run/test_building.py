"""Plain values become frozen dataclasses, or are refused in the user's words."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.memory import FrameStack, MemoryProfile, Storage
from frugal_rl.observation.choices import Label
from frugal_rl.run.building import build, build_as, convert, nearest
from frugal_rl.run.config import Hardware

PROFILE = {"_target_": "frugal_rl.memory.MemoryProfile"}


class Gait(Enum):
    walk = "walk"
    off = "off"


@dataclass(frozen=True)
class Leg:
    length: float
    gait: Gait = Gait.walk


@dataclass(frozen=True)
class Robot:
    legs: tuple[Leg, ...] = ()
    size: tuple[int, int] = (1, 2)
    weights: Mapping[str, float] = field(default_factory=dict)
    head: Leg | None = None
    speed: float | str = 1.0
    extra: Any = None

    def __post_init__(self) -> None:
        if self.size[0] < 0:
            raise ValueError("robot.size is negative; use positive numbers.")


@pytest.fixture
def plugin(monkeypatch):
    module = types.ModuleType("mygame")
    module.Robot, module.Leg, module.not_a_class = Robot, Leg, 3
    monkeypatch.setitem(sys.modules, "mygame", module)
    return module


def test_a_node_becomes_the_dataclass_that_its_target_names():
    profile = build(PROFILE | {"storage": "half", "frame_stack": "copies", "allow": ["capacity"]})

    assert profile == MemoryProfile(
        storage=Storage.half, frame_stack=FrameStack.copies, allow=(Label.capacity,)
    )


def test_nested_nodes_lists_mappings_and_optionals_are_built_by_their_types():
    robot = build_as(
        Robot,
        {
            "legs": [{"length": 1, "gait": "walk"}, {"length": 2.5}],
            "size": [3, 4],
            "weights": {"a": 1},
            "head": {"length": 1e3},
        },
    )

    assert robot == Robot((Leg(1.0), Leg(2.5)), (3, 4), {"a": 1.0}, Leg(1000.0))
    assert isinstance(robot.legs, tuple)


def test_a_bare_off_which_yaml_reads_as_false_still_names_the_member():
    assert convert(False, Gait, "robot.gait") is Gait.off


def test_a_number_in_scientific_notation_is_a_whole_number_where_it_is_whole():
    assert convert(1e6, int, "algo.total_steps") == 1_000_000
    with pytest.raises(ConfigError, match=r"algo.total_steps=0.5 .* a whole number"):
        convert(0.5, int, "algo.total_steps")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"storge": "half"},
            r"memory\.storge is no option of MemoryProfile; did you mean 'sto",
        ),
        ({"storage": "losless"}, r"memory\.storage=losless is no choice; did you mean 'lossless'"),
        ({"micro_batch": "many"}, r"memory\.micro_batch='many' .* a whole number"),
        ({"animation": 1}, r"memory\.animation=1 .* true or false"),
        ({"budget_gib": "x"}, r"memory\.budget_gib='x' .* a number"),
        ({"allow": "lossless"}, r"memory\.allow='lossless' .* a list"),
        ({"budget_gib": -1}, r"memory\.budget_gib is -1"),
        ({"micro_batch": True}, r"memory\.micro_batch=True .* a whole number"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_that_the_user_typed(values, message):
    with pytest.raises(ConfigError, match=message):
        build(PROFILE | values, "memory")


def test_a_value_that_is_required_is_asked_for():
    with pytest.raises(ConfigError, match=r"leg\.length has no value; add leg\.length="):
        build_as(Leg, {}, "leg")


def test_a_list_of_the_wrong_length_is_refused():
    with pytest.raises(ConfigError, match=r"robot\.size=\[1\] .* a list of 2 values"):
        build_as(Robot, {"size": [1]}, "robot")


@pytest.mark.parametrize("target", ["os.system", "subprocess.Popen", "builtins.eval", "mygame.Leg"])
def test_a_target_outside_the_trusted_packages_is_not_imported(target, plugin):
    with pytest.raises(ConfigError, match="lies outside"):
        build({"_target_": target}, "env")


def test_a_plugin_is_built_once_the_user_names_its_package(plugin):
    assert build({"_target_": "mygame.Leg", "length": 2}, "env", ["mygame"]) == Leg(2.0)
    with pytest.raises(ConfigError, match="is not a dataclass; did you mean 'Leg'"):
        build({"_target_": "mygame.Lag"}, "env", ["mygame"])


def test_a_target_that_is_no_dataclass_is_refused_even_inside_our_packages():
    with pytest.raises(ConfigError, match="not a dataclass"):
        build({"_target_": "frugal_rl.run.building.build"}, "env")


def test_a_node_of_another_class_than_the_field_declares_is_refused(plugin):
    with pytest.raises(ConfigError, match=r"robot\.head=.* it takes a Leg"):
        convert({"_target_": "frugal_rl.run.config.Hardware"}, Leg, "robot.head")
    assert (
        convert({"_target_": "frugal_rl.run.config.Hardware"}, Hardware, "hardware") == Hardware()
    )


def test_a_check_in_the_dataclass_itself_reaches_the_user_as_a_configuration_error():
    with pytest.raises(ConfigError, match=r"robot\.size is negative"):
        build_as(Robot, {"size": [-1, 2]}, "robot")


def test_a_target_of_an_older_run_is_found_under_its_name_of_today():
    hardware = build({"_target_": "frugal_rl.run.Hardware", "threads": 3})

    assert hardware == Hardware(threads=3)


def test_a_long_list_of_options_is_shown_by_its_nearest():
    options = [f"field_{number}" for number in range(80)]

    hint = nearest("xyz_1", options)

    assert hint.endswith("and 75 more") or "did you mean" in hint
    assert nearest("q", ["a", "b"]) == "choose from a, b"
