"""What `memory=auto` tries and writes out, the allocator's thresholds, and the names of checks."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from frugal_rl.memory import allocator
from frugal_rl.memory import auto as choosing
from frugal_rl.memory.allocator import give_back, pin_allocator
from frugal_rl.memory.auto import prepare, refuse_hopeless
from frugal_rl.memory.checks import RULES, check
from frugal_rl.memory.choices import Allocator
from frugal_rl.memory.facts import Facts
from frugal_rl.memory.machine import Limit
from frugal_rl.memory.part import Part
from frugal_rl.memory.plan import Plan
from frugal_rl.observation.choices import Label
from frugal_rl.run.compose import compose_run

NAMES = {
    "F01": "observation size",
    "F02": "rollout",
    "F03": "rollout peak",
    "F06": "environments",
    "F07": "total memory",
    "F08": "minibatch on the device",
    "F09": "minibatch against rollout",
    "F10": "minibatches divide the rollout",
    "F11": "updates",
    "F12": "gradient steps per rollout",
    "F13": "rollout against episode",
    "F14": "one number, two meanings",
    "F16": "environments against cores",
    "F17": "workers against cores",
    "F20": "accumulated gradient",
    "F23": "frequency units",
    "F24": "checkpoints on disk",
    "F25": "evaluation",
    "F30": "horizon",
    "F35": "total steps",
    "F37": "bf16 units",
    "F45": "observations not read",
}


def test_a_check_is_called_what_it_looks_at():
    gib = 1 << 30
    every = Facts(
        vram_bytes=gib, decoded_bytes=gib, batch_size=2, free_disk_bytes=gib, episode_steps=(1, 1),
        time_limit_steps=1, workers=1, save_every_steps=1, eval_steps=1, gamma=0.5, bf16=True,
        unread=(),
    )  # fmt: skip

    assert {f.id: f.name for f in check(every)} == NAMES
    assert len(NAMES) == len(RULES)


@pytest.fixture(scope="module")
def run():
    sizes = ["algo.num_envs=6", "algo.n_steps=100", "algo.batch_size=600"]
    return compose_run(["env=toy", "tracking=disabled", "hardware.device=cpu", *sizes])


def plan_of(fits: bool) -> Plan:
    return Plan((Part("all", "", 10),), Limit(100 if fits else 1, "a budget"))


def test_savings_are_tried_from_the_cheapest_to_the_dearest(run, monkeypatch):
    monkeypatch.setattr(choosing, "can_serve", lambda saving, run: True)
    monkeypatch.setattr(choosing, "shrunk_sizes", lambda run, plan: iter([{"num_envs": 2}]))
    recompute, smallest = "memory.gradient_checkpointing=true", "memory.storage=smallest"
    last = "memory.micro_batch=37"  # a sixteenth of 600 samples

    assert list(choosing._candidates(run, plan_of(True))) == [
        (Label.lossless, ()),
        (Label.lossless, (recompute,)),
        (Label.precision, ("memory.micro_batch=150",)),
        (Label.precision, (last,)),
        (Label.precision, (smallest, last)),
        (Label.precision, (smallest, last, recompute)),
        (Label.precision, (smallest, last, recompute, "memory.precision=bf16")),
        (Label.capacity, ("algo.num_envs=2",)),
    ]
    monkeypatch.setattr(choosing, "can_serve", lambda saving, run: False)
    assert len(list(choosing._candidates(run, plan_of(True)))) == 7


@pytest.mark.parametrize(("batch", "pieces"), [(127, 0), (128, 1), (511, 1), (512, 2)])
def test_a_minibatch_is_not_cut_into_pieces_below_32_samples(batch, pieces, run):
    varied = replace(run, algo=replace(run.algo, batch_size=batch))

    assert len(list(choosing._pieces(varied))) == pieces


def test_a_choice_is_written_out_with_the_budget_that_it_was_made_for(run):
    words = ("memory=lossless", "memory.micro_batch=8")
    budget = replace(run, memory=replace(run.memory, budget_gib=0.25))

    assert choosing._explicit(run, words) == words
    assert choosing._explicit(budget, words) == (*words, "memory.budget_gib=0.25")
    assert choosing._within_budget(run, budget).memory == budget.memory


@pytest.mark.parametrize(
    ("fits", "probe", "asked"),
    [(False, "p", [None]), (True, None, [None]), (True, "p", [None, "p"])],
)
def test_a_plan_that_fits_is_probed_and_one_that_does_not_is_not(
    fits, probe, asked, run, monkeypatch
):
    drawn = []
    monkeypatch.setattr(
        choosing, "draw_up", lambda run, probe=None: drawn.append(probe) or plan_of(fits)
    )
    monkeypatch.setattr(choosing, "check_run", lambda run, plan: [])

    assert choosing._checked(run, probe).fits is fits
    assert drawn == asked


def test_a_named_profile_is_planned_before_torch_and_auto_is_not(run, monkeypatch):
    planned = []
    monkeypatch.setattr(choosing, "plan_memory", lambda *given: planned.append(given))

    refuse_hopeless(run)
    refuse_hopeless(replace(run, memory=replace(run.memory, profile="auto")))
    assert planned == [(run,)]


@pytest.mark.parametrize("allocator_kind", list(Allocator))
def test_a_run_is_prepared_with_its_notes_and_its_allocator(
    allocator_kind, run, monkeypatch, capsys
):
    settled, order = [], []

    def plan_memory(run, probe=None):
        order.append(f"plan with {probe}")
        return "plan", probe

    monkeypatch.setattr(choosing, "plan_memory", plan_memory)
    monkeypatch.setattr(choosing, "try_out", lambda run, probe: order.append("tried out"))
    monkeypatch.setattr(choosing, "settle_process", settled.append)
    memory = replace(run.memory, allocator=allocator_kind)
    noted = replace(run, notes=("one", "two"), memory=memory)

    assert prepare(noted, "probe") == (noted, ("plan", "probe"))
    assert order == ["plan with None", "tried out", "plan with probe"]
    assert capsys.readouterr().out == "one\ntwo\n"
    assert settled == [memory]


@pytest.mark.parametrize(
    ("probe", "tried_out", "planned"),
    [(None, True, "chosen"), ("p", False, "chosen"), ("p", True, "again")],
)
def test_what_auto_chose_is_told_and_planned_again_after_it_was_tried_out(
    probe, tried_out, planned, run, monkeypatch, capsys
):
    memory = replace(run.memory, allocator=Allocator.default)
    auto = replace(run, memory=replace(memory, profile="auto"))
    varied = replace(run, seed=5, memory=memory)
    choice = SimpleNamespace(
        run=varied, plan="chosen", overrides=("a=1", "b=2"), label=Label.precision
    )
    asked = []
    monkeypatch.setattr(choosing, "choose", lambda *given: asked.append(given) or choice)
    monkeypatch.setattr(choosing, "try_out", lambda *given: asked.append(given) or tried_out)
    monkeypatch.setattr(choosing, "plan_memory", lambda *given: asked.append(given) or "again")

    assert prepare(auto, probe) == (varied, planned)
    assert capsys.readouterr().out == "memory=auto chose a=1 b=2 (precision)\n"
    once = [(auto, probe), (varied, probe), (varied, probe)]
    assert asked == once[: 1 + (probe is not None) + (planned == "again")]


class Libc:
    """Notes what it is asked; says yes but to one parameter."""

    def __init__(self, refused: int = 0, trims: int = 1) -> None:
        self.refused, self.trims, self.asked = refused, trims, []

    def mallopt(self, parameter: int, value: int) -> int:
        self.asked.append((parameter, value))
        return int(parameter != self.refused)

    def malloc_trim(self, pad: int) -> int:
        self.asked.append(pad)
        return self.trims


@pytest.mark.parametrize(("refused", "pinned"), [(0, True), (-3, False), (-1, False), (-2, False)])
def test_thresholds_of_glibc_are_fixed_all_of_them(refused, pinned, monkeypatch):
    libc = Libc(refused)
    monkeypatch.setattr(allocator, "_glibc", lambda: libc)
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)

    assert pin_allocator() is pinned
    assert libc.asked == [(-3, 1 << 20), (-1, 16 << 20), (-2, 64 << 10)]
    assert allocator.os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    pin_allocator()
    assert allocator.os.environ["THP_MEM_ALLOC_ENABLE"] == "0"  # what a user set stays


@pytest.mark.parametrize(("libc", "back"), [(Libc(), True), (Libc(trims=0), False), (None, False)])
def test_free_memory_is_given_back_where_there_is_a_glibc(libc, back, monkeypatch):
    monkeypatch.setattr(allocator, "_glibc", lambda: libc)

    assert give_back() is back
    if libc is None:
        assert pin_allocator() is False
    else:
        assert libc.asked == [0]


@pytest.mark.parametrize(
    ("system", "library", "there"),
    [("Linux", "glibc", True), ("Linux", "musl", False), ("Darwin", "glibc", False)],
)
def test_glibc_is_looked_for_on_linux_alone(system, library, there, monkeypatch):
    made = SimpleNamespace(mallopt=SimpleNamespace())
    monkeypatch.setattr(allocator.platform, "system", lambda: system)
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: (library, "2.36"))
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: made)

    assert (allocator._glibc() is made) is there
