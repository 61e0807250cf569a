"""One run over several processes: this one starts those that train, and says what became of them.

torchrun's agent starts and restarts the processes; here are its settings, the words when one is
lost, and the signals that ask all of them to stop.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any

import psutil
import torch
from torch.distributed import DistNetworkError
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous import RendezvousConnectionError, RendezvousError
from torch.distributed.elastic.rendezvous.utils import _matches_machine_hostname
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError, RankError
from frugal_rl.invocation import override, starting, value
from frugal_rl.late import Late
from frugal_rl.learn.on_policy import choose_device
from frugal_rl.learn.ranks import started_by_torchrun
from frugal_rl.learn.silence import no_endless_silence
from frugal_rl.memory.auto import try_out
from frugal_rl.memory.refusal import plan_memory
from frugal_rl.report.terminal import say
from frugal_rl.run.admission import MARGIN, admitted
from frugal_rl.run.compose import folder
from frugal_rl.run.keeping import NONE_YET, own_checkpoints
from frugal_rl.run.lock import LAUNCHER_LOCK, locked
from frugal_rl.run.probe import probe_update
from frugal_rl.run.shares import share_of
from frugal_rl.run.signals import passing_on
from frugal_rl.threads import cores_shared

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import Launch, RunConfig

ray_ranks = Late("frugal_rl.run.ray_ranks")
"""Ray is an extra."""
HERE = "localhost:0"
"""Where the processes of one machine meet: any free port."""


def launches(run: RunConfig) -> bool:
    """Whether this process is to start those that train, instead of training itself."""
    alone = run.launch.size == 1 and not run.launch.scheduler
    return not alone and not started_by_torchrun()


def start_ranks(run: RunConfig) -> bool:
    """Train in `launch.processes` of this command; whether somebody asked them to stop early.

    Raises:
        ConfigError: several machines have no place to meet, or processes no GPU each.
        MemoryBudgetError: one process's share does not fit its part of the memory.
        FolderInUseError: another launcher trains in this folder.
        RankError: a process was lost more often than `launch.restarts`; names it.
    """
    check_meeting(run.launch)
    check_devices(run)
    share = share_of(run)
    plan = plan_memory(share)
    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)
    by_ray = run.launch.scheduler == "ray"
    # Several machines see one folder, and its first process locks it; Ray is told by one process.
    alone = by_ray or run.launch.nodes == 1
    if not by_ray:
        try_out(share, probe_update)  # else each process would compile
    held = locked(Path(run.run_dir), LAUNCHER_LOCK) if alone else nullcontext()
    room = nullcontext() if by_ray else admitted(run, share)  # Ray counts its machines' memory
    going = doing(f"training in {run.launch.size} processes")
    # Ray brings its own answer to SIGTERM, which aborts: we listen after it, and in its place.
    needs = ray_needs(run, plan) if by_ray else {}
    with held, room, going, passing_on(own_ranks) as asked:
        start = ray_starter(run, needs, asked) if by_ray else start_once
        for attempt in range(run.launch.restarts + 1):
            lost = start(run, attempt)
            if lost is None:
                break
            if attempt == run.launch.restarts or asked or not lost.may_go_on:
                words = lost.words.replace(NONE_YET, "").strip()
                raise RankError(words + way_on(run, words))
            again = f"{attempt + 1} of launch.restarts={run.launch.restarts}"
            say(f"{lost.words} Starts again, {again}.")
    return bool(asked)


def check_meeting(launch: Launch) -> None:
    """Refuse several machines without a place where they can meet.

    Raises:
        ConfigError: there is none, or it has no port.
    """
    if launch.scheduler == "ray":
        return  # the first actor tells the others
    if launch.nodes > 1 and not launch.meet:
        raise ConfigError(
            f"launch.nodes={launch.nodes} need a place to meet: launch.meet=HOST:29400, with "
            "the first machine's name, in the same command on each of them."
        )
    host, _, port = launch.meet.rpartition(":")
    if launch.meet and not (host and port.isdigit() and 0 < int(port) < 65536):
        raise ConfigError(
            f"launch.meet={launch.meet} is no HOST:PORT with a port from 1 to 65535; use "
            f"launch.meet={launch.meet.partition(':')[0] or 'HOST'}:29400."
        )


def check_devices(run: RunConfig) -> None:
    """Refuse more processes than this machine has GPUs to compute on; Ray counts them itself.

    Raises:
        ConfigError: there are too few, or one is named for all processes.
    """
    processes, device = run.launch.processes, run.hardware.device
    if run.launch.scheduler == "ray" or processes == 1 or choose_device(device).type != "cuda":
        return
    if ":" in device:
        raise ConfigError(
            f"hardware.device={device} is one GPU, and launch.processes={processes} need one each: "
            "use hardware.device=cuda, or launch.processes=1."
        )
    if torch.cuda.device_count() < processes:
        raise ConfigError(
            f"launch.processes={processes} need a GPU each, and this machine has "
            f"{torch.cuda.device_count()}: use launch.processes={torch.cuda.device_count()}, or "
            "hardware.device=cpu."
        )


@dataclass(frozen=True)
class Lost:
    """How an attempt ended before its time."""

    words: str
    may_go_on: bool = True
    """Whether another attempt may do better: not where the run itself is refused."""


def start_once(run: RunConfig, attempt: int) -> Lost | None:
    """Start all processes and wait for them; what ended them before their time.

    Every attempt is an agent of its own: in a second round of one agent the processes would read
    the addresses of the first.

    Raises:
        RankError: the machines did not meet.
    """
    try:
        with no_endless_silence(run.launch.timeout_s), cores_shared(run.launch.processes):
            elastic_launch(launch_config(run, attempt), sys.executable)(*rank_words(run))
    except (RendezvousConnectionError, DistNetworkError) as error:
        raise RankError(
            f"launch.meet={run.launch.meet or HERE} is out of reach: its machine is gone or cut "
            f"off, or was silent for longer than launch.timeout_s={run.launch.timeout_s:g}."
            f"{way_on(run, '')}"
        ) from error
    except ChildFailedError as error:
        first = next(iter(error.failures.items()))  # those behind it were ended because of it
        return _ended(*first, run.launch.size)
    except RendezvousError as error:
        launch = run.launch
        raise RankError(
            f"Not all of launch.nodes={launch.nodes} machines came to launch.meet="
            f"{launch.meet or HERE} within launch.timeout_s={launch.timeout_s:g}. Start the same "
            "command on each of them; if another program has that port, choose a free one."
        ) from error
    return None


def ray_needs(run: RunConfig, plan: Plan) -> dict[str, float]:
    """What each machine must have, as Ray counts; joins the cluster.

    Raises:
        ConfigError: there is no cluster, or none that is large enough.
    """
    needs: dict[str, float] = ray_ranks.needs_of(run, plan, MARGIN)
    ray_ranks.join_cluster(needs, run.launch.nodes)
    return needs


def ray_starter(
    run: RunConfig, needs: Mapping[str, float], asked: Sequence[int]
) -> Callable[[RunConfig, int], Lost | None]:
    """`start_once` on a Ray cluster."""

    def start(run: RunConfig, attempt: int) -> Lost | None:
        end = ray_ranks.train_on_ray(run, rank_words(run), needs, attempt, asked)
        if end is None:
            return None
        who = f"Process {end.rank} of {run.launch.size} ({end.who})"
        return ended(who, end.status, end.message)

    return start


def launch_config(run: RunConfig, attempt: int = 0) -> LaunchConfig:
    """The settings of torchrun's agent on this machine."""
    launch = run.launch
    waits = {"join_timeout": launch.timeout_s, "timeout": launch.timeout_s}
    return LaunchConfig(
        min_nodes=launch.nodes,
        max_nodes=launch.nodes,
        nproc_per_node=launch.processes,
        run_id=f"frugal-rl-{attempt}",
        rdzv_backend="c10d",
        rdzv_endpoint=launch.meet or HERE,
        rdzv_configs=waits | ({"is_host": True} if meets_here(launch.meet) else {}),
        local_addr=launch.address or None,
        max_restarts=0,
        signals_to_handle="SIGQUIT",
        logs_specs=DefaultLogsSpecs(
            log_dir=str(Path(run.run_dir, "ranks")),
            redirects=dict.fromkeys(range(1, launch.processes), Std.ALL),
        ),
    )


