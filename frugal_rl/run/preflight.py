"""What would fail later anyway is refused first: before torch is imported or anything is written.

Each check looks at the composed values of a command and raises one line that names the remedy.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import CheckpointError, ConfigError, DiskError
from frugal_rl.invocation import installing
from frugal_rl.memory.machine import has_accelerator
from frugal_rl.memory.part import human
from frugal_rl.run.identity import check_same_run
from frugal_rl.run.lock import LAUNCHER_LOCK, LOCK, refuse_written
from frugal_rl.run.manifest import (
    LAST,
    checkpoints_in,
    find_checkpoint,
    read_manifest,
    refuse_begun,
)
from frugal_rl.run.nearness import nearest
from frugal_rl.run.tools import NO_FILM, must_offer
from frugal_rl.untrusted.printing import shown

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

LAUNCHERS = ("basic", "joblib", "submitit_local", "submitit_slurm")
"""Of jobs: Hydra's own, and those of the packages that are named here or in an extra."""
FILM_ENDINGS = (".mp4", ".gif")
LEAST_FREE_BYTES = 16 << 20
"""A run writes more than this even where it saves nothing but its end."""
OUTPUTS = ("out", "folder", "record", "video", "picture", "to", "dataset", "write", "solved")
"""Options that name a file or folder which the command writes."""
FOLDERS = ("out", "folder", "solved", "hydra.run.dir", "hydra.sweep.dir")
"""Those of them that name a folder, and Hydra's own."""
EXTRAS = {
    "sb3_contrib": "contrib",
    "pygame": "play",
    "tensorboard": "profile",
    "submitit": "slurm",
    "pyvista": "viz",
    "ray": "ray",
    "optuna": "hpo",
    "minari": "offline",
}
"""Extras of the package by the module that they bring."""
OF_CONTRIB = ("qr_dqn", "tqc", "crossq")
"""Algorithms that sb3-contrib brings."""


@dataclass(frozen=True)
class Command:
    """A command as it was composed.

    environ is what the process was given; folder is where the results will lie; mode is what the
    files say of `hydra.mode`, None where they say nothing.
    """

    name: str
    values: Mapping[str, Any]
    choices: Mapping[str, Any]
    folder: Path
    environ: Mapping[str, str]
    mode: Any = None
    hydra_writes: bool = True
    """Whether Hydra keeps files of its own in the folder."""

    def word(self, name: str) -> str:
        """A value as text; empty where it is not set."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Job:
    """One job of a command: the only one, or one of a sweep's."""

    number: int
    side_by_side: bool
    command: Command
    words: tuple[str, ...] = ()
    """The overrides of this job alone."""
    config_dir: str = ""
    """The folder of `--config-dir`."""


@dataclass(frozen=True)
class VerifyOptions:
    """The options of `scripts/verify.py`."""

    checkpoint: str = ""
    """A run folder, its `checkpoints/`, or a file."""


def preflight(command: Command) -> None:
    """Refuse what cannot work.

    Raises:
        FrugalError: the first thing that is missing or impossible, with its remedy.
    """
    for check in CHECKS:
        check(command)


def check_launcher(name: str) -> None:
    """Refuse a launcher of jobs without its package; the one for Slurm needs Slurm.

    Raises:
        ConfigError: naming what is missing.
    """
    if name not in LAUNCHERS and not _brought(name):
        raise ConfigError(f"hydra/launcher={name} is no choice; {nearest(name, LAUNCHERS)}")
    if name.startswith("submitit"):
        _needs("submitit", f"hydra/launcher={name}")
    if name == "submitit_slurm" and shutil.which("sbatch") is None:
        raise ConfigError(
            "hydra/launcher=submitit_slurm hands jobs to Slurm, and there is no sbatch on this "
            "machine. Start it where Slurm is, or use hydra/launcher=joblib here."
        )


def _brought(name: str) -> bool:
    """Whether a package that adds launchers to Hydra is called like this one."""
    found = find_spec("hydra_plugins")
    places = list(found.submodule_search_locations or ()) if found else []
    return any(name.partition("_")[0] in module.name for module in iter_modules(places))


