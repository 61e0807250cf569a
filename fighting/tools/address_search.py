"""Finding addresses: plays a game with random buttons, reports what behaves like health or score.

`scripts/play.py env=fighting_game_boy env.profile=... env.rom=my.gb probe=true record=found` prints
the candidates as lines for a profile, and writes a whole profile and a picture into `found/`. What
somebody marks (`listening.py`) is searched here too, in the order of its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from matplotlib.figure import Figure

from fighting.cartridge.buttons import WORDS
from fighting.cartridge.memory import Address
from fighting.cartridge.start_states import waited_for
from fighting.machine.emulator import BUTTONS, Emulator
from fighting.tools.candidates import (
    WORK_RAM,
    WORK_RAM_BYTES,
    Candidate,
    clocks,
    fallers,
    fighter_blocks,
    movers,
    risers,
)
from fighting.tools.endings import ending
from fighting.tools.evidence import CONCEDED, HEALTH, RIVAL, SCORE, Evidence, Place
from fighting.tools.marks import Mark, Moment
from fighting.tools.places import World, unpaid

if TYPE_CHECKING:
    from fighting.cartridge.profile import Profile

FRAMES = 3600
CALM_FRAMES = 30
HOLD_FRAMES = 12
ROUND_FRAMES = 900
"""After so many frames play begins anew, lest a game that is over be all that is recorded."""
PRESSES = 1 << BUTTONS.index("a") | 1 << BUTTONS.index("b")
"""Buttons that are let go of halfway, so that the next press is a new one."""
SHOWN = 12
"""Candidates of one kind that a profile and a picture take in."""
LIKELIEST = 4
"""The same where marks say which are the likeliest."""
OBSERVED, OBSERVED_OF_A_WORLD = 24, 96
"""Bytes that move which a profile observes; who explores must see what lies around."""
TIME_LIMIT, EXPLORING_SECONDS = 60, 300
"""Of an episode; where places are paid, random play soon walks in what it knows."""
COLOURS = {Mark.lost: "red", Mark.gained: "green", Mark.nothing: "grey"}
"""Of marks in a picture."""
DEFAULT_COMBOS = (0, 1, 2, 16, 32, 64, 128, 17, 33)


def recorded(
    emulator: Emulator, combos: tuple[int, ...], frames: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Work memory [frames, 8192] uint8 of rounds with random buttons [frames] uint8.

    Each round begins calmly, in the same state.
    """
    rng, first = np.random.default_rng(seed), emulator.save()
    memory = np.zeros((frames, WORK_RAM_BYTES), np.uint8)
    held = np.zeros(frames, np.uint8)
    for frame in range(frames):
        if frame and frame % ROUND_FRAMES == 0:
            emulator.load(first)
        if frame >= CALM_FRAMES and frame % HOLD_FRAMES == 0:
            emulator.hold(int(rng.choice(combos)))
        if frame % HOLD_FRAMES == HOLD_FRAMES // 2:
            emulator.hold(emulator.held & ~PRESSES)
        emulator.tick(1)
        memory[frame], held[frame] = emulator.read(WORK_RAM, WORK_RAM_BYTES), emulator.held
    return memory, held


