"""TorchRL's buffers over found rollouts: what is drawn is what was written."""

import pytest
import torch

from frugal_rl.errors import ConfigError

pytest.importorskip("torchrl", reason="needs pip install 'frugal-rl[torchrl]'")


def rollout(seed, steps):
    from tensordict import TensorDict

    drawn = torch.Generator().manual_seed(seed)
    pixels = torch.zeros(steps, 3, 16, 16, dtype=torch.uint8)
    pixels[torch.arange(steps), :, torch.randint(16, (steps,), generator=drawn)] = 255
    rows = {"pixels": pixels, "next": {"pixels": pixels.roll(-1, 0), "reward": torch.rand(steps)}}
    return TensorDict(rows, batch_size=[steps])


def storage(steps):
    from frugal_rl.store.torchrl_storage import FoundStorage

    return FoundStorage(steps)


def test_what_is_drawn_is_what_was_written_rollout_after_rollout():
    from torchrl.data import TensorDictReplayBuffer

    kept = storage(40)
    replay = TensorDictReplayBuffer(storage=kept, batch_size=16, collate_fn=lambda rows: rows)
    for seed in range(3):
        rows = rollout(seed, 40)
        replay.empty()
        replay.extend(rows)
        batch = replay.sample()
        at = batch["index"]

        assert torch.equal(batch["pixels"], rows["pixels"][at])
        assert torch.equal(batch["next", "pixels"], rows["next", "pixels"][at])
        assert torch.equal(batch["next", "reward"], rows["next", "reward"][at])
    assert kept.nbytes < 40 * 2 * 768


def test_a_row_a_slice_and_a_saved_state_come_back():
    kept, rows = storage(40), rollout(0, 12)
    kept.set(range(12), rows)

    other = storage(40)
    other.load_state_dict(kept.state_dict())

    assert len(other) == 12
    assert torch.equal(other.get(7)["pixels"], rows["pixels"][7])
    assert torch.equal(other.get(slice(2, 5))["next", "reward"], rows["next", "reward"][2:5])


def test_a_ring_is_refused_in_words():
    kept = storage(40)
    kept.set(range(12), rollout(0, 12))

    with pytest.raises(ConfigError, match="place 12 or 0 comes next, not 20"):
        kept.set(range(20, 24), rollout(0, 4))
    with pytest.raises(IndexError, match="Place 12 is not written"):
        kept.get(12)
