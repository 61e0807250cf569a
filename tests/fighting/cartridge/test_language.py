"""The language of profiles: what expressions are worth, and where each refusal points."""

import numpy as np
import pytest

from fighting.cartridge.meaning import Meanings
from fighting.cartridge.memory import Address, Kind
from fighting.cartridge.reading import parse_profile
from fighting.cartridge.rules import compiled
from fighting.cartridge.scene import Scene, joined
from fighting.cartridge.source import read
from fighting.cartridge.syntax import DEEPEST, ExpressionError, parse
from fighting.choices import Weights
from frugal_rl.errors import ConfigError

MEMORY = {
    "lives": Address(0xC000),
    "score": Address(0xC001, size=2, kind=Kind.bcd),
    "lost": Address(None),
}
BYTES = {0xC000: 3, 0xC001: 0x12, 0xC002: 0x34, 0xC003: 0xFE, 0xC010: 0x81, 0xC011: 0x8F, 0xC012: 9}


class World:
    """One machine whose memory is a dict; `step` moves time on."""

    def __init__(self, *texts):
        self.meanings = Meanings(MEMORY)
        self.values = [self.meanings.of(text) for text in texts]
        slots, maps = len(self.meanings.slots), len(self.meanings.maps)
        self.scene = Scene.empty(2, self.meanings.watched, slots, maps)
        self.bytes = dict(BYTES)
        self.fill()
        self.meanings.begin(self.scene, np.arange(2))

    def fill(self):
        for address, column in self.meanings.watched.addresses.items():
            self.scene.memory[:, column] = self.bytes.get(address, 0)

    def step(self, **changes):
        self.scene.pass_on()
        self.bytes |= {int(name[1:], 16): value for name, value in changes.items()}
        self.fill()
        self.scene.steps += 1
        self.scene.frames += 4
        self.meanings.keep(self.scene)
        return self

    def now(self):
        found = [value(self.scene) for value in self.values]
        assert all(v.shape == (2,) and v[0] == v[1] for v in found)
        return [float(v[0]) for v in found]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-2 * 3 - -1", -5),
        ("7 // 2 + 7 % 4 + 1 / 4", 6.25),
        ("2 < 3 and not 3 < 2", 1),
        ("not 1 == 2", 1),
        ("0 or 0.5", 1),
        ("0xF0 | $0F", 255),
        ("6 & 3 == 2", 1),
        ("1 << 4 >> 2", 4),
        ("~0x0F & 0xFF", 0xF0),
        ("1.5e2 + .5", 150.5),
        ("lives", 3),
        ("score", 1234),
        ("byte(0xC001)", 0x12),
        ("word(0xC001)", 0x3412),
        ("word_be(0xC001)", 0x1234),
        ("signed(0xC003)", -2),
        ("bcd(0xC001, 1)", 12),
        ("digits(0xC010, 3, 0x80)", 100),
        ("min(lives, 2, 9) + max(1, lives) + abs(-4)", 9),
        ("clip(99, 0, 10) + if(lives == 3, 1, 2)", 11),
        ("one_of(lives, 1, 2) + one_of(lives, 2, 3)", 1),
        ("steps + seconds", 0),
    ],
)
def test_an_expression_is_worth_what_it_says(text, value):
    assert World(text).now() == [value]


def test_digits_that_are_blank_count_as_nothing():
    assert World("digits(0xC010, 3, 0x80)").step(xC010=0x20).now() == [0]
    assert World("digits(0xC010, 2, 0x80)").step(xC011=0x83).now() == [13]


def test_a_value_may_rise_and_fall_and_both_can_be_paid():
    world = World("change(score)", "rise(score)", "fall(score)", "changed(lives)", "was(lives)")
    assert world.now() == [0, 0, 0, 0, 3]
    assert world.step(xC002=0x44).now() == [10, 10, 0, 0, 3]
    assert world.step(xC002=0x40, xC000=2).now() == [-4, 0, 4, 1, 3]
    assert world.step().now() == [0, 0, 0, 0, 2]


def test_edges_are_seen_once():
    world = World("began(lives == 2)", "ended(lives == 2)")
    assert world.step(xC000=2).now() == [1, 0]
    assert world.step().now() == [0, 0]
    assert world.step(xC000=1).now() == [0, 1]


def test_what_is_kept_belongs_to_the_episode():
    world = World("rise(best(lives))", "start(lives)", "lowest(lives)", "best(lives)")
    assert world.step(xC000=5).now() == [2, 3, 3, 5]
    assert world.step(xC000=1).now() == [0, 3, 1, 5]
    assert world.step(xC000=6).now() == [1, 3, 1, 6]
    world.meanings.begin(world.scene, np.arange(2))
    assert world.now() == [0, 6, 6, 6]


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("1 +", 3, "a value is missing at the end"),
        ("rise(scor)", 5, "no value 'scor'; there are lives, score"),
        ("import(1)", 0, "no function 'import'"),
        ("lives @ 2", 6, "'@' means nothing here"),
        ("(lives", 6, r"'\)' is missing at the end"),
        ("1 < 2 < 3", 6, "join two comparisons by 'and'"),
        ("2 3", 2, "'3' is left over"),
        ("rise(rise(score))", 5, "rise cannot stand inside rise"),
        ("byte(lives)", 5, "byte takes whole numbers, written out"),
        ("byte(0x1234)", 0, r"\$1234 lie outside \$8000-\$FFFF"),
        ("clip(1)", 0, "clip takes 3 values, not 1"),
        ("pixel(160, 3)", 0, "outside the screen"),
        ("lost == 1", 0, "does not know where 'lost' is"),
        ("__class__", 0, "no value '__class__'"),
        ("(" * (DEEPEST + 1) + "1", DEEPEST, "brackets within brackets"),
        ("1 +" * 800 + "1", 0, "at most 2000"),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text, at, words):
    with pytest.raises(ExpressionError, match=words) as caught:
        Meanings(MEMORY).of(text)
    assert caught.value.at == at


