"""What a command reads from the folder of a run, and words that are said otherwise."""

import pytest

from frugal_rl.run.arguments import in_our_words
from frugal_rl.run.compose import compose_run
from frugal_rl.run.of_run import groups_of_run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    text = "choices: {env: fighting, agent: mlp, algo: [1], vec: nowhere}\nseed: 1\n"
    (tmp_path / "cfg.resolved.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("below", ["", "checkpoints", "checkpoints/last.pt"])
def test_the_environment_of_a_run_need_not_be_typed(folder, below):
    words = [f"checkpoint={folder / below}", "env.opponent=cpu"]

    assert groups_of_run(words) == ["env=fighting"]
    assert groups_of_run([*words, "env=toy"]) == []
    assert groups_of_run(words[1:]) == groups_of_run(words[:1]) == []


def test_only_choices_that_exist_are_taken_over(folder):
    words = [f"checkpoint='{folder}'", "algo.gamma=1", "vec.workers=2", "agent.actor=[8]"]

    assert groups_of_run(words) == ["agent=mlp"]
    (folder / "cfg.resolved.yaml").write_text("choices: [")
    assert groups_of_run(words) == []
    (folder / "cfg.resolved.yaml").write_text("{}")
    assert groups_of_run(words) == []


def test_keywords_of_an_environment_are_typed_like_any_other_value():
    words = ["env=gymnasium", "env.id=CartPole-v1", "env.kwargs.sutton_barto_reward=true"]

    assert in_our_words(words)[-1] == "++env.kwargs.sutton_barto_reward=true"
    assert in_our_words(in_our_words(words)) == in_our_words(words)
    assert compose_run(words).env.kwargs == {"sutton_barto_reward": True}