@dataclass(frozen=True)
class Found:
    """What a recording holds: candidates by kind, and pairs of them that are two fighters'."""

    memory: np.ndarray
    fallers: list[Candidate]
    risers: list[Candidate]
    clocks: list[Candidate]
    pairs: list[tuple[int, int]]
    movers: list[Candidate]
    over: str | None = None
    """When play is over, as an expression, where the recording shows it."""
    rivals: tuple[Candidate, ...] = ()
    """What falls as something is gained, where it is surer than what rises."""
    conceded: tuple[Candidate, ...] = ()
    """What rises as something is lost, where it is surer than what falls."""
    moments: tuple[Moment, ...] = ()
    """What was marked."""
    world: World | None = None
    """Places, where they are what there is to be paid for."""

    @classmethod
    def of(cls, memory: np.ndarray, held: np.ndarray, game: Profile | None = None) -> Found:
        """Candidates in a recording (F, 8192) uint8 of one byte per address and frame.

        `held` (F,) uint8 are the buttons of each frame.
        """
        rounds = range(ROUND_FRAMES, len(memory), ROUND_FRAMES)
        falling = fallers(memory, CALM_FRAMES)
        starts = [c.value for c in falling]
        twins = [c for c in falling if starts.count(c.value) > 1]  # both begin with the same bar
        pairs = sorted({(min(p), max(p)) for p in fighter_blocks(twins, twins)})
        first_round = memory[: _first_rise(memory, falling)]
        rising = risers(memory, CALM_FRAMES, rounds)
        places = None if pairs else unpaid(memory, held, rounds, rising[:SHOWN], falling)
        known = [c.addr for c in (places.axes if places else (*falling, *rising[:SHOWN]))]
        moving = movers(memory, known)
        over = ending(memory, game, [0, *rounds]) if game else None
        timers = clocks(first_round)
        return cls(memory, falling, rising, timers, pairs, moving, over, world=places)

    @classmethod
    def marked(
        cls, memory: np.ndarray, evidence: Evidence, moments: Sequence[Moment], game: Profile
    ) -> Found:
        """Candidates in a recording (F, 8192) uint8 in the order in which marks speak for them."""
        health, score, rival, conceded = (
            evidence.ranked(w, LIKELIEST) for w in (HEALTH, SCORE, RIVAL, CONCEDED)
        )
        falling = [place.candidate("hp", memory) for place in health]
        rising = [place.candidate("score", memory) for place in score]
        hurt = [place.candidate("rival", memory) for place in rival]
        given = [place.candidate("conceded", memory) for place in conceded]
        alike = _steady(rival) and [c.value for c in falling[:1]] == [hurt[0].value]
        pairs = fighter_blocks(falling[:1], hurt[:1]) if alike else []
        surer, points = _surer(rival, score), not pairs and _surer(conceded, health)
        falling = falling if not points else []
        rising = rising if not surer else []
        moving = movers(memory, [c.addr for c in (*falling, *rising)])
        return cls(
            memory,
            falling,
            rising,
            clocks(memory[: _first_rise(memory, falling[:1])]),
            pairs,
            moving,
            ending(memory, game, [0]),
            tuple(hurt) if surer or pairs else (),
            tuple(given) if points else (),
            tuple(moments),
        )

    @property
    def alone(self) -> list[Candidate]:
        """What falls without a partner."""
        paired = {address for pair in self.pairs for address in pair}
        return [c for c in self.fallers if c.addr not in paired]


def _steady(places: Sequence[Place]) -> bool:
    """Whether the first is a bar or a count.

    What comes and goes has half of its changes in one direction, they nearly all.
    """
    return bool(places) and places[0].told > places[0].unmarked


def _surer(places: Sequence[Place], others: Sequence[Place]) -> bool:
    """Whether the first of these explains the marks better than the first of the others."""
    return _steady(places) and (not others or places[0].weight > others[0].weight)


def search(
    emulator: Emulator,
    game: Profile,
    frames: int = 0,
    folder: str = "",
    rom: str = "",
    seed: int = 0,
) -> Iterator[str]:
    """Lines for the profile's `memory:`, and the files written; closes the emulator."""
    try:
        combos = game.combos or DEFAULT_COMBOS
        found = Found.of(*recorded(emulator, combos, frames or FRAMES, seed), game)
    finally:
        emulator.close()
    yield f"# {len(found.memory)} frames of random play on '{game.id}'."
    yield from told(found, "bytes that only fall", "bytes that only rise")
    if folder:
        yield from written(found, game, Path(folder), rom)
    yield "# Check them (status: verified), e.g. by playing on with probe=true and another seed."


