"""One cell of a leaderboard: a method on an instance, in a process of its own.

A process of its own, because its peak memory is then the cell's, and because a cell that is killed
for memory or takes too long must not end the others.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing as mp
import signal
import sys
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError, DataError
from frugal_rl.run.compiling import told_compiling
from frugal_rl.untrusted.files import read_bytes
from mine_rl_npv.data.bundled import open_instance
from mine_rl_npv.data.solutions import write_schedule
from mine_rl_npv.data.whole_files import write_whole
from mine_rl_npv.optimise.decode import Decoder
from mine_rl_npv.tools.peers import PEERS, peer_row
from mine_rl_npv.tools.solution import peak_mib, write_solution
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import LEARNING, BoundKind, Kind, Method, SolveConfig

COMPILED = "compiled"
"""Kernels that were compiled while a cell was computed; in no record."""
SUFFIXES = (".blocks", ".prec", ".upit", ".cpit", ".pcpsp")


@dataclass(frozen=True)
class Cell:
    """What one process computes."""

    prefix: str
    """Path of the instance without the ending."""
    problem: str
    """upit, cpit or pcpsp."""
    entry: str
    """METHOD[:DECODER][+polish][+cuts], or the name of a peer."""
    seconds: float
    decodes: int
    seed: int
    threads: int
    lp_features: bool
    bound_seconds: float = 300.0
    bound_decisions: int = 0

    @property
    def name(self) -> str:
        """The cell's files, without the ending."""
        words = f"{Path(self.prefix).name}-{self.problem}-{self.entry}"
        return words.replace(":", "-").replace("+", "-")

    def config(self) -> SolveConfig:
        """As `scripts/solve.py` would be asked.

        Raises:
            ConfigError: the entry names no method or decoder.
        """
        method, decoder, closing = parse_entry(self.entry)
        counted = method in LEARNING
        return SolveConfig(
            instance=self.prefix,
            method=method,
            problem=Kind.pcpsp if self.problem == "pcpsp" else Kind.cpit,
            decoder=decoder,
            polish="polish" in closing,
            bound=BoundKind.cuts if "cuts" in closing else BoundKind.auto,
            bound_seconds=self.bound_seconds,
            bound_decisions=self.bound_decisions,
            seed=self.seed,
            seconds=self.seconds,
            decodes=self.decodes if counted else 0,
            lp_features=self.lp_features,
            threads=self.threads,
        )

    def fingerprint(self) -> str:
        """Of the settings and of the instance's files: what a kept result must agree with."""
        digest = hashlib.sha256(json.dumps(asdict(replace(self, prefix=""))).encode())
        for suffix in SUFFIXES:
            path = Path(self.prefix + suffix)
            digest.update(read_bytes(path) if path.is_file() else b"-")
        return digest.hexdigest()[:16]


def parse_entry(entry: str) -> tuple[Method, Decoder, frozenset[str]]:
    """`toposort:shift+polish+cuts` -> method, decoder, {polish, cuts}.

    Raises:
        ConfigError: no such method or decoder.
    """
    words, *closing = entry.split("+")
    name, _, decoder = words.partition(":")
    known = [m.value for m in Method if m is not Method.compare]
    strange = bool(decoder) and decoder not in [d.value for d in Decoder]
    if name not in known or strange or not set(closing) <= {"polish", "cuts"}:
        raise ConfigError(
            f"board.methods: '{entry}' is no METHOD[:DECODER][+polish][+cuts]. Methods are "
            f"{', '.join(known)}, and {', '.join(PEERS)}; decoders are "
            f"{', '.join(d.value for d in Decoder)}."
        )
    return Method(name), Decoder(decoder or "two_pass"), frozenset(closing)


def run_cell(cell: Cell, folder: Path, most_seconds: float) -> dict[str, Any]:
    """The cell's row, computed or kept from an earlier call; its schedule file lies beside.

    Args:
        cell: what to compute.
        folder: where NAME.json and NAME.sol go.
        most_seconds: the process is ended after so much time by the clock.
    """
    record, mark = folder / f"{cell.name}.json", cell.fingerprint()
    kept = _kept(record, mark)
    if kept is not None:
        return kept | {"kept": True}
    output = folder / f"{cell.name}.sol"
    with doing(cell.name):
        row = _in_process(cell, output, most_seconds)
    if row.pop(COMPILED, 0):  # its seconds and its peak are the compiler's as well
        with doing(f"{cell.name} once more, compiled"):
            row = _in_process(cell, output, most_seconds)
    row.pop(COMPILED, None)
    row |= {"fingerprint": mark}
    if "trouble" not in row:
        write_whole(record, [json.dumps(row, indent=1)])
    return row


def _kept(record: Path, mark: str) -> dict[str, Any] | None:
    try:
        row = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(row, dict) and row.get("fingerprint") == mark
    there = whole and (not row.get("file") or (record.parent / row["file"]).is_file())
    return row if there else None


def _in_process(cell: Cell, output: Path, most_seconds: float) -> dict[str, Any]:
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_compute, args=(cell, output, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(most_seconds):
            return {"trouble": f"stopped after {most_seconds:g} s (board.seconds)"}
        row: dict[str, Any] = ours.recv()
        return row
    except EOFError:
        process.join()
        return {"trouble": f"its process ended by {_ending(process.exitcode)}"}
    finally:
        process.kill()
        process.join()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return name + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"exit status {code}"


def _compute(cell: Cell, output: Path, pipe: Connection) -> None:
    """In the cell's process: solves, writes the schedule, sends the row."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    try:
        with told_compiling() as kernels:
            row = _row(cell, output)
        pipe.send(row | {COMPILED: kernels.count})
    except (ConfigError, DataError) as error:
        pipe.send({"refused": str(error)})
    except Exception as error:
        print(f"{cell.name}: {error!r}", file=sys.stderr)
        pipe.send({"trouble": f"{type(error).__name__}: {error}"})


def _row(cell: Cell, output: Path) -> dict[str, Any]:
    """Solves and writes the schedule, if there is one."""
    if cell.entry in PEERS:
        row, period = peer_row(cell.entry, cell.prefix, cell.problem, cell.seconds)
        if period is not None:
            write_schedule(period, output)
    else:
        config = cell.config()
        instance = open_instance(cell.prefix, pit_only=config.method is Method.upit)
        solution = solve(instance, config)
        bound_alone = config.method in (Method.lp, Method.lp_direct)
        if not bound_alone:
            write_solution(solution, output)
        row = {
            "bound": solution.upper,
            "seconds": 0.0 if bound_alone else solution.seconds,
            "bound_seconds": solution.bound_seconds,
        } | ({} if bound_alone else {"value": solution.verdict.value})
    return row | {"mib": peak_mib()} | ({"file": output.name} if "value" in row else {})
