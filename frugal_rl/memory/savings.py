"""The table of savings: every one once, with what it costs, who honours it, how it is predicted.

Advice, `memory=auto`, the ablation, remedies of checks, the refusal of switches that nobody reads
and the table in docs/out_of_memory.md are made from it. A label is what an experiment found: a test
trains with each saving alone and compares the parameters bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from frugal_rl.observation.choices import Label


class Reader(Enum):
    """Whose declaration says whether a switch is honoured; `process` is there in every run."""

    env = "env"
    algo = "algo"
    vec = "vec"
    process = "process"


class Predicted(Enum):
    """Where the plan takes the saving's bytes from."""

    arithmetic = "arithmetic"
    probe = "a probe of the learner"
    tiny_run = "a tiny run"


class Needs(Enum):
    """What the machine must have, for the saving to be one."""

    nothing = "nothing"
    bf16_units = "bf16 units"
    accelerator = "an accelerator"


@dataclass(frozen=True)
class Saving:
    """One saving.

    `words` switch it on; one that ends in `=` takes a size, filled in by `filled`. `readers` are
    those that have to honour it, all of them. `advised` marks the ways that a refusal may name.
    """

    name: str
    words: tuple[str, ...]
    label: Label
    does: str
    readers: tuple[Reader, ...] = ()
    predicted: Predicted = Predicted.arithmetic
    needs: Needs = Needs.nothing
    advised: bool = True

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of the profile's switches that it sets; none for a whole profile."""
        keys = (word.partition("=")[0].partition(".") for word in self.words)
        return tuple(name for group, _, name in keys if group == "memory" and name)

    @property
    def other_learner(self) -> bool:
        """Whether it changes what the learner holds per sample, so that a probe is out of date."""
        return self.predicted is Predicted.probe and not self.words[0].endswith("=")


COSTS = {
    Label.lossless: "nothing: the same numbers",
    Label.precision: "rounded values",
    Label.capacity: "a smaller problem",
}
LEAST_PIECE = 32
"""Micro-batches are not made smaller than this."""
_ENCODED = (Reader.env,)
_STORED = (Reader.algo, Reader.vec)

