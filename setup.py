"""Puts conf/ and scripts/ into the wheel beside the core; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

PACKAGES = ["frugal_rl*", "nclone*", "npp_rl*", "mine_rl_npv*", "fighting*"]

setup(
    packages=[*find_packages(include=PACKAGES), "frugal_rl.conf", "frugal_rl.scripts"],
    package_dir={"frugal_rl.conf": "conf", "frugal_rl.scripts": "scripts"},
    package_data={
        "": ["py.typed"],
        "frugal_rl": ["completion.sh"],
        "frugal_rl.conf": ["**/*.yaml"],
        "nclone": ["levels/*.npz", "levels/bundled/*", "levels/drawn/*", "levels/bests/*"],
        "fighting": ["rom/*", "profiles/*"],
        "mine_rl_npv": ["data/**/*"],
    },
)
