"""Profiles of free games: they read what the games' sources say; no image of them is here."""

import numpy as np
import pytest

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.meaning import Meanings
from fighting.cartridge.memory import Status
from fighting.cartridge.reading import FOLDER, load_profile
from fighting.cartridge.rules import compiled, rule_of
from fighting.cartridge.scene import Scene
from fighting.cartridge.source import Text
from fighting.cartridge.start_states import condition_words
from fighting.choices import Weights
from fighting.machine.emulator import Emulator
from fighting.rom import ROM_PATH
from fighting.spec import View
from frugal_rl.errors import ConfigError

FREE = [
    "2048gb",
    "airaki",
    "big2small",
    "carazu",
    "el_dueloroso",
    "grub_glide",
    "libbet",
    "rex_runner",
    "tobu_tobu_girl",
    "tobu_tobu_girl_deluxe",
]
UNKNOWN = ["grub_glide"]
"""Whose image nobody states a hash of."""


class Shown:
    """A profile's rules on four machines whose memory is said."""

    def __init__(self, name):
        self.rules = compiled(load_profile(name), Weights())
        meanings = self.rules.meanings
        self.scene = Scene.empty(4, meanings.watched, len(meanings.slots), len(meanings.maps))

    def begin(self, memory):
        self.scene.memory[:] = memory
        self.rules.begin(self.scene, np.arange(4))

    def step(self, memory):
        self.scene.pass_on()
        self.scene.memory[:] = memory
        self.scene.steps += 1
        self.rules.keep(self.scene)

    def bytes(self, said):
        return [said.get(address, 0) for address in self.rules.meanings.watched.addresses]


@pytest.mark.parametrize("name", FREE)
def test_a_free_game_has_documented_addresses_and_a_recipe_that_can_be_read(name):
    profile = load_profile(name)
    assert {address.status for address in profile.memory.values()} == {Status.documented}
    assert any("github.com/" in address.source for address in profile.memory.values())
    assert bool(profile.roms) == (name not in UNKNOWN)
    assert profile.goal.time_limit > 0
    for number, step in enumerate(profile.start):
        if "until" in step:
            text = Text(condition_words(step["until"]), ("start", number), profile.source)
            rule_of(Meanings(profile.memory), text)


@pytest.mark.parametrize("name", FREE)
def test_whatever_a_free_games_memory_holds_its_rules_have_a_value(name):
    shown, rng = Shown(name), np.random.default_rng(0)
    rules, shape = shown.rules, shown.scene.memory.shape
    shown.begin(rng.integers(0, 256, shape))
    for _ in range(20):
        shown.step(rng.integers(0, 256, shape))
        for rule in (*rules.reward.values(), rules.end, rules.success, rules.score):
            assert rule is None or np.isfinite(rule(shown.scene)).all()
        assert all(np.isfinite(rule(shown.scene)).all() for rule in rules.features.values())


@pytest.mark.parametrize(
    ("name", "said", "score"),
    [
        ("2048gb", {0xFFB0: 0x34, 0xFFB1: 0x12}, 0x1234),
        ("airaki", {0xC0CC: 0x45, 0xC0CD: 0x23, 0xC0CE: 0x01}, 12345),
        ("carazu", {0x9C11: 96 + 1, 0x9C12: 96 + 7}, 17),
        ("el_dueloroso", {0x9803: 245, 0x9804: 246, 0x9805: 250}, -15),
        ("grub_glide", {0xFE86: 39 + 8, 0xFE8A: 39 + 1, 0xFE8E: 76}, 18),
        ("libbet", {0x9A2E: 0xF7, 0x9A2F: 0xD7, 0x9A30: 0xF6}, 7),
        ("rex_runner", dict(zip(range(0x9C0E, 0x9C14), b"001234", strict=True)), 1234),
        ("tobu_tobu_girl", {0xFF42: 112 - 30}, 30),
        ("tobu_tobu_girl_deluxe", {0xFF42: 112 - 30}, 30),
    ],
)
def test_a_score_is_read_off_what_the_game_shows(name, said, score):
    shown = Shown(name)
    shown.begin(shown.bytes({0xFF42: 112}))
    shown.step(shown.bytes(said))
    assert shown.rules.score(shown.scene).tolist() == [score] * 4


@pytest.mark.parametrize(
    ("name", "alive", "over"),
    [
        ("2048gb", {0xC00C: 0}, {0xC00C: 0xF4}),
        ("airaki", {}, {0xC164: 3}),
        ("big2small", {0xFE10: 32}, {0xFE10: 45, 0xFE12: 0x68}),
        ("carazu", {0xC0AB: 1}, {0xC0AB: 3}),
        ("el_dueloroso", {0x9805: 247, 0x9813: 254}, {0x9805: 247, 0x9813: 246}),
        ("grub_glide", {0xFF40: 0xC3}, {0xFF40: 0xC1}),
        ("rex_runner", {0x9C00: 0x10}, {0x9C00: 0x18}),
        ("tobu_tobu_girl", {0xFF47: 0xE4}, {0xFF47: 0x90}),
        ("tobu_tobu_girl_deluxe", {0xFE00: 90}, {0xFE00: 0}),
    ],
)
def test_an_episode_ends_by_what_the_game_shows(name, alive, over):
    shown = Shown(name)
    shown.begin(shown.bytes(alive))
    assert not shown.rules.end(shown.scene).any()
    shown.step(shown.bytes(over))
    assert shown.rules.end(shown.scene).all()


def test_tiles_sprites_and_registers_are_read_like_memory():
    emulator = Emulator(ROM_PATH.read_bytes())
    emulator.tick(300, True)
    screen, sprites = emulator.pyboy.tilemap_background, emulator.read(0xFE00, 160)
    assert emulator.read(0x9800, 20) == [screen.tile_identifier(x, 0) & 0xFF for x in range(20)]
    places = [emulator.pyboy.get_sprite(i) for i in range(40)]
    assert sprites[::4] == [sprite.y + 16 for sprite in places]
    assert any(sprites)
    assert emulator.read(0xFF40, 1)[0] & 0x80
    emulator.close()


@pytest.mark.parametrize("name", FREE)
def test_a_free_game_is_asked_for_with_its_image_and_says_how_it_may_be_tried(name, tmp_path):
    with pytest.raises(ConfigError, match=rf"{name}\.yaml, line \d+: roms: .* needs your own"):
        GameBoyConfig(profile=name, obs=View.ram).make()
    path = tmp_path / "mine.gb"
    path.write_bytes(ROM_PATH.read_bytes())
    known = load_profile(name).roms[0].digest if name not in UNKNOWN else "none yet"
    with pytest.raises(ConfigError, match=rf"fits {known}.* env.allow_unknown_rom=true"):
        GameBoyConfig(profile=name, rom=str(path), obs=View.ram).make()


def test_every_profile_that_is_neither_ours_nor_a_fight_is_a_free_game():
    names = {path.stem for path in FOLDER.glob("*.yaml")}
    profiles = [load_profile(name) for name in sorted(names)]
    asked = [p.id for p in profiles if p.goal and not any(i.bundled for i in p.roms)]
    assert asked == FREE
