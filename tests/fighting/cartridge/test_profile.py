"""Profiles: their schema, the ROM they want, recipes, probing; and every refusal in words."""

import hashlib
import zlib

import numpy as np
import pytest
import yaml

from fighting.cartridge.buttons import facing_left
from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.env import GameBoyEnv
from fighting.cartridge.memory import Status
from fighting.cartridge.reading import FOLDER, load_profile, parse_profile
from fighting.machine import duel
from fighting.machine.emulator import Emulator, RomError, StateError, read_rom
from fighting.rom import ROM_PATH
from fighting.spec import View
from fighting.tools import candidates
from fighting.tools.address_search import Found, written
from frugal_rl.errors import ConfigError

OWN = ["duel", "hop", "hop_places", "roam", "stack", "volley"]
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@pytest.fixture
def node():
    return yaml.safe_load((FOLDER / "duel.yaml").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_every_bundled_profile_is_valid_and_names_its_sources(name):
    profile = load_profile(name)
    assert profile.id == name
    assert len(profile.combos) == (16 if profile.goal is None else len(set(profile.combos)))
    for address in profile.memory.values():
        assert (address.status is Status.unknown) == (address.addr is None)
        assert address.source or address.status is Status.unknown
        assert name in OWN or address.status is not Status.verified


def test_only_our_own_cartridges_are_listed_as_bundled():
    bundled = [n for n in NAMES if any(image.bundled for image in load_profile(n).roms)]
    assert bundled == OWN


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda n: n.pop("memory"), "memory missing"),
        (lambda n: n.update(schema=2), "schema 2"),
        (lambda n: n.update(extra=1), "unknown key extra"),
        (lambda n: n.update(system="nes"), "system: 'nes' is none of dmg, cgb"),
        (lambda n: n["memory"]["timer"].update(kind="roman"), "memory.timer"),
        (lambda n: n["memory"]["timer"].update(adress=1), "unknown key adress"),
        (lambda n: n["memory"]["p1_hp"].update(addr=0x1234), "0x1234 lies outside"),
        (lambda n: n["actions"]["combos"].append(["kick"]), r"combos\[16\]: no button 'kick'"),
        (lambda n: n["actions"]["macros"].update(x=[["a"]]), "macros.x: must alternate"),
        (lambda n: n["roms"].append({"sha1": "12"}), "sha1 of 40"),
    ],
)
def test_a_broken_profile_is_refused_with_its_place(node, change, problem):
    change(node)
    with pytest.raises(ConfigError, match=problem):
        parse_profile(node, "mine.yaml")


def test_an_unknown_profile_names_the_bundled_ones():
    with pytest.raises(ConfigError, match="killer_instinct"):
        load_profile("no_such_game")


def test_a_missing_truncated_or_damaged_rom_is_refused(tmp_path):
    path = tmp_path / "mine.gb"
    with pytest.raises(RomError, match="no cartridge image"):
        read_rom(path)
    rom = ROM_PATH.read_bytes()
    path.write_bytes(rom[:20_000])
    with pytest.raises(RomError, match=r"20000 bytes, its header .* declares 32768"):
        read_rom(path)
    path.write_bytes(b"short")
    with pytest.raises(RomError, match="too few"):
        read_rom(path)
    path.write_bytes(rom[:0x134] + b"\xff" + rom[0x135:])
    with pytest.raises(RomError, match="checksum"):
        read_rom(path)


def test_a_wrong_rom_is_refused_by_its_sha1_and_may_be_tried(tmp_path):
    path = tmp_path / "mine.gb"
    rom = bytearray(ROM_PATH.read_bytes())
    rom[0x7FFF] ^= 1
    path.write_bytes(rom)
    profile = load_profile("duel")
    with pytest.raises(ConfigError, match="allow_unknown_rom"):
        profile.open_rom(str(path))
    with pytest.warns(UserWarning, match="SHA-1"):
        assert profile.open_rom(str(path), allow_unknown=True) == bytes(rom)


def test_a_profile_without_health_or_with_a_guess_is_refused():
    with pytest.raises(ConfigError, match="does not know where p1_hp is"):
        load_profile("street_fighter_2").check_trainable(accept_guesses=True)
    guessed = load_profile("killer_instinct")
    with pytest.raises(ConfigError, match="only guesses where p2_hp is"):
        guessed.check_trainable(accept_guesses=False)
    guessed.check_trainable(accept_guesses=True)


