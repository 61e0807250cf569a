"""Any cartridge as a game: N rows, each one seat of a machine, judged by the rules of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fighting.actions import Hands
from fighting.cartridge.emulators import CartridgeEmulators
from fighting.cartridge.rules import compiled
from fighting.cartridge.scene import Scene
from fighting.cartridge.second_seat import MIRRORED, SecondSeat
from fighting.choices import Rival
from fighting.machine.frames import colour, grey, half_screen, pack_screen
from fighting.opponents.rivals import rival_of
from fighting.opponents.scripts import of_any_game
from fighting.seating import Seating
from fighting.spec import View
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.game import Advance, Game, generator_states, restored

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig
    from frugal_rl.observation.encoder import Raw

TAKES = {View.rgb: colour, View.gray: grey, View.both: grey, View.half_size: half_screen}


class CartridgeGame(Game):
    """N rows that play the same cartridge; without `pads:` each is the player of its own machine.

    An episode is over where the profile's `end` says so, to whoever sits at the machine; it is cut
    after `config.longest` steps. A view is what one seat sees: those of the rows come first, then
    those of the rivals opposite rows that are alone at a machine.
    """

    seen_by_rivals: ClassVar[str] = "features"

    def __init__(self, config: GameBoyConfig, count: int, packed: str = "") -> None:
        self.config, self.profile, self.packed = config, config.game, packed
        self.num_worlds, self.tables = count, Tables()
        self.action_space = config.action_space()
        self.rules = compiled(self.profile, config.reward, config.accept_guesses)
        self._seat(config, count)
        meanings = self.rules.meanings
        pads = None if config.opponent is Rival.cpu else self.profile.pads
        self.second = SecondSeat(pads, self.profile.memory, meanings.watched) if pads else None
        self.mirrored = bool(pads and pads.mirror)
        self.emulators = CartridgeEmulators(config, len(self.views_of), meanings.watched)
        views = len(self.machine)
        self.scene = Scene.empty(views, meanings.watched, len(meanings.slots), len(meanings.maps))
        self.hands = Hands(self.profile, config, views)
        self.rngs: list[np.random.Generator] = []
        self.totals = {name: np.zeros(count) for name in self.rules.reward}
        shape = config.camera.shape
        if packed:
            shape = (*shape[:-1], shape[-1] // 4)
        self.frames = np.zeros((count if config.camera.renders else 0, *shape), np.uint8)

    def _seat(self, config: GameBoyConfig, count: int) -> None:
        """The machine and the seat of each view, and who sits opposite rows that are alone."""
        seating = Seating(count, config.pairs(count))
        cpu = config.opponent is Rival.cpu
        self.single = seating.single[:0] if cpu else seating.single
        self.machine = np.append(seating.machine, seating.machine[self.single])
        self.seats = np.append(seating.seats, 1 - seating.seats[self.single])
        self.views_of = [np.flatnonzero(self.machine == m) for m in range(seating.machines)]
        self.computer = np.full(seating.machines, cpu)  # where nobody sits at the second pad
        scripts = of_any_game(config.choices)
        self.rival = None if cpu else rival_of(config, len(self.single), scripts)

    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """One source of random numbers per row; a machine uses its first row's."""
        self.rngs = list(rngs)

    def begin(self, which: np.ndarray) -> None:
        """Load start states and wait a random number of frames; both seats begin together."""
        machines = np.unique(self.machine[which])
        for m in machines.tolist():
            first, last = self.views_of[m][0], self.views_of[m][-1]
            rng = self.rngs[first]
            if last >= self.num_worlds:
                self._oppose(m, int(first), int(last), rng)
            self.emulators.begin(m, rng, not self.computer[m])
        views = np.flatnonzero(np.isin(self.machine, machines))
        self._see(views)
        for m in machines.tolist():
            self._picture(m)
        self.rules.begin(self.scene, views)
        self.hands.begin(views)
        for total in self.totals.values():
            total[which] = 0

    def _oppose(self, machine: int, row: int, view: int, rng: np.random.Generator) -> None:
        """Who sits opposite a row that is alone, and at which pad the row plays."""
        config, seat = self.config, 0
        mixed = config.opponent is Rival.mixed
        self.computer[machine] = mixed and rng.random() < config.cpu_share
        if not self.computer[machine]:
            assert self.rival is not None
            self.rival.begin(view - self.num_worlds, rng)
            seat = int(rng.integers(2)) if config.random_side else 0
        self.seats[row], self.seats[view] = seat, 1 - seat

    def advance(self, actions: np.ndarray) -> Advance:
        """One action per row, held for the frame skip."""
        scene, rules, rows = self.scene, self.rules, self.num_worlds
        first, second = self._pressed(actions)
        scene.pass_on()
        self.emulators.step(first, second, self._picture)
        self._see(slice(None))
        scene.steps += 1
        scene.frames += self.config.frame_skip
        rules.keep(scene)
        reward = np.zeros(rows)
        for name, rule in rules.reward.items():
            paid = rule(scene)[:rows]
            self.totals[name] += paid
            reward += paid
        terminated = np.zeros(rows, bool) if rules.end is None else self._over(rules.end(scene))
        truncated = (scene.steps[:rows] >= self.config.longest) & ~terminated
        return Advance(reward.astype(np.float32), terminated, truncated)

    def _pressed(self, actions: np.ndarray) -> tuple[list[int], list[int] | None]:
        """Button bytes of the joypads, and of the second pads where anybody sits there."""
        rngs = self.rngs
        if self.rival is not None and len(self.single):
            places = slice(self.num_worlds, None)
            alone = [self.rngs[row] for row in self.single]
            clock = self.scene.steps[places]
            chosen = self.rival.act(self.rules.shown(self.scene)[places], clock, alone)
            actions, rngs = np.append(actions, chosen), [*rngs, *alone]
        left_side = self.rules.left_side(self.scene).astype(np.int64)
        pressed = self.hands.buttons(actions, left_side, rngs)
        if self.computer.all():
            return pressed.tolist(), None
        if self.mirrored:
            pressed = np.where(self.seats == 1, MIRRORED[pressed], pressed)
        both = np.zeros((2, len(self.views_of)), np.uint8)
        both[self.seats, self.machine] = pressed
        both[1, self.computer] = 0
        return both[0].tolist(), both[1].tolist()

    def _over(self, ended: np.ndarray) -> np.ndarray:
        """[rows] bool: it is over for both seats once it is for one."""
        machines = np.zeros(len(self.views_of), bool)
        machines[self.machine[ended != 0]] = True
        return machines[self.machine[: self.num_worlds]]

    def _see(self, views: np.ndarray | slice) -> None:
        """What is watched, as each view's seat sees it."""
        machine, emulators = self.machine[views], self.emulators
        memory = emulators.memory[machine]
        if self.second is not None:
            beside = self.seats[views] == 1
            memory[beside] = self.second.seen(memory[beside])
        self.scene.memory[views] = memory
        self.scene.pixels[views] = emulators.points[machine]

    def _picture(self, machine: int) -> None:
        """Takes the pictures of the rows at one machine."""
        if not len(self.frames):
            return
        take = pack_screen if self.packed else TAKES[self.config.obs]
        for view in self.views_of[machine]:
            if view < self.num_worlds:
                flip = self.mirrored and self.seats[view] == 1
                take(self.emulators.machines[machine].pixels, flip, self.frames[view])

    def observe(self, which: np.ndarray | None = None) -> Raw:
        """Raw fields; packed frames in the form that rows are stored in."""
        rows: Any = slice(self.num_worlds) if which is None else which
        raw: Raw = {}
        if self.config.camera.renders:
            raw[f"frame_{self.packed}" if self.packed else "frame"] = self.frames[rows]
        if self.config.shows_memory:
            raw["features"] = self.rules.shown(self.scene)[rows]
        return raw

    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Length, success, score, and what each part of the reward paid; tells the rivals."""
        rules, scene = self.rules, self.scene
        views = len(self.machine)
        success = np.zeros(views) if rules.success is None else rules.success(scene) != 0
        success = success.astype(np.float64)
        if self.rival is not None:
            for place, row in enumerate(self.single):
                if row in which and not self.computer[self.machine[row]]:
                    points = 0.5 + (success[row] - success[self.num_worlds + place]) / 2
                    self.rival.tell(place, float(points))
        score = {} if rules.score is None else {"score": rules.score(scene)[which]}
        paid = {f"paid_{name}": total[which].copy() for name, total in self.totals.items()}
        length = scene.steps[which].astype(np.float64)
        return {"length": length, "success": success[which], **score, **paid}

    def parts(self) -> dict[str, int]:
        """Bytes held beside the emulators."""
        pictures = self.frames.nbytes + self.emulators.nbytes
        return {"game memory": self.scene.nbytes, "frames": pictures}

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        before = self.scene.before
        assert before is not None
        return {
            "machines": self.emulators.save(),
            "held": [machine.held for machine in self.emulators.machines],
            "rngs": generator_states(self.rngs),
            "scene": [array.copy() for array in (*self.scene.arrays, *before.arrays)],
            "maps": self.scene.maps.copy(),
            "totals": {name: total.copy() for name, total in self.totals.items()},
            "hands": [self.hands.left.copy(), self.hands.running.copy(), self.hands.last.copy()],
            "frames": self.frames.copy(),
            "seats": self.seats.copy(),
            "computer": self.computer.copy(),
            "rival": None if self.rival is None else self.rival.state(),
        }

    def vet(self, state: dict[str, Any]) -> None:
        """The emulator goes on from each machine's state, in a child."""
        self.emulators.vet(state["machines"])

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.emulators.load(state["machines"], state["held"])
        self.rngs = restored(state["rngs"])
        assert self.scene.before is not None
        arrays = (*self.scene.arrays, *self.scene.before.arrays)
        for own, kept in zip(arrays, state["scene"], strict=True):
            own[...] = kept
        # Older checkpoints have no maps, and one player.
        self.scene.maps[...] = state.get("maps", self.scene.maps)
        self.seats[...] = state.get("seats", self.seats)
        self.computer[...] = state.get("computer", self.computer)
        if self.rival is not None:
            self.rival.load(state["rival"])
        for name, total in self.totals.items():
            total[...] = state["totals"][name]
        hands = (self.hands.left, self.hands.running, self.hands.last)
        for own, kept in zip(hands, state["hands"], strict=True):
            own[...] = kept
        self.frames[...] = state["frames"]

    def close(self) -> None:
        """Ends threads and emulation."""
        self.emulators.close()
