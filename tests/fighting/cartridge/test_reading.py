"""A profile's file, key by key: what each one means, its limits, and the refusal beyond them."""

import copy

import pytest

from fighting.cartridge.memory import Kind, Status
from fighting.cartridge.profile import System
from fighting.cartridge.reading import LONGEST_MACRO_FRAMES, load_profile, parse_profile
from fighting.cartridge.source import read, spelled
from frugal_rl.errors import ConfigError

SMALL = {
    "schema": 1,
    "id": "mine",
    "title": "My game",
    "system": "dmg",
    "memory": {"score": {"addr": 0xC000}},
    "actions": {"combos": [[], ["a"], ["right", "b"]]},
    "reward": "rise(score)",
    "end": "score == 9",
}


def node(**changes):
    """The small profile with some keys changed; None takes one away."""
    found = {**copy.deepcopy(SMALL), **changes}
    return {key: value for key, value in found.items() if value is not None}


def parsed(**changes):
    return parse_profile(node(**changes), "mine.yaml")


def refusal(**changes):
    with pytest.raises(ConfigError) as caught:
        parsed(**changes)
    return str(caught.value)


def address(**changes):
    return parsed(memory={"score": {"addr": 0xC000, **changes}}).memory["score"]


def memory_refusal(**changes):
    return refusal(memory={"score": {"addr": 0xC000, **changes}})


def test_a_small_profile_is_read():
    profile = parsed()
    assert (profile.id, profile.title, profile.system) == ("mine", "My game", System.dmg)
    assert profile.roms == ()
    assert profile.start == ()
    assert profile.macros == {}
    assert profile.features == {}
    assert (profile.fastest_startup, profile.longest_startup) == (0, 0)


def test_a_goal_is_its_expressions_as_they_stand():
    goal = parsed(success="score > 5", score="score", time_limit=30).goal
    assert [text.text for text in goal.reward.values()] == ["rise(score)"]
    assert list(goal.reward) == ["reward"]
    assert (goal.end.text, goal.success.text, goal.score.text) == (
        "score == 9",
        "score > 5",
        "score",
    )
    assert goal.time_limit == 30.0


def test_a_reward_may_be_made_of_named_parts():
    goal = parsed(reward={"points": "rise(score)", "living": 0.01}).goal
    assert {name: text.text for name, text in goal.reward.items()} == {
        "points": "rise(score)",
        "living": "0.01",
    }


def test_a_fight_has_rules_and_no_goal():
    rules = {"ko_values": [0, 255], "round_seconds": 60}
    profile = parsed(reward=None, end=None, rules=rules)
    assert profile.goal is None
    assert (profile.ko_values, profile.round_seconds) == ((0, 255), 60)


def test_a_fight_ends_at_nought_and_after_99_seconds_where_nothing_else_is_said():
    profile = parsed(reward=None, end=None)
    assert (profile.ko_values, profile.round_seconds) == ((0,), 99)


@pytest.mark.parametrize("key", ["schema", "id", "title", "system", "memory", "actions"])
def test_a_key_that_every_profile_has_is_asked_for(key):
    assert refusal(**{key: None}) == (f"mine.yaml: {key} missing. See fighting/profiles/duel.yaml.")


