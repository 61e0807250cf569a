"""Bad profiles and cartridges: one line each, as the page on profiles shows them."""

from pathlib import Path

import numpy as np
import pytest

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.game import CartridgeGame
from fighting.cartridge.reading import FOLDER
from fighting.cartridge.start_states import write_state
from fighting.machine.emulator import Emulator
from fighting.rom import HOP, STACK
from fighting.spec import View
from frugal_rl.errors import ConfigError, DataError

PAGE = (Path(__file__).parents[3] / "docs" / "fighting_profiles.md").read_text()
HOP_YAML = (FOLDER / "hop.yaml").read_text()
CHANGES = {
    "address": ("addr: 0xC003", "addr: 0x1003"),
    "expression": ("rise(score)", "rise(scor)"),
    "no end": ("end: phase == 2\n", "", "time_limit: 30\n", ""),
    "macro": ("[a]]\n", "[a]]\n  macros: {leap: [[right, jump], 4]}\n"),
    "unknown key": ("time_limit: 30", "timelimit: 30"),
    "division": ("points: rise(score)", "points: rise(score) / (lives - 3)"),
    "state": ("- {save: running}", "- {state: other.state}"),
    "no rules": (HOP_YAML[HOP_YAML.index("reward:") : HOP_YAML.index("features:")], ""),
}


def begun(config):
    """One step of one machine."""
    game = CartridgeGame(config, 1)
    game.seed([np.random.default_rng(0)])
    game.begin(np.zeros(1, np.int64))
    game.advance(np.zeros(1, np.int64))


def said(folder, change="", rom=None):
    """What is said of a runner's profile with a change, or of an image."""
    text, words = HOP_YAML, CHANGES.get(change, ())
    for old, new in zip(words[::2], words[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "runner.yaml").write_text(text)
    image = None if rom is None else str(folder / "mine.gb")
    if image:
        Path(image).write_bytes(rom)
    config = GameBoyConfig(profile=str(folder / "runner.yaml"), rom=image, obs=View.ram)
    with pytest.raises((ConfigError, DataError)) as caught:
        begun(config)
    return str(caught.value).replace(f"{folder}/", "")


ODD = {
    "key twice": ("time_limit: 30", "time_limit: 30\ntime_limit: 60", "time_limit stands twice"),
    "empty macro": ("[a]]\n", "[a]]\n  macros: {leap: []}\n", "macros.leap: must alternate"),
    "sign of digits": ("addr: 0xC003", "addr: 0xC003, kind: bcd, signed: true", "signed is for"),
    "quoted address": ("addr: 0xC003", 'addr: "0xC003"', "no number; write it like 0xC0A0"),
    "last byte": ("addr: 0xC003", "addr: 0xFFFF, size: 2", "address 0xffff with 2 bytes lies"),
    "decimals low first": ("kind: bcd, max: 9999", "kind: bcd, big: false", "big is for kind"),
    "switch in words": (
        "addr: 0xC012, signed: true",
        "addr: 0xC012, signed: no way",
        "use true or",
    ),
    "clock": ("  lives: {", "  seconds: {addr: 0xC008}\n  lives: {", "something else"),
    "name with a dash": (
        "  lives: {",
        "  lives-left: {addr: 0xC008}\n  lives: {",
        "something else",
    ),
    "lost wait": (
        "{save: running}",
        "{wait: 60, save: running}",
        "start[2].save: unknown key save",
    ),
    "misspelt wait": ("every: 20, timeout: 600", "every: 20, timeot: 600", "unknown key timeot"),
    "patience of none": ("start, until: phase == 1, every", "start, every", "need an until"),
    "no recipe": ("- {save: running}", "- jump", "start[2] is none of press"),
    "misspelt actions": ("  combos:", "  makros: {}\n  combos:", "actions.makros: unknown key"),
    "rules of a fight": ("time_limit: 30", "rules: {round_seconds: 30}", "count in a fight"),
    "endless": ("points: rise(score)", "points: 1e308 * (lives + 9)", "no finite number"),
    "long": ("points: rise(score)", f"points: rise(score){' + 1' * 2000}", "8011 characters"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_would_be_read_otherwise_than_meant_is_refused(tmp_path, monkeypatch, name):
    old, new, words = ODD[name]
    monkeypatch.setitem(CHANGES, name, (old, new))
    line = said(tmp_path, name)
    assert line.startswith("runner.yaml, line ")
    assert words in line
    assert len(line) < 400


@pytest.mark.parametrize("change", sorted(set(CHANGES) - {"state"}))
def test_a_bad_profile_is_one_line_with_file_line_and_remedy(tmp_path, change):
    line = said(tmp_path, change)
    assert line.startswith("runner.yaml, line ")
    assert "\n" not in line
    assert f"`{line}`" in PAGE or f"`` {line} ``" in PAGE, line


def test_a_state_of_another_cartridge_is_one_line(tmp_path):
    rom = STACK.image.read_bytes()
    other = Emulator(rom)
    write_state(tmp_path / "other.state", other, rom)
    other.close()
    line = said(tmp_path, "state")
    assert f"`{line}`" in PAGE, line


@pytest.mark.parametrize("kind", ["truncated", "other"])
def test_a_wrong_or_truncated_image_is_one_line(tmp_path, kind):
    rom = HOP.image.read_bytes()[:20_000] if kind == "truncated" else STACK.image.read_bytes()
    line = said(tmp_path, rom=rom)
    assert f"`{line}`" in PAGE, line