def test_a_tree_that_is_deep_without_brackets_is_refused_too():
    with pytest.raises(ExpressionError, match="brackets within brackets"):
        parse("-" * 500 + "1")


def test_near_addresses_are_read_together():
    assert joined([0xC000, 0xC002, 0xC100]) == [(0xC000, 0xC003), (0xC100, 0xC101)]


PROFILE = """\
schema: 1
id: small
title: Small
system: dmg
memory:
  lives: {addr: 0xC000, status: verified}
actions: {combos: [[], [a]]}
reward: RULE
end: "lives == 0"
"""


def refused(tmp_path, rule):
    path = tmp_path / "small.yaml"
    path.write_text(PROFILE.replace("RULE", rule))
    with pytest.raises(ConfigError) as caught:
        compiled(parse_profile(*read(path)), Weights())
    return str(caught.value)


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ("fall(live)", "line 8, column 14: reward"),
        ('"fall(live)"', "line 8, column 15: reward"),
        ("\n  good: '1'\n  bad: 'fall(live)'", "line 10, column 14: reward.bad"),
        ("|\n  1 +\n   fall(live)", "line 10, column 9: reward"),
        (">\n  1 +\n  fall(live)", "line 10, column 8: reward"),
    ],
)
def test_a_refusal_names_line_and_column_of_the_file(tmp_path, rule, place):
    words = refused(tmp_path, rule)
    assert words.startswith(f"small.yaml, {place}: no value 'live'")
    assert "\n" not in words


def test_what_is_missing_at_the_end_is_told_on_the_line_that_ends(tmp_path):
    words = refused(tmp_path, "min(lives, 2")
    assert words.startswith("small.yaml, line 8, column 21: reward: ')' is missing at the end")


def test_a_division_by_zero_is_refused_where_it_stands(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(PROFILE.replace("RULE", "1 / lives"))
    rules = compiled(parse_profile(*read(path)), Weights())
    scene = Scene.empty(1, rules.meanings.watched, 0)
    with pytest.raises(ConfigError, match=r"line 8, .* divides by zero; guard the value"):
        rules.reward["reward"](scene)


def test_seen_counts_different_values_of_an_episode_and_pays_each_once():
    world = World("seen(lives)", "rise(seen(lives))", "seen(score << 4 | lives)")
    assert world.now() == [1, 0, 1]
    assert world.step(xC000=5).now() == [2, 1, 2]
    assert world.step(xC000=3).now() == [2, 0, 2]
    assert world.step(xC000=11).now() == [3, 1, 3]  # 3, 5 and 11 lie in two bytes of the map
    assert world.step(xC000=3, xC002=0x35).now() == [3, 0, 4]
    world.meanings.begin(world.scene, np.array([0]))
    assert [float(v) for v in world.values[0](world.scene)] == [1, 3]  # the other plays on
    world.step(xC000=5)
    assert [float(v) for v in world.values[1](world.scene)] == [1, 0]


def test_an_expression_of_each_gives_one_number_per_n():
    texts = [
        "byte(0xC000 + n) - n",
        "lives == n",
        "word(0xC010 + n)",
        "rise(byte(0xC000 + n))",
        "7",
    ]
    meanings = Meanings(MEMORY)
    values = [meanings.of(text, each=4) for text in texts]
    scene = Scene.empty(2, meanings.watched, 0)
    for address, column in meanings.watched.addresses.items():
        scene.memory[:, column] = (BYTES.get(address, 0), 1)
    found = [value(scene) for value in values]
    assert all(v.shape == (4, 2) for v in found)
    assert found[0].T.tolist() == [[3, 0x12 - 1, 0x34 - 2, 0xFE - 3], [1, 0, -1, -2]]
    assert found[1].T.tolist() == [[0, 0, 0, 1], [0, 1, 0, 0]]
    assert found[2][:, 0].tolist() == [0x8F81, 0x098F, 9, 0]
    assert found[3].T.tolist() == [[3, 0x12, 0x34, 0xFE], [1, 1, 1, 1]]  # from zeros before
    assert (found[4] == 7).all()


@pytest.mark.parametrize(
    ("text", "each", "words"),
    [
        ("byte(0xC000 + n)", 0, "byte takes whole numbers, written out"),
        ("byte(n)", 4, "byte takes whole numbers, written out"),
        ("pixel(3 + n, 3)", 4, "pixel takes whole numbers, written out"),
        ("n", 0, "no value 'n'"),
        ("best(n)", 4, "best cannot stand in an expression of each"),
        ("byte(0xFFFE + n)", 3, "lie outside"),
    ],
)
def test_what_cannot_be_asked_of_each_is_refused(text, each, words):
    with pytest.raises(ExpressionError, match=words):
        Meanings(MEMORY).of(text, each)
