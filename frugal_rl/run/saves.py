"""The checkpoints of a run that goes on: when one fails, what is safe and how to continue."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from frugal_rl.errors import DiskError
from frugal_rl.invocation import override
from frugal_rl.learn.learner import Learner
from frugal_rl.learn.ranks import Ranks
from frugal_rl.learn.update import ALONE
from frugal_rl.run.checkpoints import save_checkpoint
from frugal_rl.run.config import RunConfig
from frugal_rl.run.keeping import NONE_YET, newest_sound, save_newest
from frugal_rl.run.manifest import BEST, LAST
from frugal_rl.run.replay_aside import Unread, brought_back, forget_unused, set_aside
from frugal_rl.run.resuming import Resumed, own_part, resume, snapshot

CHECKPOINTS = "checkpoints"


@dataclass
class Saves:
    """Saves a learner, and knows which checkpoint a run would continue from."""

    run: RunConfig
    learner: Learner
    ranks: Ranks = ALONE
    best: float = -float("inf")
    """Worth of the best evaluation so far."""
    newest: Path | None = None
    """The newest sound checkpoint; None before there is one."""
    best_kept: bool = False
    """Whether this run has written its best checkpoint."""
    unread: Unread = field(default_factory=Unread)
    saved_at: int = -1
    """Steps of the newest checkpoint that this run has written; another process than the first
    takes it to be written once it has handed over its part."""

    @property
    def folder(self) -> Path:
        """Where the run's checkpoints lie."""
        return Path(self.run.run_dir) / CHECKPOINTS

    @property
    def stale(self) -> bool:
        """Whether something was learned since the last checkpoint."""
        return self.saved_at != self.learner.num_steps

    def resume(self, path: str) -> Resumed:
        """Continue exactly where the newest sound checkpoint of an earlier run ended.

        Raises:
            CheckpointError: none is sound, or it belongs to another run.
        """
        found = newest_sound(path, brought_back)
        resumed = resume(self.run, self.learner, found, path, self.ranks)
        self.best, self.newest = resumed.best, resumed.file
        return resumed

    def save(self) -> Path:
        """Write `last.pt` with everything that an exact resume needs.

        Raises:
            DiskError: it cannot be written; the one before is as it was.
        """
        content = snapshot(self.run, self.learner, self.best)
        others = self.ranks.at_first({"rng": content["rng"], "learner": own_part(content)})[1:]
        if not self.ranks.first:
            self.saved_at = self.learner.num_steps
            return self.folder / LAST
        content |= {"ranks": others} if others else {}
        try:
            content = set_aside(content, self.folder)
            self.newest = save_newest(self.folder, content, self.run.keep_checkpoints)
            self.saved_at = self.learner.num_steps
            forget_unused(self.folder, self.unread)
        except OSError as error:
            raise self._unwritten(error) from error
        return self.newest

    def save_if_best(self, worth: float) -> None:
        """Write `best.pt` if no evaluation was worth more.

        Raises:
            DiskError: it cannot be written; the one before is as it was.
        """
        gone = self.best_kept and not (self.folder / BEST).is_file()
        best = -float("inf") if gone else self.best  # any is better than one that was deleted
        if not worth > best:  # nothing is better than what is no number
            return
        content = snapshot(self.run, self.learner, worth)
        try:
            saved = save_checkpoint(self.folder / BEST, set_aside(content, self.folder))
        except OSError as error:
            raise self._unwritten(error) from error
        self.best = worth  # only now: else no later one would take the place of a lost best
        self.best_kept = True
        self.newest = self.newest or saved

    def _unwritten(self, error: OSError) -> DiskError:
        """A full disk in words; of the replay that lies beside, too."""
        why = error.strerror or str(error).rstrip(".")
        return DiskError(
            f"The checkpoint at {self.learner.num_steps:,} steps cannot be written to "
            f"{self.folder} ({why}). {self.hint()}"
        )

    def hint(self) -> str:
        """How to continue, as the last words of an error; the first rank saves for all of them."""
        newest = self.newest
        if not self.ranks.first and (self.folder / LAST).is_file():
            newest = self.folder / LAST
        if newest is None:
            return NONE_YET
        if not newest.is_file():
            return f"The last checkpoint, {newest}, is not there any more: somebody removed it."
        return f"The last sound checkpoint is safe: continue with {override('resume', newest)}"