@pytest.mark.parametrize("content", [None, [], "words", 3])
def test_a_file_without_keys_is_no_profile(content):
    with pytest.raises(ConfigError, match="is not a profile: it has no keys"):
        parse_profile(content, "mine.yaml")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 2}, "schema: schema 2; this version reads 1."),
        ({"extra": 1}, "extra: unknown key extra; there are actions,"),
        ({"system": "nes"}, "system: 'nes' is none of dmg, cgb"),
        ({"system": 3}, "system: 3 is none of"),
        ({"rules": {"round_seconds": 9}}, "rules: count in a fight without reward: and end:"),
        ({"memory": [1]}, "memory: must be names with values, one per line."),
        ({"memory": {3: {"addr": 0xC000}}}, "memory: must be names with values"),
        ({"roms": {"sha1": "x"}}, "roms: must be a list, such as [a, b]."),
        ({"roms": ["x"]}, "roms[0]: must be like {sha1: ..., name: ...}."),
        ({"roms": [{"sha1": "A" * 40}]}, "roms[0]: roms need a sha1 of 40 lower-case"),
        ({"roms": [{"sha1": "a" * 39}]}, "roms[0]: roms need a sha1 of 40"),
        ({"roms": [{}]}, "roms[0]: roms need a sha1"),
        ({"features": ["score"]}, "features: must be names with values"),
        ({"features": {"x": [1]}}, "features.x: must be an expression, such as 'rise(score)'."),
        ({"features": {"x": True}}, "features.x: must be an expression"),
        ({"reward": None}, "no reward: add reward:"),
        ({"reward": {}}, "no reward: add reward:"),
        ({"end": None}, "no end: an episode would never be over"),
        ({"end": None, "time_limit": 0}, "no end: an episode would never be over"),
        ({"time_limit": -1}, "time_limit: -1 is no number of seconds above 0"),
        ({"time_limit": True}, "time_limit: True is no number of seconds"),
        ({"time_limit": "long"}, "time_limit: 'long' is no number of seconds"),
        ({"success": ["score"]}, "success: must be an expression"),
        ({"fastest_startup": -1}, "fastest_startup: -1 is no whole number from 0 to 255."),
        ({"longest_startup": 256}, "longest_startup: 256 is no whole number from 0 to 255."),
        ({"fastest_startup": 1.5}, "fastest_startup: 1.5 is no whole number"),
        ({"fastest_startup": True}, "fastest_startup: True is no whole number"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_with_its_place(changes, words):
    assert f"mine.yaml: {words}" in refusal(**changes)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"rounds": 3}, "rules.rounds: unknown key rounds; there are ko_values, round_seconds."),
        ({"ko_values": 0}, "rules.ko_values: must be a list of bytes, such as [0, 1]."),
        ({"ko_values": [256]}, "rules.ko_values: must be a list of bytes"),
        ({"ko_values": [-1]}, "rules.ko_values: must be a list of bytes"),
        ({"ko_values": [True]}, "rules.ko_values: must be a list of bytes"),
        ({"round_seconds": 0}, "rules.round_seconds: 0 is no whole number from 1 to 3600."),
        ({"round_seconds": 3601}, "rules.round_seconds: 3601 is no whole number"),
    ],
)
def test_rules_of_a_fight_are_looked_at(rules, words):
    assert words in refusal(reward=None, end=None, rules=rules)


@pytest.mark.parametrize("seconds", [1, 3600])
def test_the_limits_of_a_round_may_be_used(seconds):
    assert parsed(reward=None, end=None, rules={"round_seconds": seconds}).round_seconds == seconds


def test_an_address_without_more_is_one_byte():
    found = address()
    assert (found.addr, found.size, found.kind, found.max) == (0xC000, 1, Kind.binary, 255)
    assert (found.status, found.over, found.signed, found.big) == (Status.unknown, (), False, False)


def test_an_address_says_how_it_reads():
    found = address(
        size=2, kind="bcd", max=99, status="verified", source="a page", over=[1, 2], match_over=[3]
    )
    assert (found.size, found.kind, found.max) == (2, Kind.bcd, 99)
    assert (found.status, found.source) == (Status.verified, "a page")
    assert (found.over, found.match_over) == ((1, 2), (3,))


def test_an_address_that_is_not_known_yet_may_be_named():
    assert parsed(memory={"score": {"addr": None}}).memory["score"].addr is None
    assert parsed(memory={"score": {}}).memory["score"].addr is None


