"""A configuration file of the user's own that cannot be used is named, with what to do."""

import re
import shlex
import sys

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from frugal_rl import cli

TARGET = "_target_: frugal_rl.testing.toy.Toy\n"
FILES = {
    "latin": ("name: caf\xe9\n".encode("latin-1"), "own.yaml is no UTF-8 .* Save it as UTF"),
    "utf_16": ((TARGET + "name: own\n").encode("utf-16"), "own.yaml is no UTF-8 .* Save it as UTF"),
    "tab": (f"{TARGET}\tname: own\n".encode(), "own.yaml: line 2: .* YAML is indented with blanks"),
    "open": (f"{TARGET}name: [own\n".encode(), "own.yaml: line 3: not valid YAML"),
    "empty": (b"", "own.yaml holds no options. Its first line is _target_: "),
    "list": (b"- a\n- b\n", "own.yaml holds no options. Its first line is _target_: "),
    "twice": (f"{TARGET}name: a\nname: b\n".encode(), 'found duplicate key name in ".*own.yaml"'),
    "no class": (b"name: own\n", "env=.* takes an EnvConfig, named by a line _target_: "),
    "no name": (f"{TARGET}nmae: own\n".encode(), "own.yaml has no line 'name: ...'; add one"),
    "defaults": (f"defaults:\n- gone\n{TARGET}".encode(), "its defaults name a file .* 'env/gone'"),
    "leads nowhere": (f"{TARGET}name: ${{gone.x}}\n".encode(), r"own.yaml: \$\{gone.x\} leads"),
    "broken code": (b"_target_: broken_plugin.Own\nname: own\n", "imported: SyntaxError: .*line 1"),
    "raising code": (b"_target_: raising_plugin.Own\nname: own\n", "imported: KeyError: 'x'"),
    "no environment": (
        b"_target_: bare_plugin.Own\nname: own\n",
        "takes an EnvConfig, which also has fields, episode_steps, spec, .*parts",
    ),
}  # fmt: skip
PLUGINS = {
    "broken_plugin": "def broken(:\n",
    "raising_plugin": "{}['x']\n",
    "bare_plugin": "import dataclasses\n@dataclasses.dataclass\nclass Own:\n    name: str = ''\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, code in PLUGINS.items():
        (tmp_path / f"{name}.py").write_text(code)
    (tmp_path / "conf" / "env").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "conf" / "env"
    GlobalHydra.instance().clear()
    HydraConfig.instance().cfg = None
    for name in PLUGINS:
        sys.modules.pop(name, None)


def said(words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["frugal-rl", *shlex.split(words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return str(ended.value.code)


@pytest.mark.parametrize(("content", "answer"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_used_is_named_in_one_line(content, answer, folder, monkeypatch):
    (folder / "own.yaml").write_bytes(content)
    plugins = ",".join(PLUGINS)
    answered = said(f"train --config-dir conf env=own plugins=[{plugins}]", monkeypatch)

    assert answered.startswith("ConfigError: ")
    assert "\n" not in answered
    assert re.search(answer, answered), answered


def test_a_file_that_is_typed_as_a_path_is_answered_with_the_words_for_it(folder, monkeypatch):
    (folder / "own.yaml").write_text(TARGET + "name: own\n")
    answered = said("train env=conf/env/own.yaml", monkeypatch)
    assert answered.endswith("its ending: --config-dir conf env=own")


def test_a_folder_is_no_choice_whatever_its_name(folder, monkeypatch):
    (folder / "own.yaml").mkdir()
    assert "env=own is no choice" in said("train --config-dir conf env=own", monkeypatch)


def test_a_file_with_windows_line_ends_and_a_mark_at_its_beginning_is_read(folder, monkeypatch):
    content = b"\xef\xbb\xbf" + (TARGET + "name: own\n").replace("\n", "\r\n").encode()
    (folder / "own.yaml").write_bytes(content)
    answered = said("train --config-dir conf env=own algo.n_steps=0", monkeypatch)
    assert answered == "ConfigError: algo.n_steps is 0; use a number of at least 1."
