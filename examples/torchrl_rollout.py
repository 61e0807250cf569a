"""TorchRL's replay buffer as PPO uses it, with a storage that finds what repeats."""

import torch

from frugal_rl.errors import ConfigError

STEPS, SIDE = 512, 48


def walking_dot():
    """Four stacked frames [STEPS, 4, SIDE, SIDE] of a dot, and the column where it is."""
    pixels = torch.zeros(STEPS, 4, SIDE, SIDE, dtype=torch.uint8)
    place = torch.randint(-1, 2, (STEPS,)).cumsum(0) % SIDE
    for step in range(STEPS):
        pixels[step, :-1] = pixels[step - 1, 1:] if step else 0
        pixels[step, -1, 20:24, place[step]] = 255
    return pixels, place


def main():
    """Fill the buffer, draw from it, tell what it takes."""
    try:
        from tensordict import TensorDict
        from torchrl.data import ReplayBuffer, SamplerWithoutReplacement

        from frugal_rl.store.torchrl_storage import FoundStorage
    except (ConfigError, ImportError) as error:
        print(f"left out: {error}; pip install -c constraints.txt 'frugal-rl[torchrl]'")
        return
    storage = FoundStorage(STEPS)  # was: LazyTensorStorage(STEPS)
    replay = ReplayBuffer(
        storage=storage,
        sampler=SamplerWithoutReplacement(),
        batch_size=64,
        collate_fn=lambda rows: rows,  # TorchRL asks for one where the storage is not its own
    )
    pixels, place = walking_dot()
    replay.extend(TensorDict({"pixels": pixels, "place": place}, batch_size=[STEPS]))
    for batch in replay:
        assert torch.equal(batch["pixels"][:, -1, 20, :].argmax(1), batch["place"])
    print(f"{pixels.nbytes / STEPS:,.0f} B a row as they are, {storage.nbytes / STEPS:,.0f} kept")


main()