def meets_here(meet: str) -> bool:
    """Whether the others meet on this machine, at an address that torch does not know as its own.

    torch asks what this machine's name resolves to, which is seldom each card's address.
    """
    host = meet.rpartition(":")[0]
    if not host or _matches_machine_hostname(host):
        return False  # torch finds out by itself
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return any(card.address in found for cards in psutil.net_if_addrs().values() for card in cards)


def rank_words(run: RunConfig) -> list[str]:
    """What each process is started with: this command, in the run folder that this one chose."""
    beside = ["--config-dir", run.config_dir] if run.config_dir else []
    script = starting("train", folder("scripts"))[1:]
    return [*script, *beside, *run.overrides, *_same_folder(run)]


def _same_folder(run: RunConfig) -> Sequence[str]:
    return [f"hydra.run.dir={value(run.run_dir)}", "hydra.output_subdir=null"]


def own_ranks() -> list[int]:
    """Process ids of those that train for this launcher."""
    return own_ranks_of(psutil.Process())


def own_ranks_of(launcher: psutil.Process) -> list[int]:
    """Process ids of those that train; the agent gives each a session of its own."""
    return [child.pid for child in launcher.children() if os.getsid(child.pid) == child.pid]


def _ended(rank: int, failure: ProcessFailure, size: int) -> Lost:
    """Which process ended first, and how."""
    who = f"Process {rank} of {size} (pid {failure.pid})"
    lost = ended(who, failure.exitcode, failure.message)
    said = Path(failure.error_file).with_name("stderr.log")
    if failure.exitcode > 0 and who in lost.words and said.is_file():
        return replace(lost, words=f"{lost.words} All that it said: {said}.")
    return lost


def ended(who: str, status: int, message: Any) -> Lost:
    """How a process ended, and whether another attempt may do better.

    Args:
        who: names the process.
        status: its exit status, negative for a signal.
        message: what torch's error handler wrote for it, if anything.
    """
    if status < 0:
        return Lost(f"{who} was ended by {Signals(-status).name}.")
    said = message.get("message", "") if isinstance(message, dict) else ""
    if not said:
        return Lost(f"{who} ended with {status}.")
    kind, _, words = said.partition(": ")
    if kind == RankError.__name__:
        return Lost(words)
    return Lost(f"{who} ended: {said}", may_go_on=False)


def way_on(run: RunConfig, said: str) -> str:
    """How a run that ended early goes on, where its last words do not say so.

    What a process knew of checkpoints may be old: the first one may have saved after its last word.
    """
    if "resume=" in said:
        return ""
    if own_checkpoints(run):
        again = override("resume", run.run_dir)
        return f" launch.restarts=3 lets a run go on by itself; this one goes on with {again}"
    return f" {NONE_YET}"