def test_a_game_without_its_rom_is_refused():
    with pytest.raises(ConfigError, match="needs your own cartridge image"):
        GameBoyConfig(profile="mortal_kombat").make()


def test_a_state_of_another_version_or_cut_short_is_refused(booted):
    state = booted.save()
    with pytest.raises(StateError, match="reads formats up to"):
        booted.load(bytes([state[0] + 1]) + state[1:])
    other = Emulator(ROM_PATH.read_bytes())
    with pytest.raises(StateError, match="truncated or belongs to another"):
        other.load(state[:1000])
    other.close()


def test_facing_left_swaps_right_and_left_only():
    assert facing_left(0b0001_0011) == 0b0010_0011
    assert facing_left(0b0110_0000) == 0b0101_0000


def recipe(node, tmp_path, start):
    node["start"] = start
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(node))
    return str(path)


def test_a_recipe_leads_from_power_on_into_a_fight(node, tmp_path):
    start = [{"wait": 60}, {"until": {"memory": "phase", "eq": 2}, "timeout": 300}, {"save": "one"}]
    profile = recipe(node, tmp_path, start)
    config = GameBoyConfig(profile=profile, obs=View.gray, stack=1, cache=str(tmp_path / "kept"))
    env = GameBoyEnv(config, seed=0)
    assert len(list((tmp_path / "kept").iterdir())) == 1
    again = GameBoyEnv(config, seed=0)
    rng = np.random.default_rng(0)
    rewards = []
    for _ in range(150):
        action = int(rng.integers(16))
        one, two = env.step(action), again.step(action)
        np.testing.assert_array_equal(one[0]["frame"], two[0]["frame"])
        rewards.append(one[1])
        if one[2] or one[3]:
            break
    assert any(reward != 0 for reward in rewards)
    env.close()
    again.close()


def test_kept_states_of_another_version_are_refused_with_their_file(tmp_path):
    GameBoyEnv(GameBoyConfig(cache=str(tmp_path))).close()
    (path,) = tmp_path.iterdir()
    state = bytearray(zlib.decompress(path.read_bytes()[4:]))
    state[0] = 99
    packed = zlib.compress(bytes(state))
    path.write_bytes(len(packed).to_bytes(4, "little") + packed)
    with pytest.raises(StateError, match=rf"{path.name}: .* format 99; .* Without the file"):
        GameBoyEnv(GameBoyConfig(cache=str(tmp_path)), seed=0)


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        ([{"until": {"memory": "phase", "eq": 77}, "timeout": 5}], "did not happen within 5"),
        ([{"jump": 1}], r"start\[0\] is none of"),
        ([{"press": "turbo"}], "no button 'turbo'"),
    ],
)
def test_a_recipe_that_fails_says_where(node, tmp_path, start, problem):
    with pytest.raises(ConfigError, match=problem):
        GameBoyEnv(GameBoyConfig(profile=recipe(node, tmp_path, start)))


def test_the_probe_finds_health_and_clock_of_duel(match):
    fight = match(gap=24)

    def memory():
        return np.array(fight.emulator.read(0xC000, 0x2000), np.uint8)

    calm = [memory()]
    for _ in range(5):
        fight.play()
        calm.append(memory())
    before, after = [], []
    for _ in range(3):
        before.append(memory())
        fight.play(duel.RIGHT, 0, frames=4)
        fight.play(duel.A)
        fight.play(frames=25)
        after.append(memory())
    found = candidates.health(np.array(before), np.array(after), np.array(calm))
    assert 0xC200 in {candidate.addr for candidate in found}
    assert any(c.value == 112 and "guess" in c.yaml() for c in found)

    frames = []
    fight = match()
    for _ in range(300):
        fight.play()
        frames.append(memory())
    assert [c.addr for c in candidates.clocks(np.array(frames))] == [0xC025]


