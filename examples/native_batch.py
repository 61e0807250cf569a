"""Step 256 N++ worlds in one call and count the steps; no learner, no torch.

python examples/native_batch.py
"""

import time

import numpy as np

import frugal_rl

STEPS = 200


def main() -> None:
    """Random play: steps per second, episodes, and what the batch holds."""
    envs = frugal_rl.make_vec("env=nclone memory=parallel", num_envs=256)
    rng = np.random.default_rng(0)
    rows = envs.reset(seed=0)
    print({name: (row.shape, str(row.dtype)) for name, row in rows.items()})

    ended = 0
    begin = time.perf_counter()
    for _ in range(STEPS):
        step = envs.step(rng.integers(envs.action_space.n, size=envs.num_envs))
        ended += int(step.done.sum())
    seconds = time.perf_counter() - begin

    print(f"{STEPS * envs.num_envs / seconds:,.0f} environment steps/s, {ended} episodes ended")
    print(f"{sum(envs.parts().values()):,} bytes held: {envs.parts()}")
    envs.close()


if __name__ == "__main__":
    main()