def extras(command: Command) -> None:
    """What an option needs must be installed."""
    tracking = command.values.get("tracking") or {}
    if tracking.get("tensorboard"):
        _needs("tensorboard", "tracking.tensorboard=true")
    dataset = command.word("dataset")
    if command.name == "record" and dataset and command.word("checkpoint"):
        if dataset.endswith(".npz"):
            folder = dataset.removesuffix(".npz")
            raise ConfigError(
                f"checkpoint= writes a Minari data set, which is a folder: dataset={folder}"
            )
        _needs("minari", f"dataset={dataset} of checkpoint=")
    if command.name == "search":
        _needs("optuna", "The search")
    launch = command.values.get("launch") or {}
    slurm = launch.get("scheduler") == "slurm" and not launch.get("meet")
    if command.name == "train" and slurm and shutil.which("sbatch") is None:
        raise ConfigError(
            "launch=slurm hands the run to Slurm, and there is no sbatch on this machine. Start it "
            "where Slurm is, or use launch=torchrun here."
        )
    if launch.get("scheduler") == "ray" or command.choices.get("launch") == "ray":
        _needs("ray", "launch=ray")
    algo = str(command.choices.get("algo") or "")
    if algo in OF_CONTRIB:
        _needs("sb3_contrib", f"algo={algo}")
    if command.word("solid").endswith(".png"):
        _needs("pyvista", f"solid={command.word('solid')}")


def _needs(module: str, wanted: str) -> None:
    if find_spec(module) is None:
        extra = EXTRAS[module]
        raise ConfigError(
            f"{wanted} needs the package {module.replace('_', '-')}: {installing(extra)}"
        )


def device(command: Command) -> None:
    """A device that is asked for must be there."""
    name = str((command.values.get("hardware") or {}).get("device", "auto"))
    pretended = (command.values.get("hardware") or {}).get("vram_gib") is not None
    if command.name == "train" and name.startswith("cuda") and not pretended:
        if not has_accelerator("auto"):
            raise ConfigError(
                f"hardware.device={name}, but there is no CUDA device here; use "
                "hardware.device=cpu or hardware.device=auto."
            )


def trials(command: Command) -> None:
    """A film has an ending that says how it is written; an evaluation plays episodes."""
    film = command.word("video")
    if film and Path(film).suffix not in FILM_ENDINGS:
        endings = " or ".join(FILM_ENDINGS)
        raise ConfigError(f"video={film} is no film by its name; let it end in {endings}.")
    episodes = (command.values.get("evaluation") or {}).get("episodes")
    if command.name == "evaluate" and isinstance(episodes, int) and episodes < 1:
        raise ConfigError(f"evaluation.episodes is {episodes}; use at least 1.")


def window(command: Command) -> None:
    """A window needs a display, and a package that opens it."""
    probe = command.values.get("probe", False)
    unseen = command.word("video") or command.word("report") or probe not in (False, "off")
    if command.name != "play" or (unseen and probe != "person"):
        return
    if not has_display(command.environ):
        instead = f"Film a policy instead with checkpoint={command.word('checkpoint') or 'RUN'}"
        instead += " video=film.mp4"
        if probe == "person":
            instead = "Listen to a recording with probe=replay replay=FILE.replay marks=FILE.csv"
        raise ConfigError(
            "play opens a window, and there is no display (DISPLAY leads nowhere). "
            f"{instead}, or come by `ssh -X`."
        )
    _needs("pygame", "play")


def has_display(environ: Mapping[str, str], sockets: Path = Path("/tmp/.X11-unix")) -> bool:
    """Whether a window can be opened, as far as that is known without trying."""
    if not sys.platform.startswith("linux") or environ.get("SDL_VIDEODRIVER"):
        return True
    if environ.get("WAYLAND_DISPLAY"):
        return True
    display = environ.get("DISPLAY", "")
    if not display.startswith(":"):
        return bool(display)  # of another machine: only a try can tell
    return (sockets / f"X{display[1:].partition('.')[0]}").exists()


def checkpoints(command: Command) -> None:
    """A run to continue or to look at must be there, and be one."""
    if command.values.get("resume") == "":
        raise ConfigError("resume= is empty; name a run folder, or leave it out.")
    for name in ("resume", "checkpoint"):
        path = command.word(name)
        if path and not (path == "none" and command.values.get("tournament")):
            file = find_checkpoint(path)
            if Path(path).is_file() and Path(path).name != LAST:
                read_manifest(file)  # no older one stands in for a file named by itself
            else:
                _one_begins_well(checkpoints_in(file.parent) or [file])
    if command.name in ("verify", "evaluate") and command.values.get("checkpoint") == "":
        raise ConfigError("checkpoint= is empty; name a run folder, or none.")


