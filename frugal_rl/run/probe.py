"""What the learner holds per sample: by arithmetic on its operations, or measured.

Either happens in a throw-away process, and is remembered; nothing here imports torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory.child import ask_child
from frugal_rl.memory.probe import Planning, Probe

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


def probe_update(run: RunConfig) -> Probe:
    """The run's learner: traced without memory, or measured with `plan=probe`.

    A network whose work depends on what it sees (graphs of levels) cannot be traced; it is measured
    once and remembered.
    """
    if run.plan is Planning.probe:
        return measured_update(run)
    name = f"learner_{_fingerprint(run)}"
    kept = remembered.read(name)
    if kept:
        return Probe.of_json(kept)
    found = _asked(run, "frugal_rl.run.trace_process", "Tracing the network")
    found = measured_update(run) if found is None else found
    remembered.write(name, found.as_json())
    return found


def measured_update(run: RunConfig) -> Probe:
    """The run's learner, measured in a throw-away process.

    Raises:
        ConfigError: the run is refused, in the words of whoever refused it; or the process failed,
            with the last line of what it said.
    """
    found = _asked(run, "frugal_rl.run.probe_process", "Measuring the learner")
    assert found is not None
    return found


def _asked(run: RunConfig, module: str, doing: str) -> Probe | None:
    """What a process answers about a run; None where it does not know."""
    answer = ask_child(module, run, doing)
    if answer is None:
        return None
    if "refused" in answer:
        raise ConfigError(answer["refused"])
    return Probe.of_json(answer)


def _fingerprint(run: RunConfig) -> str:
    """What bytes per sample depend on: network, observation, arithmetic, the scale of sizes."""
    algo, memory, encoding = run.algo, run.memory, run.encoding()
    at_once = min(memory.micro_batch or algo.batch_size, algo.n_steps * algo.num_envs)
    sizes = (min(at_once, algo.batch_size).bit_length(), algo.num_envs.bit_length())
    switches = (memory.precision, memory.gradient_checkpointing, run.hardware.device)
    packages = {"frugal_rl", type(run.agent).__module__.split(".")[0]}
    code = [remembered.code_digest(package) for package in sorted(packages)]
    shapes = [(f.name, f.shape, f.dtype) for f in run.env.spec().fields]
    shapes += [(r.name, r.shape, r.window) for r in encoding.rows]
    values = (run.agent, shapes, run.env.action_space(), sorted(encoding.choice.items()))
    return remembered.fingerprint(*map(repr, values), type(algo), *sizes, *switches, *code)
