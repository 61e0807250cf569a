"""The processes of a run as Ray actors: Ray finds the machines, each actor holds one process.

A process is started as torchrun's agent would start it, with the same words and variables, so that
nothing in it knows of Ray. `ray` is an extra.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError
from frugal_rl.report.files import read_json
from frugal_rl.untrusted.printing import printable

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import RunConfig

LOOK_SECONDS = 0.3
END_SECONDS = 5.0


@dataclass(frozen=True)
class Ended:
    """How a process ended: its number, exit status, and what it said last."""

    rank: int
    who: str
    status: int
    message: Mapping[str, Any]


class RankActor:
    """Holds one process that trains, on a machine that Ray chose."""

    child: subprocess.Popen[bytes] | None = None

    def place(self) -> tuple[str, int]:
        """Under which the others reach this machine, and a free port of it."""
        with socket.socket() as free:
            free.bind(("", 0))
            return ray.util.get_node_ip_address(), int(free.getsockname()[1])

    def train(self, words: Sequence[str], environ: Mapping[str, str], cwd: str, said: str) -> Ended:
        """Start the process and wait for its end; what it says goes into the file `said`."""
        rank, errors = int(environ["RANK"]), Path(f"{said}.json")
        errors.unlink(missing_ok=True)
        given = [f"{name}={value}" for name, value in environ.items()]
        with Path(said).open("wb") as file:
            command = ["env", *given, f"TORCHELASTIC_ERROR_FILE={errors}", sys.executable, *words]
            self.child = subprocess.Popen(command, cwd=cwd, stdout=file, stderr=subprocess.STDOUT)
            status = self.child.wait()
        message = read_json(errors).get("message", {}) if errors.is_file() else {}
        return Ended(rank, f"pid {self.child.pid} on {socket.gethostname()}", status, message)

    def tell(self, number: int) -> None:
        """Send the process a signal."""
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)


def needs_of(run: RunConfig, plan: Plan, margin: float) -> dict[str, float]:
    """What one machine's processes need of it, as Ray counts."""
    count = run.launch.processes
    needs = {"CPU": float(run.hardware.cores or count)}
    needs["memory"] = float(int(margin * plan.ram_bytes * count))
    return needs | ({"GPU": float(count)} if plan.vram_bytes else {})


def join_cluster(needs: Mapping[str, float], nodes: int) -> None:
    """Join the cluster that runs, and look whether it has such machines.

    Raises:
        ConfigError: there is none, or its machines are too few or too small.
    """
    try:
        ray.init(
            address="auto", log_to_driver=False, logging_level="ERROR", configure_logging=False
        )
    except ConnectionError:
        raise ConfigError(
            "launch=ray joins a Ray cluster, and none runs here. Start one with "
            "`ray start --head`, or use launch=torchrun."
        ) from None
    except (RuntimeError, RayError) as error:  # other versions, a lost head
        said = printable((str(error).splitlines() or [type(error).__name__])[0], 300)
        raise ConfigError(
            f"launch=ray cannot join the Ray cluster here: {said} Every machine of it needs the "
            "same Python and Ray: start it with those of this command, or use launch=torchrun."
        ) from error
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    able = [m for m in machines if all(m.get(k, 0) >= v for k, v in needs.items())]
    if len(able) < nodes:
        asked = ", ".join(f"{k} {v:,.0f}" for k, v in needs.items())
        raise ConfigError(
            f"launch=ray needs {nodes} machines with {asked} each; this Ray cluster has "
            f"{len(able)} of {len(machines)}. Use fewer launch.processes, or less per process."
        )