@pytest.mark.parametrize(("addr", "size"), [(0x8000, 1), (0xFFFF, 1), (0xFFF8, 8)])
def test_the_first_and_the_last_byte_may_be_read(addr, size):
    assert address(addr=addr, size=size).addr == addr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"addr": 0x7FFF}, "addr: address 0x7fff lies outside $8000-$FFFF; write it like 0xC0A0."),
        ({"addr": 0x10000}, "addr: address 0x10000 lies outside"),
        ({"addr": 0xFFF9, "size": 8}, "addr: address 0xfff9 with 8 bytes lies outside"),
        ({"addr": "0xC000"}, "addr: address '0xC000' is no number; write it like 0xC0A0"),
        ({"addr": True}, "addr: address True is no number"),
        ({"size": 0}, "size: size is 0; use 1 to 8 bytes."),
        ({"size": 9}, "size: size is 9; use 1 to 8 bytes."),
        ({"size": "2"}, "size: size is '2'; use 1 to 8 bytes."),
        ({"kind": "roman"}, "'roman' is none of binary, bcd, digits."),
        ({"status": "sure"}, "'sure' is none of verified, documented, guess, unknown."),
        ({"kind": "bcd", "signed": True}, "signed is for kind: binary; leave it out."),
        ({"kind": "digits", "big": True}, "big is for kind: binary; leave it out."),
        ({"zero": 3}, "zero is for kind: digits; leave it out."),
        ({"signed": 1}, "signed is 1; use true or false."),
        ({"big": "yes"}, "big is 'yes'; use true or false."),
        ({"max": 256}, "max: 256 is no whole number from -255 to 255."),
        ({"size": 2, "max": 65536}, "max: 65536 is no whole number from -65535 to 65535."),
        ({"kind": "digits", "zero": -1}, "zero: -1 is no whole number from 0 to 255."),
        ({"over": 1}, "over: must be a list of bytes"),
        ({"match_over": [300]}, "match_over: must be a list of bytes"),
        ({"adr": 1}, "adr: unknown key adr; there are addr, big,"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(changes, words):
    found = memory_refusal(**changes)
    assert found.startswith("mine.yaml: memory.score")
    assert words in found


@pytest.mark.parametrize("name", ["a b", "1st", "lives-left", "steps", "frames", "and", "not", ""])
def test_a_name_that_an_expression_could_not_use_is_refused(name):
    words = refusal(memory={"score": {"addr": 0xC000}, name: {"addr": 0xC001}})
    assert "means something else in an expression" in words


def test_an_address_is_more_than_a_number():
    assert "must be like {addr: 0xC0A0, max: 99}." in refusal(memory={"score": 0xC000})


def test_combinations_are_buttons_held_together():
    combos = parsed().combos
    assert combos[0] == 0
    assert combos[2] & combos[1] == 0
    assert bin(combos[2]).count("1") == 2


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ({"combos": [["kick"]]}, "actions.combos[0]: no button 'kick'"),
        ({"combos": ["a"]}, "actions.combos[0]: must be a list of buttons, such as [down, a]."),
        ({"combos": {"x": ["a"]}}, "actions.combos: must be a list"),
        ({"combo": []}, "actions.combo: unknown key combo; there are combos, macros."),
        ({"macros": {"x": []}}, "actions.macros.x: must alternate buttons and frames"),
        ({"macros": {"x": [["a"]]}}, "actions.macros.x: must alternate"),
        ({"macros": {"x": [["a"], 2, ["b"]]}}, "actions.macros.x: must alternate"),
        ({"macros": {"x": "a"}}, "actions.macros.x: must alternate"),
        ({"macros": {"x": [["a"], 0]}}, "actions.macros.x: frames must be whole numbers from 1 to"),
        ({"macros": {"x": [["a"], 3601]}}, "actions.macros.x: frames must be whole numbers"),
        ({"macros": {"x": [["a"], True]}}, "actions.macros.x: frames must be whole numbers"),
        ({"macros": {"x": [["a"], 1, ["hop"], 1]}}, "actions.macros.x[2]: no button 'hop'"),
    ],
)
def test_actions_that_cannot_be_pressed_are_refused(actions, words):
    assert words in refusal(actions=actions)


def test_a_macro_is_pairs_of_buttons_and_frames():
    macros = {"leap": [["right", "a"], 4, [], LONGEST_MACRO_FRAMES]}
    profile = parsed(actions={"combos": [["right", "a"]], "macros": macros})
    assert profile.macros == {"leap": ((profile.combos[0], 4), (0, LONGEST_MACRO_FRAMES))}


@pytest.mark.parametrize(
    "step",
    [
        {"press": "start"},
        {"press": "start", "frames": 3},
        {"press": "start", "until": "score == 0", "every": 20, "timeout": 600},
        {"until": "score == 0", "timeout": 3},
        {"every": 20, "until": "score == 0", "press": "a"},  # in any order
        {"wait": 60},
        {"state": "begun.state"},
        {"save": "begun"},
    ],
)
def test_a_step_of_the_recipe_is_kept_as_it_stands(step):
    assert parsed(start=[step]).start == (step,)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("jump", "start[0] is none of press, until, wait, state, save."),
        ({}, "start[0] is none of press"),
        ({"frames": 3}, "start[0] is none of press"),
        ({"wait": 60, "timeout": 3}, "start[0].timeout: unknown key timeout; there are wait."),
        ({"save": "x", "frames": 3}, "start[0].frames: unknown key frames; there are save."),
        ({"press": "a", "evry": 3}, "start[0].evry: unknown key evry; there are every,"),
        ({"until": "score == 0", "every": 3}, "start[0].every: unknown key every; there are ti"),
        ({"until": "score == 0", "frames": 3}, "there are timeout, until."),
        ({"state": "a.state", "timeout": 3}, "there are state."),
        ({"press": "a", "every": 3}, "start[0]: every and timeout need an until: condition."),
        ({"press": "a", "timeout": 3}, "start[0]: every and timeout need an until: condition."),
    ],
)
def test_a_step_that_would_not_be_done_is_refused(step, words):
    assert words in refusal(start=[step])