def told(found: Found, falling: str, rising: str) -> Iterator[str]:
    """Candidates as lines for a profile's `memory:`; the words say what fallers and risers are."""
    yield f"# Health: {falling}."
    by_address = {c.addr: c for c in (*found.rivals, *found.fallers)}
    for number, pair in enumerate(found.pairs):
        for name, address in zip(("p1_hp", "p2_hp"), pair, strict=True):
            line = _named(name, by_address[address]).yaml()
            yield line if number == 0 else f"# or {line.strip()}"
    yield from (f"# alone {c.yaml().strip()}" for c in found.alone)
    yield f"# Scores: {rising}."
    others = (*found.risers, *found.rivals, *found.conceded)
    yield from (f"# {c.yaml().strip()}" for c in others)
    yield "# Clocks: bytes that fall by one every 50 to 70 frames."
    yield from (c.yaml() for c in found.clocks)
    yield "# Places and the like: bytes that come and go in small steps."
    yield from (f"# {c.yaml().strip()}" for c in found.movers[:SHOWN])
    if found.world:
        yield from found.world.told()
        yield f"# An episode lasts {EXPLORING_SECONDS} s."


def written(found: Found, game: Profile, folder: Path, rom: str) -> Iterator[str]:
    """A profile that trains as it stands, and the candidates over time."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{game.id}_found.yaml"
    text = yaml.safe_dump(drawn_up(found, game, rom), sort_keys=False, width=100)
    path.write_text(f"# Written by the probe; every address is a guess.\n{text}", encoding="utf-8")
    yield f"Profile: {path} (try it with env.profile={path} env.accept_guesses=true)"
    kinds = (found.fallers, found.risers, found.rivals, found.conceded, found.clocks, found.movers)
    shown = [c for kind in kinds for c in kind[:SHOWN]]
    if shown:
        picture = folder / f"{game.id}_found.png"
        _picture(found, shown, picture)
        yield f"Picture: {picture}"


def drawn_up(found: Found, game: Profile, rom: str) -> dict[str, Any]:
    """A profile: a fight where two bars were found, or places, else what rises and falls."""
    memory = _remembered(found)
    combos = game.combos or DEFAULT_COMBOS
    return {
        "schema": 1,
        "id": f"{game.id}_found",
        "title": game.title,
        "system": game.system.value,
        "roms": [{"sha1": rom, "name": game.title}] if rom else [],
        "memory": {
            **{name: _known(address) for name, address in waited_for(game).items()},
            **{name: _entry(c) for name, c in memory.items()},
        },
        **({} if found.pairs else _goal(memory, found)),
        "features": _features(memory, found),
        "start": [_moved(step, game) for step in game.start],
        "actions": {"combos": [_words(byte, bool(found.pairs)) for byte in combos]},
    }


def _remembered(found: Found) -> dict[str, Candidate]:
    """What a profile reads, by name: what is paid or lost, then what moves."""
    memory: dict[str, Candidate] = {}
    if found.world:
        memory |= found.world.bytes
    elif found.pairs:
        by_address = {c.addr: c for c in (*found.rivals, *found.fallers)}
        for name, address in zip(("p1_hp", "p2_hp"), found.pairs[0], strict=True):
            memory[name] = by_address[address]
    else:
        memory |= {f"rival_{n}": c for n, c in enumerate(found.rivals[:SHOWN])}
    if not found.world:
        memory |= {f"conceded_{n}": c for n, c in enumerate(found.conceded[:SHOWN])}
        memory |= {f"lives_{n}": c for n, c in enumerate(found.alone[:SHOWN])}
        memory |= {f"score_{n}": c for n, c in enumerate(found.risers[:SHOWN])}
    memory |= {f"timer_{n}": c for n, c in enumerate(found.clocks[:1])}
    taken = {c.addr for c in memory.values()}
    most = OBSERVED_OF_A_WORLD if found.world else OBSERVED
    moving = [c for c in found.movers if c.addr not in taken][:most]
    return memory | {f"moving_{n}": c for n, c in enumerate(moving)}


def _features(memory: Mapping[str, Candidate], found: Found) -> dict[str, str]:
    """Expressions by name, of about one in size."""
    if found.world:
        around = {name: c for name, c in memory.items() if name not in found.world.bytes}
        return found.world.features(around, found.memory)
    return {name: f"{name} / {max(c.value, 1)}" for name, c in memory.items()}


def _goal(memory: Mapping[str, Candidate], found: Found) -> dict[str, Any]:
    """Each place is good once; else what rises is good, what falls is bad.

    It ends as the first that falls is gone, or play is over.
    """
    if found.world:
        end = {"end": found.over} if found.over else {}
        return {**found.world.goal(), **end, "time_limit": EXPLORING_SECONDS}
    scores = [name for name in memory if name.startswith("score")]
    lives = [name for name in memory if name.startswith("lives")]
    reward = {name: f"rise({name}) / {max(memory[name].value, 1)}" for name in scores[:1]}
    rivals = [name for name in memory if name.startswith("rival")]
    reward |= {name: f"fall({name}) / {memory[name].value}" for name in rivals[:1]}
    reward |= {name: f"-fall({name}) / {memory[name].value}" for name in lives[:1]}
    against = [name for name in memory if name.startswith("conceded")]
    reward |= {name: f"-rise({name}) / {memory[name].value}" for name in against[:1]}
    ends = [f"{lives[0]} == 0"] if lives else []
    ends += [found.over] if found.over else []
    end = {"end": " or ".join(ends)} if ends else {}
    return {"reward": reward or "0", **end, "time_limit": TIME_LIMIT}


def _entry(c: Candidate) -> dict[str, Any]:
    return {
        "addr": c.addr,
        **c.form,
        "max": c.value,
        "kind": c.kind,
        "status": "guess",
        "source": c.reason,
    }


def _known(address: Address) -> dict[str, Any]:
    """An address of the profile that was searched with, without what is the default."""
    plain = asdict(address) | {"kind": address.kind.value, "status": address.status.value}
    default = asdict(Address(None))
    return {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items() if v != default[k]}


def _moved(step: Mapping[str, Any], game: Profile) -> dict[str, Any]:
    """A step of the recipe, for a profile that lies in another folder."""
    state = {"state": str(game.source.folder.resolve() / step["state"])} if "state" in step else {}
    return {**step, **state}


def _named(name: str, c: Candidate) -> Candidate:
    return replace(c, name=name)


def _words(byte: int, sided: bool) -> list[str]:
    """Button words of a byte; of a fighter, toward and away as one who looks right means them."""
    named = {bit: word for word, bit in WORDS.items() if sided or word in BUTTONS}
    return [word for bit, word in sorted(named.items()) if byte & bit]


def _first_rise(memory: np.ndarray, found: list[Candidate]) -> int:
    """The first frame in which one of the candidates rises: a new round; else all frames."""
    values = memory[:, [c.addr - WORK_RAM for c in found]].astype(np.int16)
    rises = np.flatnonzero((np.diff(values, axis=0) > 0).any(axis=1))
    return int(rises[0]) if len(rises) else len(memory)


def _picture(found: Found, shown: list[Candidate], path: Path) -> None:
    """Each candidate's value over time, one row per address; upright lines are marks."""
    marked = [moment.frame for moment in found.moments]
    colours = [COLOURS[moment.mark] for moment in found.moments]
    figure = Figure(figsize=(8, 0.8 * len(shown) + 0.6), layout="constrained")
    for axes, c in zip(np.ravel(figure.subplots(len(shown), squeeze=False)), shown, strict=True):
        axes.step(np.arange(len(found.memory)), c.over_time(found.memory), linewidth=0.8)
        whole = axes.get_xaxis_transform()  # from the row's bottom to its top
        axes.vlines(marked, 0, 1, colours, linewidth=0.6, linestyle=":", transform=whole)
        axes.set_ylabel(f"${c.addr:04X}".replace("$", r"\$"), rotation=0, ha="right", fontsize=7)
        axes.tick_params(labelsize=6)
    figure.savefig(path, dpi=100)