def _one_begins_well(files: Sequence[Path]) -> None:
    """Refuse a folder of damaged checkpoints alone; an older sound one stands in for the newest."""
    for number, file in enumerate(files, 1):
        try:
            read_manifest(file)
        except CheckpointError:
            if number == len(files):
                raise
        else:
            return


def lock_of(command: Command) -> str | None:
    """The lock that a command holds while Hydra and its run write; None where others hold it.

    Machines that train together all write the same into one folder; Slurm's job has its own.
    """
    launch = command.values.get("launch") or {}
    scheduler = launch.get("scheduler")
    if command.name != "train" or not command.hydra_writes or scheduler == "slurm":
        return None
    if launch.get("nodes") not in (None, 1):
        return None
    return LOCK if launch.get("processes") in (None, 1) and not scheduler else LAUNCHER_LOCK


def written(command: Command) -> None:
    """Nothing is written into the folder of a run that goes on, Hydra's own files neither."""
    if lock_of(command) or (command.name == "evaluate" and command.hydra_writes):
        refuse_written(command.folder)


def begun(command: Command) -> None:
    """A run begins in a folder without checkpoints of another, before Hydra writes there."""
    restarts = (command.values.get("launch") or {}).get("restarts")
    if command.name == "train" and not restarts:
        refuse_begun(command.folder, command.word("resume"))


def places(command: Command) -> None:
    """What is written must have a place that can be written to, with some room."""
    writable(command.folder, "hydra.run.dir")
    _no_links(command.folder)
    for name in OUTPUTS:
        if command.word(name):
            writable(Path(command.word(name)), name)


def _no_links(folder: Path) -> None:
    """Hydra writes into a folder before its run does, and would follow a stranger's links."""
    for path in (folder / ".hydra", *folder.glob(".hydra/*"), *folder.glob("*.log")):
        if path.is_symlink():
            raise DiskError(
                f"{shown(path)} is a link, and nothing is written through links. Remove it, or "
                "choose another hydra.run.dir="
            )


def writable(path: Path, key: str) -> None:
    """Refuse a file or folder that could not be written.

    Raises:
        DiskError: why, and the option that names another one.
    """
    place = path.absolute()
    try:
        place.exists()
    except OSError as error:  # a name that no file system takes
        raise DiskError(
            f"{shown(path)} cannot be written: {error.strerror}. Choose another {key}="
        ) from error
    while not (place.exists() or place.is_symlink()) and place != place.parent:
        place = place.parent
    if key in FOLDERS or place != path.absolute():
        if not place.is_dir():
            raise DiskError(f"{shown(path)}: {shown(place)} is no folder; choose another {key}=")
    if not os.access(place, os.W_OK) or not _takes_entries(place):
        raise DiskError(
            f"{shown(path)} cannot be written: no permission in {shown(place)}. Choose another "
            f"{key}="
        )
    free = shutil.disk_usage(place).free
    if free < LEAST_FREE_BYTES:
        raise DiskError(
            f"{shown(path)} has {human(free)} of free disk, which is not enough for a run. Free "
            f"some, or choose another {key}="
        )


def _takes_entries(place: Path) -> bool:
    """The system's own file trees let nobody write, whatever their permissions say."""
    return not any(place.is_relative_to(tree) for tree in ("/proc", "/sys"))


CHECKS: tuple[Callable[[Command], None], ...] = (
    extras,
    device,
    trials,
    window,
    checkpoints,
    written,
    begun,
    places,
)


def check_chosen(run: RunConfig) -> None:
    """Refuse missing files of an environment, what do not belong together, what cannot be read.

    Raises:
        FrugalError: what is missing, and what to choose.
    """
    for_env, for_agent = (getattr(x, "check", None) for x in (run.env, run.agent))
    if for_env is not None:
        for_env()
    if run.evaluation.film:
        must_offer(run.env, "film", NO_FILM)
    for choice in (run.agent, run.algo):
        getattr(choice, "goes_with", lambda run: None)(run)
    if for_agent is not None:
        for_agent(run.encoding(), run.env.action_space())


def check_resumed(run: RunConfig) -> None:
    """Refuse to continue another run, by what its newest checkpoint says of itself.

    Raises:
        CheckpointError: naming the first value that differs.
    """
    if run.resume is None:
        return
    try:
        values = read_manifest(find_checkpoint(run.resume)).values
    except CheckpointError:
        return  # damaged: an older one of the same run may stand in for it
    if isinstance(values, dict) and isinstance(values.get("identity"), dict):
        check_same_run(run, values["identity"], run.resume)
