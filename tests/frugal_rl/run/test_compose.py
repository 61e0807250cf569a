"""The command line: what a typed word becomes, and what is said about a mistyped one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from frugal_rl import cli
from frugal_rl.errors import ConfigError
from frugal_rl.run.compose import compose_run, run_from
from frugal_rl.run.composing import check_choices, check_words, compose_plain
from frugal_rl.run.search_path import searching

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
from frugal_rl.run.command import main
from frugal_rl.errors import MemoryBudgetError

@main("train")
def run(cfg):
    if cfg.memory.profile == "baseline":
        raise MemoryBudgetError("It needs 100 TB. Choose memory=lossless.")
    print("ran", cfg.seed, cfg.memory.profile, cfg.algo.num_envs)

if __name__ == "__main__":
    run()
"""


def run_script(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.py").write_text(SCRIPT)
    return subprocess.run(
        [sys.executable, "job.py", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memory=losless"], "memory=losless is no choice; did you mean 'lossless'?"),
        (["memmory=lossless"], "memmory is no option; did you mean 'memory'?"),
        (["algo.n_step=2"], "algo.n_step is no option; did you mean 'algo.n_steps'?"),
        (["n_steps=2"], "n_steps is no option; did you mean 'algo.n_steps'?"),
        (["env=ncloen"], "env=ncloen is no choice; did you mean 'nclone'?"),
        (["memory=parallel,spars"], "memory=spars is no choice; did you mean 'sparse'?"),
        (["memory.storag=half,dense"], "memory.storag is no option; did you mean 'memory.storage'"),
        (["hardwre.ram_gib=3"], "did you mean 'hardware.ram_gib'?"),
        (["env=nclone", "env.levels.7=walk"], "7 is no item: env.levels has 4; write env.levels="),
        (["env=nclone", "env.levels.x=walk"], "env.levels.x is no item: env.levels has"),
        (["algo.n_steps=glob(*)"], "matches choices, and algo.n_steps has none; name values"),
        (["algo.n_steps=interval(0,1)"], "is for a search, not for a sweep; name values"),
        (["+memory=lossless"], "adds what there is already; write memory=lossless."),
        (["++memory=lossless"], "adds what there is already; write memory=lossless."),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest_valid_one(words, message):
    with pytest.raises(ConfigError) as error:
        check_words("train", words)

    assert message in str(error.value)


@pytest.mark.parametrize(
    ("typed", "written"),
    [("0,99", "0.99"), ("-0,005", "-0.005"), ("1,000", "1000"), ("1,000,000", "1000000")],
)
def test_a_number_with_commas_is_told_as_it_is_written_here(typed, written):
    with pytest.raises(ConfigError, match=rf"A number is written {re.escape(written)}\.$"):
        check_choices([f"algo.gamma={typed}"], sweep=False)


@pytest.mark.parametrize("word", ["env.levels=walk,jump", "seed=0,1", "algo.n_steps=64,128"])
def test_several_values_are_no_number(word):
    with pytest.raises(ConfigError, match=r"for one list\.$"):
        check_choices([word], sweep=False)


@pytest.mark.parametrize(("word", "near"), [("algo.n_step=2", "n_steps"), ("seeed=2", "seed")])
def test_a_run_is_refused_with_the_nearest_key(word, near):
    with pytest.raises(ConfigError, match=rf"is no option; did you mean '(algo\.)?{near}'"):
        compose_run(["env=toy", word])


def test_a_file_that_was_changed_is_composed_anew(tmp_path):
    """Also among the tests, in which the same words are composed once."""
    own = tmp_path / "env" / "own.yaml"
    own.parent.mkdir()
    for name in ("one", "two"):
        text = (ROOT / "conf" / "env" / "toy.yaml").read_text()
        own.write_text(text.replace("name: toy", f"name: {name}"))
        with searching([], [str(tmp_path)]):
            assert compose_plain("train", ["env=own"])[0].env.name == name


def test_words_that_hydra_understands_pass_the_check():
    check_words("train", ["seed=0,1,2", "memory=parallel,baseline", "algo.total_steps=1e6"])
    check_words("train", ["env.levels=[walk,fall,slope,jump,drone]", "env.levels.4=walk,jump"])
    check_words("train", ["+algo.new=1", "~experiment", "hydra/launcher=joblib", "env=toy"])
    check_words("plan", ["compare=true", "format=json", "seed=range(0,3)"])
    check_words("train", ["env=glob(mine_*)", "env.max_steps=3"])


def test_the_choices_that_a_group_offers_are_all_listed_where_none_is_near():
    with pytest.raises(
        ConfigError,
        match=r"vec=qqqq is no choice; choose from batch, episodes, sb3, serial, shared",
    ):
        check_words("train", ["vec=qqqq"])


def test_a_refused_single_run_prints_one_clear_line(tmp_path):
    done = run_script(tmp_path, "memory=baseline")

    assert done.returncode == 1
    (line,) = [said for said in done.stderr.splitlines() if "reading the config" not in said]
    assert line == "MemoryBudgetError: It needs 100 TB. Choose memory=lossless."


def test_a_mistyped_run_never_starts(tmp_path):
    done = run_script(tmp_path, "memory=losless")

    assert done.returncode == 1
    assert "did you mean 'lossless'?" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_a_sweep_goes_on_after_a_refused_job(tmp_path, launcher):
    words = ["-m", "seed=0,1", "memory=baseline,parallel"]
    done = run_script(tmp_path, *words, f"hydra/launcher={launcher}")

    assert "MemoryBudgetError" in done.stderr
    if launcher == "basic":
        assert "ran 0 parallel 128\n" in done.stdout
        assert "ran 1 parallel 128\n" in done.stdout


def test_a_checkpoint_cannot_bring_its_own_trusted_packages():
    values = {"env": {"_target_": "evil.Config"}, "plugins": ["evil"]}

    with pytest.raises(ConfigError, match=r"env\._target_=evil\.Config lies outside"):
        run_from(values)


def test_the_console_command_runs_the_scripts_and_knows_no_others(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["frugal-rl", "trian"])
    with pytest.raises(SystemExit, match="did you mean 'train'"):
        cli.main()

    monkeypatch.setattr(sys, "argv", ["frugal-rl"])
    cli.main()
    assert " plan " in capsys.readouterr().out

    monkeypatch.setattr(sys, "argv", ["frugal-rl", "plan", "memory=losless"])
    with pytest.raises(SystemExit, match="did you mean 'lossless'"):
        cli.main()
