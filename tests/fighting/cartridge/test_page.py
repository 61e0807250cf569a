"""The page on profiles: its example is a profile, its refusal is what the program says."""

import re
from pathlib import Path

import pytest

from fighting.cartridge.meaning import CLOCKS, EVERY
from fighting.cartridge.reading import load_profile
from fighting.cartridge.rules import compiled
from fighting.choices import Weights
from frugal_rl.errors import ConfigError

PAGE = (Path(__file__).parents[3] / "docs" / "fighting_profiles.md").read_text()
EXAMPLE = re.search(r"```yaml\n(.*?)```", PAGE, re.S)[1]


def test_the_example_is_a_profile_and_its_mistake_is_told_as_the_page_says(tmp_path):
    path = tmp_path / "boxing.yaml"
    path.write_text(EXAMPLE)
    profile = load_profile(str(path))
    rules = compiled(profile, Weights())
    assert list(rules.reward) == ["points", "hurt"]
    assert profile.goal.time_limit == 60
    path.write_text(EXAMPLE.replace("rise(score)", "rise(scor)"))
    with pytest.raises(ConfigError) as caught:
        compiled(load_profile(str(path)), Weights())
    assert str(caught.value) in PAGE


def test_the_page_names_every_function():
    for name in (*EVERY, *CLOCKS):
        assert f"`{name}" in PAGE, name
