"""One booted cartridge for all tests of the room; every test begins its own match."""

import pytest
from stable_baselines3.common.utils import set_random_seed

from fighting.machine import duel
from fighting.machine.console import boot
from frugal_rl.run.checkpoints import save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.identity import identity


@pytest.fixture(scope="session")
def booted():
    emulator = boot()
    yield emulator
    emulator.close()


class Match:
    """Two fighters under the test's control; `play` gives the buttons of both, frame by frame."""

    def __init__(self, emulator, **settings):
        self.emulator = emulator
        defaults = {"mode": duel.HOST_HOST, "flags": duel.NO_INTRO | duel.SHORT_END, "gap": 28}
        duel.start_match(emulator, duel.MatchSettings(**{**defaults, **settings}))

    def play(self, first=0, second=0, frames=1):
        for _ in range(frames):
            self.emulator.memory[duel.P1_IN] = first
            self.emulator.memory[duel.P2_IN] = second
            self.emulator.tick()

    def script(self, steps, player=0):
        """`steps` of (buttons, frames) for one player; the other one does nothing."""
        for buttons, frames in steps:
            self.play(*((buttons, 0) if player == 0 else (0, buttons)), frames=frames)

    def fighter(self, player, field):
        return self.emulator.memory[duel.FIGHTERS[player] + field]

    def state(self, offset):
        return self.emulator.memory[duel.STATE + offset]

    def place(self, player):
        """Position in sixteenths of a pixel."""
        return self.fighter(player, duel.X) * 16 + self.fighter(player, duel.X_SUB)

    def height(self, player):
        """Height in quarter pixels."""
        return self.fighter(player, duel.Y) * 4 + self.fighter(player, duel.Y_SUB)

    def until(self, condition, first=0, second=0, limit=200):
        """Frames until `condition()` holds; fails when it never does."""
        for frame in range(1, limit + 1):
            self.play(first, second)
            if condition():
                return frame
        raise AssertionError(f"did not happen within {limit} frames")


@pytest.fixture
def match(booted):
    return lambda **settings: Match(booted, **settings)


@pytest.fixture
def untrained():
    """Writes the checkpoint of a policy that has learned nothing: folder, overrides -> its path."""

    def saved(folder, overrides):
        run = compose_run(overrides)
        set_random_seed(0)
        env = run.env.make_vec(2, run.encoding(), run.memory, run.vec, "train")
        policy = run.algo.build(run, env).policy
        env.close()
        content = {
            "identity": identity(run),
            "config": dict(run.resolved),
            "overrides": list(run.overrides),
            "num_steps": 0,
            "learner": {"policy": dict(policy.state_dict())},
        }
        return str(save_checkpoint(folder / "checkpoints" / "last.pt", content))

    return saved
