"""A stranger's script before and after four lines: memory, and whether all weights are equal.

`python benchmarks/explorer.py` prints the table of explorer.md; with `diff`, the lines.
"""

from __future__ import annotations

import difflib
import hashlib
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("stock_explorer.py")
CHANGES = {
    "from stable_baselines3.common.env_util import make_vec_env\n": (
        "from stable_baselines3.common.env_util import make_vec_env\n"
        "\n"
        "from frugal_rl.sb3 import MemoryCallback, compact, plan_stock\n"
    ),
    "env = make_vec_env(Explorer, n_envs=ENVS, seed=0)\n": (
        "env = make_vec_env(Explorer, n_envs=ENVS, seed=0)\n"
        'plan = plan_stock(PPO, "MultiInputPolicy", env, n_steps=STEPS, batch_size=BATCH)\n'
    ),
    '    device="cpu",\n': '    device="cpu",\n    **compact(env),\n',
    "model.learn(STEPS * ENVS * UPDATES)\n": (
        "model.learn(STEPS * ENVS * UPDATES, callback=MemoryCallback(plan))\n"
    ),
}


def changed() -> str:
    """The script with our lines in it."""
    text = SCRIPT.read_text()
    for old, new in CHANGES.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def difference() -> list[str]:
    """Both scripts as a unified difference."""
    before, after = SCRIPT.read_text().splitlines(), changed().splitlines()
    return list(difflib.unified_diff(before, after, "before", "after", n=1, lineterm=""))


def run(which: str) -> None:
    """One of them in this process."""
    given: dict[str, object] = {"__name__": "__main__"}
    exec(compile(SCRIPT.read_text() if which == "before" else changed(), which, "exec"), given)
    model = given["model"]
    from gymnasium_stores import observation_bytes

    from frugal_rl.memory.usage import peak_resident_bytes

    buffer = model.rollout_buffer  # type: ignore[attr-defined]
    weights = b"".join(p.detach().numpy().tobytes() for p in model.policy.parameters())  # type: ignore[attr-defined]
    each = observation_bytes(buffer) / buffer.buffer_size / buffer.n_envs
    known = hashlib.sha256(weights).hexdigest()[:16]
    print(f"| {which} | {each:,.0f} | {peak_resident_bytes() / 2**20:,.0f} | {known} |")


def main() -> None:
    if sys.argv[1:] == ["diff"]:
        print("\n".join(difference()))
        return
    if sys.argv[1:]:
        run(sys.argv[1])
        return
    print(
        "| script | bytes of observations per transition | peak MiB | weights |\n|---|---|---|---|"
    )
    for which in ("before", "after"):
        done = subprocess.run([sys.executable, __file__, which], capture_output=True, text=True)
        print((done.stdout or done.stderr).strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