def test_the_probe_reads_decimal_clocks():
    frames = np.zeros((400, 0x2000), np.uint8)
    for frame in range(400):
        seconds = 42 - frame // 60
        frames[frame, 7] = seconds // 10 << 4 | seconds % 10
    (found,) = candidates.clocks(frames)
    assert (found.addr, found.kind) == (0xC007, "bcd")


def test_pairs_of_blocks_share_their_distance():
    def at(*addresses):
        return [candidates.Candidate("hp", a, 1, "") for a in addresses]

    assert candidates.fighter_blocks(at(0xC100, 0xC130), at(0xC200, 0xC230)) == [
        (0xC100, 0xC200),
        (0xC130, 0xC230),
    ]


def test_what_falls_in_unison_or_begins_otherwise_is_no_pair_of_fighters():
    def at(address, value, *when):
        return candidates.Candidate("hp", address, value, "", when=when)

    sprites = [at(0xC300 + 4 * row, 48, 7, 9) for row in range(5)]
    one = [at(0xC090, 36, 4), at(0xC100, 112, 3), *sprites]
    two = [at(0xC200, 112, 5), *sprites]
    assert candidates.fighter_blocks(one, two) == [(0xC100, 0xC200)]


def test_cheat_codes_become_candidates():
    text = 'cheat0_desc = "Infinite Energy P1"\ncheat0_code = "014797C0+01FF00A0"\n'
    (found,) = candidates.from_cheats(text)
    assert (found.addr, found.value) == (0xC097, 0x47)


def random_game(frames, lives, score):
    """Memory of a game: lives at $C000, points at $C001, a frame counter, a clock, a drawn bar."""
    rng = np.random.default_rng(0)
    memory = np.zeros((frames, 0x2000), np.uint8)
    memory[:, 0], memory[:, 2] = lives, np.arange(frames) % 256
    memory[:, 3] = 9 - np.arange(frames) // 60 % 9
    memory[:, 4] = np.clip(112 - np.maximum(np.arange(frames) - 40, 0), 0, 112)
    hits = np.sort(rng.choice(np.arange(40, frames, 45), lives, replace=False))
    for hit in hits:
        memory[hit:, 0] -= 1
    for gain in np.sort(rng.choice(np.arange(50, frames, 30), score, replace=False)):
        memory[gain:, 1] += 1
    return memory


@pytest.mark.parametrize("lives", [1, 2, 3, 8])
def test_lives_of_any_size_and_a_score_are_found_and_clocks_are_not_taken_for_them(lives):
    found = Found.of(random_game(500, lives, 5), np.zeros(500, np.uint8))
    assert [(c.addr, c.value) for c in found.fallers] == [(0xC000, lives)]
    assert [(c.addr, c.value) for c in found.risers] == [(0xC001, 5)]


def test_the_profile_that_a_probe_writes_trains_as_it_stands(tmp_path):
    game = load_profile("duel")
    line, _ = written(Found.of(random_game(500, 3, 5), np.zeros(500, np.uint8)), game, tmp_path, "")
    assert "env.accept_guesses=true" in line
    assert (tmp_path / "duel_found.png").stat().st_size > 1000
    path = tmp_path / "duel_found.yaml"
    config = GameBoyConfig(
        profile=str(path),
        rom=str(ROM_PATH),
        obs=View.ram,
        accept_guesses=True,
        allow_unknown_rom=True,
    )
    assert {name: text.text for name, text in config.game.goal.reward.items()} == {
        "score_0": "rise(score_0) / 5",
        "lives_0": "-fall(lives_0) / 3",
    }
    assert config.game.combos == game.combos
    with pytest.warns(UserWarning, match="fits none yet"):
        env = GameBoyEnv(config, seed=0)
    assert env.step(0)[0]["features"].shape == (len(config.game.features),)
    env.close()


def test_an_image_is_known_by_sha256_too(node):
    data = ROM_PATH.read_bytes()
    node["roms"] = [{"sha256": hashlib.sha256(data).hexdigest(), "name": "mine.gb"}]
    image = parse_profile(node, "mine.yaml").roms[0]
    assert image.fits(data)
    assert not image.fits(data + b"x")
    node["roms"] = [{"sha256": "f" * 40}]
    with pytest.raises(ConfigError, match="roms need a sha256 of 64 lower-case hex"):
        parse_profile(node, "mine.yaml")
