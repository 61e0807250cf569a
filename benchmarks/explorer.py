"""Strangers' scripts before and after a few lines: memory, and whether all weights are equal.

`python benchmarks/explorer.py [explorer | atari]` prints a table of explorer.md; with `diff`
behind, the lines.
"""

from __future__ import annotations

import difflib
import hashlib
import subprocess
import sys
from pathlib import Path

SCRIPTS = {n: Path(__file__).with_name(f"stock_{n}.py") for n in ("explorer", "atari")}
KEYWORD = {'    device="cpu",\n': '    device="cpu",\n    **compact(env),\n'}
CHANGES = {
    "explorer": KEYWORD
    | {
        "from stable_baselines3.common.env_util import make_vec_env\n": (
            "from stable_baselines3.common.env_util import make_vec_env\n"
            "\n"
            "from frugal_rl.sb3 import MemoryCallback, compact, plan_stock\n"
        ),
        "env = make_vec_env(Explorer, n_envs=ENVS, seed=0)\n": (
            "env = make_vec_env(Explorer, n_envs=ENVS, seed=0)\n"
            'plan = plan_stock(PPO, "MultiInputPolicy", env, n_steps=STEPS, batch_size=BATCH)\n'
        ),
        "model.learn(STEPS * ENVS * UPDATES)\n": (
            "model.learn(STEPS * ENVS * UPDATES, callback=MemoryCallback(plan))\n"
        ),
    },
    "atari": KEYWORD
    | {
        "import VecFrameStack\n": ("import VecFrameStack\n\nfrom frugal_rl.sb3 import compact\n"),
    },
}


def changed(name: str) -> str:
    """A script with our lines in it."""
    text = SCRIPTS[name].read_text()
    for old, new in CHANGES[name].items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def difference(name: str) -> list[str]:
    """Both scripts as a unified difference."""
    before, after = SCRIPTS[name].read_text().splitlines(), changed(name).splitlines()
    return list(difflib.unified_diff(before, after, "before", "after", n=1, lineterm=""))


def run(name: str, which: str) -> None:
    """One of them in this process."""
    given: dict[str, object] = {"__name__": "__main__"}
    text = SCRIPTS[name].read_text() if which == "before" else changed(name)
    exec(compile(text, which, "exec"), given)
    model = given["model"]
    from gymnasium_stores import observation_bytes

    from frugal_rl.memory.usage import peak_resident_bytes

    buffer = model.rollout_buffer  # type: ignore[attr-defined]
    weights = b"".join(p.detach().numpy().tobytes() for p in model.policy.parameters())  # type: ignore[attr-defined]
    each = observation_bytes(buffer) / buffer.buffer_size / buffer.n_envs
    known = hashlib.sha256(weights).hexdigest()[:16]
    print(f"| {which} | {each:,.0f} | {peak_resident_bytes() / 2**20:,.0f} | {known} |")


def main() -> None:
    name, *asked = sys.argv[1:] or ["explorer"]
    if asked == ["diff"]:
        print("\n".join(difference(name)))
        return
    if asked:
        run(name, asked[0])
        return
    print(
        "| script | bytes of observations per transition | peak MiB | weights |\n|---|---|---|---|"
    )
    for which in ("before", "after"):
        command = [sys.executable, __file__, name, which]
        done = subprocess.run(command, capture_output=True, text=True)
        rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        print(rows[0] if rows else done.stderr[-200:], flush=True)


if __name__ == "__main__":
    main()
