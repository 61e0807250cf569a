"""A plan counts what the emulators' states take while a checkpoint is written."""

import tracemalloc

import pytest

from fighting.saved_states import states_part
from frugal_rl.run.checkpoint_file import pieces_of
from frugal_rl.run.compose import compose_run


@pytest.mark.parametrize("emulator", ["pyboy", "native"])
def test_states_take_what_is_planned(emulator):
    run = compose_run(["env=fighting", f"env.emulator={emulator}"])
    vec_env = run.env.make_vec(6, run.encoding(), run.memory, run.vec, "train")
    vec_env.reset(seed=0)
    emulators = vec_env.game.emulators
    tracemalloc.start()
    for _ in pieces_of({"machines": emulators.save()}):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    vec_env.close()
    (planned,) = [
        p
        for p in run.env.parts(6, run.encoding(), run.memory, run.vec)
        if p.name == "checkpoint: emulators"
    ]

    assert planned.ram_bytes == pytest.approx(peak, rel=0.3)
    assert planned.ram_bytes == states_part(6, len(emulators.save()[0])).ram_bytes
