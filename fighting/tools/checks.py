"""Training checks that speak of emulators; they join the planner's general ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fighting.cartridge.config import GameBoyConfig
from fighting.cartridge.profile import System
from fighting.config import DuelConfig
from fighting.machine.emulator import FRAMES_PER_SECOND, PYBOY_VERSION
from fighting.tools.tried_out import tried_out
from frugal_rl.invocation import program
from frugal_rl.memory.finding import Finding, Severity

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

LOAD_STATE_SECONDS = 3.7e-3
"""Loading a saved state, which holds the interpreter's lock."""
RELEASES_LOCK = (2, 5)
"""The first PyBoy whose `tick` lets other threads run."""


@dataclass(frozen=True)
class EmulatorFacts:
    """What the checks look at."""

    packed: bool = False
    four_shades: bool = True
    sound: bool = False
    observes_pixels: bool = True
    hides_health: bool = False
    renders: bool = True
    windowed: bool = False
    stack: int = 4
    frame_skip: int = 4
    fastest_startup: int = 4
    longest_startup: int = 13
    loads_states: bool = False
    episode_steps: int = 200
    step_seconds: float = 4e-4
    threaded: bool = True
    pyboy: tuple[int, ...] = (2, 8, 1)


def checks(run: RunConfig) -> list[Finding]:
    """What the planner should know of the emulators of a run."""
    tried = tried_out(run.env) if isinstance(run.env, GameBoyConfig) else []
    return [*findings(facts_of(run.env)), *tried]


def facts_of(env: Any) -> EmulatorFacts:
    """What the checks look at, of Duel or of a cartridge with a profile."""
    duel = isinstance(env, DuelConfig)
    game = env.profile if duel else env.game
    return EmulatorFacts(
        packed=env.fields.get("frame") in ("packed", "delta"),
        four_shades=game.system is System.dmg,
        observes_pixels=env.camera.renders,
        hides_health=duel and env.camera.hides_health,
        renders=env.camera.renders,
        stack=env.stack,
        frame_skip=env.frame_skip,
        fastest_startup=game.fastest_startup,
        longest_startup=game.longest_startup,
        loads_states=not duel,
        pyboy=version_numbers(),
    )


def version_numbers(text: str = PYBOY_VERSION) -> tuple[int, ...]:
    """A version as numbers."""
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def findings(f: EmulatorFacts) -> list[Finding]:
    """F21, F27, F28, F29, F33, F34, F36."""
    return [
        _four_shades(f),
        _sound(f),
        _rendering(f),
        _skip_and_stack(f),
        _state_pool(f),
        _versions(f),
        _health(f),
    ]


def _graded(wrong: bool, severity: Severity = Severity.warning) -> Severity:
    return severity if wrong else Severity.ok


def _four_shades(f: EmulatorFacts) -> Finding:
    wrong = f.packed and not f.four_shades
    return Finding(
        "F21",
        "packed frames",
        _graded(wrong, Severity.error),
        "packed" if f.packed else "not packed",
        "two bits per pixel hold four shades, this game has colours" if wrong else "",
        "env.fields.frame=dense",
    )


def _sound(f: EmulatorFacts) -> Finding:
    return Finding(
        "F27",
        "sound",
        _graded(f.sound),
        "emulated" if f.sound else "off",
        "emulating sound makes a frame 1.6 to 3.4 times slower" if f.sound else "",
        "leave sound off",
    )


def _rendering(f: EmulatorFacts) -> Finding:
    wrong = (f.renders and not f.observes_pixels) or f.windowed
    return Finding(
        "F28",
        "rendering",
        _graded(wrong),
        "pixels" if f.renders else "nothing",
        "pictures are drawn that nobody observes" if wrong else "",
        "env.obs=ram",
    )


def _skip_and_stack(f: EmulatorFacts) -> Finding:
    span = f.stack * f.frame_skip
    coarse = f.fastest_startup > 0 and f.frame_skip > f.fastest_startup
    short = f.observes_pixels and f.longest_startup > 0 and span < f.longest_startup
    words = ""
    if coarse:
        words = f"an attack of {f.fastest_startup} frames can start and hit inside one step"
    elif short:
        words = f"{span} frames are seen, the slowest attack starts up in {f.longest_startup}"
    return Finding(
        "F29",
        "frame skip and stack",
        _graded(bool(words)),
        f"{span / FRAMES_PER_SECOND:.2f} s",
        words,
        "env.frame_skip=4 env.stack=4",
    )


def _state_pool(f: EmulatorFacts) -> Finding:
    share = LOAD_STATE_SECONDS / (f.episode_steps * f.step_seconds) if f.loads_states else 0.0
    return Finding(
        "F33",
        "start states",
        _graded(share > 0.05),
        f"{share:.1%} of the time",
        "loading states takes a noticeable share" if share > 0.05 else "",
        "use a cartridge with a mailbox reset, or longer episodes",
    )


def _versions(f: EmulatorFacts) -> Finding:
    wrong = f.threaded and f.pyboy < RELEASES_LOCK
    return Finding(
        "F34",
        "PyBoy version",
        _graded(wrong, Severity.error),
        ".".join(map(str, f.pyboy)),
        "before 2.5 a tick holds the lock: threads wait for each other" if wrong else "",
        command=program("pip", "install", "pyboy>=2.5"),
    )


def _health(f: EmulatorFacts) -> Finding:
    return Finding(
        "F36",
        "health in view",
        _graded(f.hides_health),
        "hidden" if f.hides_health else "shown",
        "the crop leaves out the health bars and nothing else tells them: values cannot be learned"
        if f.hides_health
        else "",
        "env.crop=false, or env.obs=both",
    )