@contextmanager
def actors(run: RunConfig, needs: Mapping[str, float], asked: Sequence[int]) -> Iterator[list[Any]]:
    """One actor per process, once there is room for all; none where somebody asked to stop."""
    launch = run.launch
    group = placement_group([dict(needs)] * launch.nodes, strategy="STRICT_SPREAD")
    share = {name: value / launch.processes for name, value in needs.items()}
    held: list[Any] = []
    try:
        for rank in range(launch.size if has_room(group, asked) else 0):
            at = PlacementGroupSchedulingStrategy(group, rank // launch.processes)
            options = ray.remote(RankActor).options(
                num_cpus=share["CPU"],
                num_gpus=share.get("GPU", 0),
                memory=share["memory"],
                scheduling_strategy=at,
                max_concurrency=4,
            )
            held.append(options.remote())
        yield held
    finally:
        _end(held)
        remove_placement_group(group)


def has_room(group: Any, asked: Sequence[int]) -> bool:
    """Wait until the cluster has room; whether it was found before somebody asked to stop."""
    ready = group.ready()
    with doing("waiting for room in the Ray cluster"):
        while not asked:
            if ray.wait([ready], timeout=LOOK_SECONDS)[0]:
                return True
    return False


def _end(held: Sequence[Any]) -> None:
    """End what is left of the processes, then their actors."""
    _tell(held, signal.SIGKILL)
    for actor in held:
        ray.kill(actor)


def _tell(held: Sequence[Any], number: int) -> None:
    """Send all processes a signal; one whose machine is lost keeps nobody waiting."""
    told = [actor.tell.remote(number) for actor in held]
    if told:
        ray.wait(told, num_returns=len(told), timeout=END_SECONDS)


def environ_of(run: RunConfig, rank: int, attempt: int, meet: tuple[str, int]) -> dict[str, str]:
    """The variables that torchrun gives each process, and where Python finds our modules."""
    processes = run.launch.processes
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(run.launch.size),
        "LOCAL_RANK": "0",  # Ray shows each actor its own devices only
        "LOCAL_WORLD_SIZE": str(processes),
        "GROUP_RANK": str(rank // processes),
        "MASTER_ADDR": meet[0],
        "MASTER_PORT": str(meet[1]),
        "TORCHELASTIC_RUN_ID": f"frugal-rl-{attempt}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


def train_on_ray(
    run: RunConfig,
    words: Sequence[str],
    needs: Mapping[str, float],
    attempt: int,
    asked: Sequence[int],
) -> Ended | None:
    """Train in one actor per process; the first of them that failed, None where all did well.

    Args:
        run: the run.
        words: what each process is started with.
        needs: of one machine.
        attempt: number of this start.
        asked: requests to stop, which every process is told of once.
    """
    folder = Path(run.run_dir).absolute() / "ranks" / f"ray_{attempt}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with actors(run, needs, asked) as held:
        if not held:
            return None
        try:
            meet = ray.get(held[0].place.remote())
        except RayError as error:
            return _lost(0, error)
        jobs = {}
        for rank, actor in enumerate(held):
            environ, said = environ_of(run, rank, attempt, meet), str(folder / f"{rank}.log")
            jobs[actor.train.remote(words, environ, str(Path.cwd()), said)] = rank
        return _watched(jobs, held, asked, folder / "0.log")


def _watched(
    jobs: dict[Any, int], held: Sequence[Any], asked: Sequence[int], said: Path
) -> Ended | None:
    """Pass on what the first process says until all have ended, or one has failed."""
    told, shown = False, 0
    waiting = list(jobs)
    while waiting:
        done, waiting = ray.wait(waiting, timeout=LOOK_SECONDS)
        shown = _show(said, shown)
        if asked and not told:
            told = True
            _tell(held, signal.SIGUSR1)
        for job in done:
            try:
                ended: Ended = ray.get(job)
            except RayError as error:
                return _lost(jobs[job], error)
            if ended.status:
                time.sleep(LOOK_SECONDS)
                _show(said, shown)
                return ended
    return None


def _lost(rank: int, error: RayError) -> Ended:
    """The end of a process whose actor is gone, with its machine perhaps."""
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return Ended(rank, f"Ray actor: {said[:120]}", 1, {})


def _show(said: Path, shown: int) -> int:
    """Print what was added to a file; where it ends now."""
    if not said.is_file():
        return shown
    with said.open("rb") as file:
        file.seek(shown)
        new = file.read()
    print(new.decode(errors="replace"), end="", flush=True)
    return shown + len(new)