def test_an_image_is_known_by_its_digest():
    profile = parsed(roms=[{"sha1": "0123456789" * 4, "name": "mine.gb"}, {"sha1": "f" * 40}])
    assert [(i.digest, i.name, i.bundled) for i in profile.roms] == [
        ("0123456789" * 4, "mine.gb", False),
        ("f" * 40, "", False),
    ]


def test_a_file_names_the_line_of_what_is_wrong(tmp_path):
    path = tmp_path / "mine.yaml"
    text = "schema: 1\nid: mine\ntitle: x\nsystem: dmg\nmemory:\n  score: {addr: 0x1000}\n"
    path.write_text(text + "actions: {combos: [[]]}\nreward: rise(score)\nend: score == 9\n")
    with pytest.raises(ConfigError, match=r"^mine\.yaml, line 6: memory\.score\.addr: address"):
        load_profile(str(path))


def test_a_file_that_is_no_yaml_is_refused_with_its_line(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("schema: 1\nid: [a\n")
    with pytest.raises(ConfigError, match=r"^mine\.yaml, line \d+.*Quote words"):
        load_profile(str(path))


def test_a_profile_that_there_is_not_names_those_that_there_are():
    with pytest.raises(ConfigError, match=r"no profile .*gone\.yaml; bundled ones are .*duel"):
        load_profile("gone")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((), ""),
        (("a",), "a"),
        (("a", 0, "b"), "a[0].b"),
        (("start", 2, 1), "start[2][1]"),
    ],
)
def test_places_are_spelled_as_they_are_written(keys, words):
    assert spelled(keys) == words


def test_a_place_is_that_of_the_nearest_key_that_is_there(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("a:\n  b:\n    - 1\n    - {c: 2}\n")
    _, source = read(path)
    assert source.at("a", "b", 1, "c") == "mine.yaml, line 4: a.b[1].c"
    assert source.at("a", "b", 1, "gone") == "mine.yaml, line 4: a.b[1].gone"
    assert source.at("a", "gone") == "mine.yaml, line 2: a.gone"
    assert source.at() == "mine.yaml, line 1"


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        ("end: score == 9\n", 0, "line 1, column 6"),
        ("end: score == 9\n", 6, "line 1, column 12"),
        ("end: 'score == 9'\n", 6, "line 1, column 13"),
        ("end: >\n  score\n  == 9\n", 0, "line 2, column 3"),
        ("end: >\n  score\n  == 9\n", 6, "line 3, column 3"),
        ("end: |\n  score ==\n   9\n", 0, "line 2, column 3"),
    ],
)
def test_a_place_inside_an_expression_is_found_however_it_is_written(tmp_path, text, offset, place):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    _, source = read(path)
    assert source.within(("end",), offset) == f"mine.yaml, {place}: end"


def test_a_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("a: {b: 1}\nc: 2\na: 3\n")
    with pytest.raises(ConfigError, match=r"^mine\.yaml, line 3: a stands twice; keep one\."):
        read(path)


def test_one_line_of_features_may_stand_for_many():
    features = {"near": {"each": 3, "is": "byte(0xC000 + n)"}, "score": "score / 9"}
    assert parsed(features=features).feature_names == ["near_0", "near_1", "near_2", "score"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"each": 3}, "features.near.is: must be an expression"),
        ({"is": "n"}, "features.near.each: 0 is no whole number from 1 to 1024"),
        ({"each": 2000, "is": "n"}, "features.near.each: 2000 is no whole number"),
        ({"each": 2, "is": "n", "of": 1}, "features.near.of: unknown key of; there are each, is"),
        ([1], "features.near: must be an expression"),
    ],
)
def test_features_that_stand_for_many_are_refused_by_name(value, words):
    assert words in refusal(features={"near": value})
