"""Weights & Biases: the only module that imports it. Offline unless asked otherwise.

An offline run never sees an older run of the same id, so our own step is logged as `global_step`
and the id is kept in the run folder, from where a resumed run takes it.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from frugal_rl.errors import DataError
from frugal_rl.invocation import command_line, program_word
from frugal_rl.report.files import plain, write_text
from frugal_rl.untrusted.files import read_bytes
from frugal_rl.untrusted.printing import shown

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import RunConfig

ID_FILE = "wandb_id.txt"
LONGEST_ID = 128
TAG_LENGTH = 64
"""Longest tag that W&B takes."""
PATIENCE_SECONDS = 5.0
"""Longest wait for a server; what it did not get lies in the run folder."""
PROBE_SECONDS = 2.0
OFFLINE_SECONDS = 1.0
"""Of the longest wait: what is kept to start offline, should the server not take the run."""
SERVER = "https://api.wandb.ai"


class WandbSink:
    """One W&B run."""

    name = "W&B"

    def __init__(self, wandb_run: Any) -> None:
        self.wandb_run = wandb_run
        self.folder = Path(str(getattr(wandb_run, "dir", "wandb"))).parent
        wandb_run.define_metric("global_step", hidden=True)
        wandb_run.define_metric("*", step_metric="global_step")

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at one of our own steps."""
        self.wandb_run.log({**plain(values), "global_step": step})

    def summary(self, values: Mapping[str, Any]) -> None:
        """Numbers of the whole run."""
        self.wandb_run.summary.update(plain(values))

    def file(self, path: Path) -> None:
        """Show pictures and videos; other files stay in the run folder."""
        import wandb

        kinds = {".png": wandb.Image, ".gif": wandb.Video, ".mp4": wandb.Video}
        kind = kinds.get(path.suffix)
        if kind is not None:
            self.wandb_run.log({f"media/{path.stem}": kind(str(path))})

    def table(self, name: str, columns: list[Any], rows: list[Any]) -> None:
        """A table, as the ablation writes it."""
        import wandb

        self.wandb_run.log({name: wandb.Table(columns=columns, data=rows)})

    def close(self) -> None:
        """Finish the run; a server that takes its time is not waited for."""
        failed: list[Exception] = []
        finished = threading.Event()

        def finish() -> None:
            try:
                self.wandb_run.finish()
            except Exception as error:
                failed.append(error)
            finished.set()
            end_service()

        ending = threading.Thread(target=finish, name="W&B", daemon=True)
        ending.start()
        ending.join(PATIENCE_SECONDS)
        if ending.is_alive():
            kill_service()  # else Python waits for it when it ends
        if not finished.is_set():
            warnings.warn(
                f"W&B has not taken everything within {PATIENCE_SECONDS:g} s. It is kept in the "
                f"run folder: send it later with: {sync_command(self.folder)}",
                stacklevel=2,
            )
        if failed:
            raise failed[0]


def sync_command(folder: Path) -> str:
    """What sends an offline run; a shell reads it as it is."""
    return command_line([program_word("wandb"), "sync", str(folder)])


def end_service() -> None:
    """Let W&B's own process end, unless another run of this one still talks to it."""
    if "wandb" in sys.modules and not other_runs():
        sys.modules["wandb"].teardown()


def kill_service() -> None:
    """End W&B's own process, which waits for a server that says nothing; never another run's."""
    if other_runs():
        return
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "wandb-core" in child.name():
                child.kill()


def other_runs() -> bool:
    """Whether runs of this process go on; one that began to finish is none of them any more."""
    wandb: Any = sys.modules.get("wandb")
    if wandb is None:
        return False
    return wandb.sdk.wandb_setup.singleton().most_recent_active_run is not None


def open_wandb(run: RunConfig, plan: Plan) -> list[WandbSink]:
    """The sink of this run; empty, with a warning, where W&B cannot be started at all."""
    folder = Path(run.run_dir)
    # An offline run is whole only if staged files lie in the run folder too.
    for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_ARTIFACT_DIR"):
        os.environ[name] = str((folder / "wandb").absolute())
    # What it tells its makers of errors it would send to a mute server too, and wait for it.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    (folder / "wandb").mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        if run.tracking.wandb == "online":
            ask_server()
        left = PATIENCE_SECONDS - OFFLINE_SECONDS - (time.monotonic() - began)
        return [WandbSink(_start(run, plan, run.tracking.wandb, left))]
    except Exception as error:
        warnings.warn(
            f"W&B does not start {run.tracking.wandb}: {error}. Numbers are kept in the run "
            f"folder; send them later with: {sync_command(folder / 'wandb')}/offline-run-*",
            stacklevel=2,
        )
    if run.tracking.wandb == "offline":
        return []
    try:
        return [WandbSink(_start(run, plan, "offline"))]
    except Exception as error:
        warnings.warn(f"W&B does not start offline: {error}", stacklevel=2)
        return []


def ask_server() -> None:
    """Whether the server says anything at all: W&B itself asks it several times, and waits.

    Raises:
        OSError: it does not, within two seconds.
    """
    address = os.environ.get("WANDB_BASE_URL", SERVER)
    if not address.startswith(("http://", "https://")):
        raise OSError(f"{address} is no address of a server")
    try:
        urllib.request.urlopen(address, timeout=PROBE_SECONDS).close()
    except urllib.error.HTTPError:
        return  # an answer, if not a kind one
    except (OSError, HTTPException) as error:
        raise OSError(f"{address} does not answer ({error})") from error


def config_of(run: RunConfig, plan: Plan) -> dict[str, Any]:
    """What W&B knows of a run: all of it, how it was asked for, and what was predicted."""
    resolved = {k: v for k, v in run.resolved.items() if k not in ("choices", "config_name")}
    hydra = {"choices": run.resolved.get("choices", {}), "overrides": list(run.overrides)}
    planned = plan.as_dict()
    planned["parts"] = {p.name: p.ram_bytes + p.vram_bytes for p in plan.parts}
    config: dict[str, Any] = plain({**resolved, "hydra": hydra, "plan": planned})
    return config


def run_id(run: RunConfig) -> str | None:
    """The id of the run that is resumed; None gives a new one."""
    if run.resume is None:
        return None
    at = Path(run.resume)
    for folder in (at, *at.parents):
        if (folder / ID_FILE).is_file():
            return _kept_id(folder / ID_FILE)
    return None


def _kept_id(path: Path) -> str | None:
    """The id in a run's file; a stranger's may hold anything."""
    try:
        said = read_bytes(path, LONGEST_ID).decode(errors="replace").strip()
    except DataError as error:
        said = str(error)
    if re.fullmatch(r"[\w.-]+", said, re.ASCII):
        return said
    warnings.warn(f"{shown(path)} holds no id of a W&B run: this one gets a new one.", stacklevel=4)
    return None


def _start(
    run: RunConfig, plan: Plan, mode: str, patience_seconds: float = PATIENCE_SECONDS
) -> Any:
    import wandb

    wandb_run = wandb.init(
        project=run.tracking.project,
        entity=run.tracking.entity,
        group=run.tracking.group,
        name=f"{run.env.name} {run.memory.profile} seed {run.seed}",
        id=run_id(run),
        resume="allow",
        mode=mode,  # type: ignore[arg-type]
        dir=run.run_dir,
        config=config_of(run, plan),
        tags=[o[:TAG_LENGTH] for o in run.overrides],
        settings=wandb.Settings(silent=True, console="off", init_timeout=patience_seconds),
    )
    write_text(Path(run.run_dir) / ID_FILE, str(wandb_run.id) + "\n")
    return wandb_run
