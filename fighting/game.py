"""The game as an environment knows it: N rows, each one seat of a running cartridge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fighting.actions import Hands
from fighting.choices import Emulation, Episode, Rival
from fighting.machine import duel
from fighting.machine.emulators import Emulators
from fighting.machine.frames import UNPACKED, colour, grey, half_screen, pack_screen
from fighting.machine.native_emulators import NativeEmulators
from fighting.opponents.levels import Levels
from fighting.opponents.rivals import rival_of
from fighting.opponents.scripts import SCRIPTS
from fighting.rules import ENDED, KO, REWARD, SCORE, judge
from fighting.seating import Seating
from fighting.signals import FIRST, SECOND, SIGNALS, left_sides, look_all, stands_left
from fighting.spec import View
from frugal_rl.errors import EncodingError
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.game import Advance, Game, generator_states, restored

if TYPE_CHECKING:
    from fighting.config import DuelConfig
    from frugal_rl.observation.encoder import Raw

CHECK_EVERY = 10_000
"""Steps between two comparisons of packed frames with the screen."""


class DuelGame(Game):
    """Rows of fights: buttons in, memory and pictures out, rewards and ends judged.

    Row r plays seat `seats[r]` of cartridge `machine[r]`. In self-play a cartridge has two rows.
    """

    seen_by_rivals: ClassVar[str] = "signals"

    def __init__(self, config: DuelConfig, rows: int, split: str, packed: str = "") -> None:
        self.config, self.rows, self.packed = config, rows, packed
        self.num_worlds, self.tables = rows, Tables()
        self.action_space = config.action_space()
        self.level_names = [f"cpu_{level}" for level in range(8)]
        seating = Seating(rows, config.pairs(rows))
        count = seating.machines
        cpu = config.opponent in (Rival.cpu, Rival.curriculum)
        self.computer = np.full(count, cpu)  # which cartridges' own player is fought
        native = config.emulator is Emulation.native
        self.emulators: Emulators | NativeEmulators = (
            NativeEmulators(config, count) if native else Emulators(config, count)
        )
        self.machine, self.seats = seating.machine, seating.seats
        self.rows_of, self.single = seating.rows_of, seating.single
        self.rival = None if cpu else rival_of(config, len(self.single), SCRIPTS)
        self.rngs: list[np.random.Generator] = []
        self.levels = Levels(config, split, count)
        self.level = np.zeros(count, np.int64)
        self.hands = Hands(config.profile, config, rows)
        self.clock = np.zeros(rows, np.int64)
        self.totals = np.zeros((rows, 3))
        self.outcome = np.zeros((rows, 6))
        self.weights, self.longest = config.reward.array(), config.longest
        self.left_side = np.zeros(rows, np.uint8)
        self.signals = np.zeros((rows, SIGNALS), np.uint8)
        self.rival_signals = np.zeros((len(self.single), SIGNALS), np.uint8)
        shape = config.camera.shape
        if packed:
            shape = (*shape[:-1], shape[-1] // 4)
        self.frames = np.zeros((rows if self.emulators.renders else 0, *shape), np.uint8)
        self.steps = 0

    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """One source of random numbers per row; a cartridge uses its first row's."""
        self.rngs = list(rngs)

    def begin(self, which: np.ndarray, options: Mapping[str, Any] | None = None) -> None:
        """Starts new episodes; both rows of a cartridge must begin together."""
        options = options or {}
        for m in np.unique(self.machine[which]):
            first = int(self.rows_of[m][0])
            rng = self.rngs[first]
            level = int(options.get("level", self.levels.draw(int(m), rng)))
            gap = int(rng.integers(40, 101)) if self.config.random_gap else 64
            if self.rival is not None and len(self.rows_of[m]) == 1:
                self._seat(int(m), first, rng, options)
            self.level[m] = level
            seed = int(rng.integers(1, 1 << 16))
            gap = int(options.get("gap", gap))
            mode = duel.HOST_CPU if self.computer[m] else duel.HOST_HOST
            match = self.config.match(mode, seed, level, gap, options.get("hp"))
            self.emulators.begin(int(m), match)
            self._look(int(m))
        self.hands.begin(which)
        self.clock[which] = 0
        self.totals[which] = 0

    def _seat(
        self, machine: int, row: int, rng: np.random.Generator, options: Mapping[str, Any]
    ) -> None:
        """Who sits opposite, and on which side the row plays; the computer is always player 2."""
        mixed = self.config.opponent is Rival.mixed
        self.computer[machine] = mixed and rng.random() < self.config.cpu_share
        if self.computer[machine]:
            self.seats[row] = 0
            return
        assert self.rival is not None
        self.rival.begin(row - int(self.single[0]), rng)
        if self.config.random_side:
            self.seats[row] = rng.integers(2)
        self.seats[row] = options.get("side", self.seats[row])

    def advance(self, actions: np.ndarray) -> Advance:
        """One action per row, held for the frame skip."""
        emulators, machine, seats = self.emulators, self.machine, self.seats
        left_sides(emulators.ram, machine, seats, self.left_side)
        pressed = self.hands.buttons(actions, self.left_side, self.rngs)
        first, second = self._both(pressed)
        emulators.step(first, second, self._look)
        by_round = self.config.episode is Episode.round
        judge(emulators.before, emulators.ram, machine, seats, by_round, self.weights, self.outcome)
        self.clock += 1
        self.totals += self.outcome[:, : KO + 1]
        self.steps += 1
        if self.packed and self.steps % CHECK_EVERY == 1:
            self._check_packed()
        terminated = self.outcome[:, ENDED] > 0
        truncated = (self.clock >= self.longest) & ~terminated
        return Advance(self.outcome[:, REWARD].astype(np.float32), terminated, truncated)

    def _both(self, pressed: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Button bytes of players 1 and 2 of every cartridge."""
        if self.rival is None:
            return pressed, None
        both = np.zeros((self.emulators.count, 2), np.uint8)
        both[self.machine, self.seats] = pressed
        if len(self.single):
            machine, seats = self.machine[self.single], 1 - self.seats[self.single]
            look_all(self.emulators.ram, machine, seats, self.rival_signals)
            rngs = [self.rngs[row] for row in self.single]
            chosen = self.rival.act(self.rival_signals, self.clock[self.single], rngs)
            both[machine, seats] = self.hands.combos[1 - self.left_side[self.single], chosen]
        return both[:, 0], both[:, 1]

    def _look(self, machine: int) -> None:
        if self.emulators.renders:
            for row in self.rows_of[machine]:
                self._look_at(row)

    def _look_at(self, row: int) -> None:
        """Takes the row's picture."""
        machine = self.machine[row]
        flip = self.config.mirror and not stands_left(self.emulators.ram[machine], self.seats[row])
        pixels, out = self.emulators.pixels[machine], self.frames[row]
        view = self.config.obs
        if view is View.rgb:
            colour(pixels, flip, out)
        elif view is View.half_size:
            half_screen(pixels, flip, out)
        elif self.packed:
            pack_screen(pixels, flip, out)
        else:
            grey(pixels, flip, out)

    def _check_packed(self) -> None:
        """A packed frame, unpacked, must be the screen: else the game uses other colours."""
        machine = self.emulators.machines[0]
        screen, packed = machine.screen, np.zeros_like(self.frames[0])
        pack_screen(machine.pixels, False, packed)
        wanted = screen[screen.shape[0] - len(packed) :, :, :3]
        unpacked = UNPACKED[packed].reshape(wanted.shape[:2])
        if (wanted != unpacked[..., None]).any():
            raise EncodingError(
                "The screen shows other colours than the four shades that packed frames hold. "
                "Choose env.fields.frame=dense."
            )

    def observe(self, which: np.ndarray | None = None) -> Raw:
        """Raw fields [n, *shape]; where frames are packed, in the form that rows are stored in."""
        rows: Any = slice(None) if which is None else which
        raw: Raw = {}
        if self.emulators.renders:
            raw[f"frame_{self.packed}" if self.packed else "frame"] = self.frames[rows]
        if self.config.obs in (View.ram, View.both):
            look_all(self.emulators.ram, self.machine, self.seats, self.signals)
            raw["signals"] = self.signals[rows]
        return raw

    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Statistics [n] of episodes that ended in the last step; tells the curriculum.

        `level` is one of them where the cartridge's player is fought.
        """
        rows, machine = which, self.machine[which]
        ram = self.emulators.ram[machine].astype(np.int64)
        me = np.where(self.seats[rows] == 0, FIRST, SECOND)
        every = np.arange(len(rows))
        score = np.where(self.outcome[rows, ENDED] > 0, self.outcome[rows, SCORE], 0.5)
        for row, m, value in zip(rows, machine, score, strict=True):
            self.levels.tell(int(self.level[m]), float(value), self.steps)
            opposite = len(self.rows_of[m]) == 1 and not self.computer[m]
            if self.rival is not None and opposite:
                self.rival.tell(int(row - self.single[0]), float(value))
        frames = ram[:, duel.FRAME] + 256 * ram[:, duel.FRAME + 1]
        level = {"level": self.level[machine].astype(np.float64)} if self.rival is None else {}
        return {
            **level,
            "length": self.clock[rows].astype(np.float64),
            "success": (score == 1).astype(np.float64),
            "score": score,
            "dealt": self.totals[rows, 0].copy(),
            "taken": self.totals[rows, 1].copy(),
            "knock_out": self.totals[rows, 2].copy(),
            "landed": ram[every, me + duel.LANDED].astype(np.float64),
            "blocked": ram[every, me + duel.BLOCKED].astype(np.float64),
            "throws": ram[every, me + duel.THROWS].astype(np.float64),
            "seconds": frames / 60.0,
        }

    def parts(self) -> dict[str, int]:
        """Bytes held beside the emulators."""
        memory = self.emulators.ram.nbytes + self.emulators.before.nbytes
        frames, signals = self.frames.nbytes, self.signals.nbytes
        return {"game memory": memory, "frames": frames, "signals": signals}

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        return {
            "machines": self.emulators.save(),
            "rngs": generator_states(self.rngs),
            "levels": self.levels.state(),
            "rival": None if self.rival is None else self.rival.state(),
            "level": self.level.copy(),
            "computer": self.computer.copy(),
            "seats": self.seats.copy(),
            "clock": self.clock.copy(),
            "totals": self.totals.copy(),
            "hands": [self.hands.left.copy(), self.hands.running.copy(), self.hands.last.copy()],
            "frames": self.frames.copy(),
        }

    def vet(self, state: dict[str, Any]) -> None:
        """The machines go on from each one's state without harm."""
        self.emulators.vet(state["machines"])

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.emulators.load(state["machines"])
        self.rngs = restored(state["rngs"])
        self.levels.load(state["levels"])
        if self.rival is not None:
            self.rival.load(state["rival"])
        for name in ("level", "computer", "seats", "clock", "totals", "frames"):
            if name in state:  # older checkpoints know one kind of opponent
                getattr(self, name)[...] = state[name]
        hands = (self.hands.left, self.hands.running, self.hands.last)
        for own, kept in zip(hands, state["hands"], strict=True):
            own[...] = kept

    def close(self) -> None:
        """Ends all cartridges."""
        self.emulators.close()