SAVINGS = (
    Saving(
        "all lossless ones",
        ("memory=lossless",),
        Label.lossless,
        "all of the lossless ones below; the default",
    ),
    Saving(
        "tightest exact storage",
        ("memory.storage=lossless",),
        Label.lossless,
        "each field in its tightest exact form: bits, ids, derived on reading",
        _ENCODED,
    ),
    Saving(
        "gather by index",
        ("memory.shuffle=gather",),
        Label.lossless,
        "minibatches are drawn by index; Stable-Baselines3 copies the rollout first",
        _STORED,
    ),
    Saving(
        "stack frames once",
        ("memory.frame_stack=once",),
        Label.lossless,
        "a stack of k frames is stored once, not k times",
        (Reader.env, Reader.vec),
    ),
    Saving(
        "drop internal observations",
        ("memory.internal_observations=false",),
        Label.lossless,
        "what only the reward reads is not stored",
        _ENCODED,
    ),
    Saving(
        "share level data",
        ("memory.level_data=shared",),
        Label.lossless,
        "one copy of each level for all environments",
        (Reader.env,),
    ),
    Saving(
        "reuse buffers",
        ("memory.buffers=reused",),
        Label.lossless,
        "observations are written into the same arrays every step",
        (Reader.env,),
    ),
    Saving(
        "build graphs on demand",
        ("memory.graphs=lazy",),
        Label.lossless,
        "graphs are built only where a field needs them",
        (Reader.env,),
    ),
    Saving(
        "draw only what is observed",
        ("memory.rendering=observed", "memory.animation=false"),
        Label.lossless,
        "no full-size surface, no table of animation frames",
        (Reader.env,),
    ),
    Saving(
        "merge trajectories in place",
        ("memory.trajectories=preallocated",),
        Label.lossless,
        "whole trajectories (vec=episodes) are written where they are learned from",
        _STORED,
    ),
    Saving(
        "pin the allocator",
        ("memory.allocator=pinned",),
        Label.lossless,
        "freed blocks go back to the system at once",
        (Reader.process,),
        Predicted.tiny_run,
        advised=False,
    ),
    Saving(
        "give back library pages",
        ("memory.library_pages=given_back",),
        Label.lossless,
        "pages of libraries that only starting up touched go back to the system",
        (Reader.process,),
        Predicted.tiny_run,
        advised=False,
    ),
    Saving(
        "recompute activations",
        ("memory.gradient_checkpointing=true",),
        Label.lossless,
        "activations are computed again in the backward pass",
        (Reader.algo,),
        Predicted.probe,
    ),
    Saving(
        "keep one process",
        ("vec=batch",),
        Label.lossless,
        "one process instead of workers",
    ),
    Saving(
        "rollout on the device",
        ("memory.rollout_location=device",),
        Label.lossless,
        "the rollout lies in the accelerator's memory, its pools excepted",
        _STORED,
        needs=Needs.accelerator,
    ),
    Saving(
        "map the rollout",
        ("memory.rollout_location=memmap",),
        Label.lossless,
        "the rollout in a mapped file: slower, evictable",
        _STORED,
        advised=False,
    ),
    Saving(
        "micro-batches",
        ("memory.micro_batch=",),
        Label.precision,
        "a minibatch in pieces, gradients added up: the last bits differ",
        (Reader.algo,),
        Predicted.probe,
    ),
    Saving(
        "smallest storage",
        ("memory.storage=smallest",),
        Label.precision,
        "lossless, and the floats that remain in float16",
        _ENCODED,
    ),
    Saving(
        "sparse storage",
        ("memory.storage=sparse",),
        Label.precision,
        "float16 without padding, as `memory=sparse`",
        _ENCODED,
    ),
    Saving(
        "half precision storage",
        ("memory.storage=half",),
        Label.precision,
        "every float in float16, as `memory=attention`",
        _ENCODED,
    ),
    Saving(
        "bfloat16 arithmetic",
        ("memory.precision=bf16",),
        Label.precision,
        "the network computes in bfloat16; slow where the processor has no units for it",
        (Reader.algo,),
        Predicted.probe,
        Needs.bf16_units,
    ),
    Saving(
        "a smaller problem",
        ("algo.num_envs=", "algo.n_steps=", "algo.batch_size="),
        Label.capacity,
        "fewer or shorter trajectories per update",
        advised=False,
    ),
)
"""Lossless ones first, then rounding, then a smaller problem: the order in which to try them."""

BY_NAME = {saving.name: saving for saving in SAVINGS}


def readers_of(switch: str) -> tuple[Reader, ...]:
    """Who has to honour a switch of the profile; empty for what is none."""
    return next((s.readers for s in SAVINGS if switch in s.switches), ())


def labelled(label: Label, savings: Iterable[Saving] = SAVINGS) -> Iterator[Saving]:
    """The savings of one label, in their order."""
    return (saving for saving in savings if saving.label is label)


def filled(saving: Saving, samples: int, pieces: int) -> tuple[str, ...]:
    """A saving's words; a size becomes that of `pieces` pieces of a minibatch of `samples`."""
    size = max(min(LEAST_PIECE, samples), samples // pieces)
    return tuple(word + str(size) if word.endswith("=") else word for word in saving.words)


def typed(name: str, size: int = 0) -> str:
    """What to type for a saving of one word; `size` belongs behind one that takes a size."""
    (word,) = BY_NAME[name].words
    return f"{word}{size}" if word.endswith("=") else word


def as_markdown() -> str:
    """The table in docs/out_of_memory.md: override, label, who honours it, prediction, effect."""
    columns = ("override", "label", "honoured by", "predicted by", "what it does")
    rows = [_cells(saving) for saving in SAVINGS]
    lines = (columns, ("---",) * len(columns), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(saving: Saving) -> tuple[str, ...]:
    words = ", ".join(f"`{word}`" for word in saving.words)
    readers = ", ".join(f"`{reader.value}`" for reader in saving.readers) or "every run"
    return words, saving.label.value, readers, saving.predicted.value, saving.does


if __name__ == "__main__":
    print(as_markdown(), end="")
