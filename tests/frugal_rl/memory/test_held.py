"""Shares of a process tree, peaks and growth, from files and numbers that the test has written."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from frugal_rl.memory import meter as metering
from frugal_rl.memory import usage
from frugal_rl.memory import watchdog as watching
from frugal_rl.memory.machine import (
    GIB,
    Limit,
)
from frugal_rl.memory.meter import MemoryMeter, Peaks, median_slope
from frugal_rl.memory.part import Phase, human
from frugal_rl.memory.usage import Usage
from frugal_rl.memory.watchdog import Watchdog

MIB = 1 << 20


ROLLUP = """55d0-7ffe ---p 00000000 00:00 0   [rollup]
Rss:              1000 kB
Pss:               700 kB
Anonymous:         310 kB
Pss_Anon:          300 kB
Pss_File:          390 kB
Pss_Shmem:          10 kB
"""
STATUS = "Name:\tpython\nVmHWM:\t 2000 kB\nRssAnon:\t 310 kB\nRssShmem:\t 90 kB\n"


@pytest.fixture
def proc(monkeypatch):
    """Files of /proc by name; what is missing cannot be read."""
    files = {"smaps_rollup": ROLLUP, "status": STATUS}
    read = []

    def read_text(path):
        read.append(str(path))
        if path.name not in files:
            raise OSError
        return files[path.name]

    monkeypatch.setattr(Path, "read_text", read_text)
    files["read"] = read
    return files


class Process:
    """A process as psutil shows it."""

    pid = 42

    def __init__(self, **memory: int) -> None:
        self.memory = SimpleNamespace(**{"rss": 900, **memory})

    def name(self) -> str:
        return "python"

    def memory_full_info(self):
        return self.memory

    def memory_info(self):
        return self.memory


def test_a_process_holds_its_shares_and_the_pages_of_files(proc):
    assert usage.of_process(Process()) == Usage(
        "python",
        anonymous=300 * 1024,
        shared=10 * 1024,
        files=(1000 - 310 - 90) * 1024,
        pss=700 * 1024,
        resident=1000 * 1024,
    )
    assert set(proc["read"]) == {"/proc/42/smaps_rollup", "/proc/42/status"}


def test_files_are_never_below_nothing_and_an_ended_process_is_left_out(proc):
    proc["smaps_rollup"] = ROLLUP.replace("310", "3100")
    assert usage.of_process(Process()).files == 0
    del proc["status"]
    assert usage.of_process(Process()) is None


@pytest.mark.parametrize(
    ("memory", "held"), [({"pss": 5, "uss": 4}, 5), ({"uss": 4}, 4), ({"pss": 0, "uss": 0}, 900)]
)
@pytest.mark.parametrize("rollup", ["", None])
def test_without_shares_its_own_memory_counts_where_that_is_known(memory, held, rollup, proc):
    if rollup is None:
        del proc["smaps_rollup"]
    else:
        proc["smaps_rollup"] = rollup

    assert usage.of_process(Process(**memory)) == Usage("python", held, 0, 0, held, held)


def test_a_process_that_may_not_be_looked_at_holds_nothing(proc, monkeypatch):
    def refuse(self):
        raise psutil.AccessDenied

    monkeypatch.setattr(Process, "name", refuse)

    assert usage.of_process(Process()) is None


def test_this_processs_numbers_are_read_from_the_kernel(proc, monkeypatch):
    monkeypatch.setattr(usage.psutil, "Process", Process)

    assert usage.resident_bytes() == 900
    assert usage.anonymous_bytes() == 310 * 1024
    assert usage.peak_resident_bytes() == 2000 * 1024
    assert set(proc["read"]) == {"/proc/self/status"}
    del proc["status"]
    assert usage.anonymous_bytes() == usage.peak_resident_bytes() == 900


@pytest.mark.parametrize("offered", [True, False])
def test_a_peak_is_forgotten_where_the_kernel_offers_it(offered, monkeypatch):
    written = []

    def write(path, text):
        written.append((str(path), text))
        if not offered:
            raise OSError

    monkeypatch.setattr(Path, "write_text", write)

    assert usage.reset_peak() is offered
    assert written == [("/proc/self/clear_refs", "5")]


def grown(*mebibytes: float) -> MemoryMeter:
    return MemoryMeter(after_rollouts=[int(m * MIB) for m in mebibytes])


def test_slopes_are_the_median_over_all_pairs():
    assert median_slope([]) == median_slope([5]) == 0.0
    assert median_slope([1, 3]) == 2.0
    assert median_slope([0, 1, 5]) == 2.5  # of 1, 2.5 and 4


@pytest.mark.parametrize(("count", "rollouts"), [(8, 6), (9, 7), (10, 7), (11, 8), (20, 15)])
def test_the_first_fifth_of_rollouts_and_one_is_not_looked_at(count, rollouts):
    growth = grown(*range(count)).growth

    assert growth.rollouts == rollouts
    assert growth.bytes_per_rollout == (MIB if rollouts >= 8 else 0)
    if rollouts < 8:
        assert (growth.leak, growth.verdict) == (False, f"not known after {rollouts} rollouts")


@pytest.mark.parametrize(
    ("each", "held", "leak"),
    [
        (0.57, 0, False),  # 7 x 0.57 MiB are less than 4
        (0.58, 0, True),
        (1.0, 693, False),  # one hundredth of 700 MiB and more
        (1.0, 600, True),
    ],
)
def test_growth_is_a_leak_from_four_mebibytes_and_a_hundredth_on(each, held, leak):
    growth = grown(*(held + each * i for i in range(11))).growth

    assert growth.leak is leak
    word = f"{each * 1024:+,.1f} KiB per rollout"
    assert growth.verdict == (f"leak: {word}" if leak else f"steady ({word})")


def test_growth_that_has_slowed_down_to_a_quarter_is_none():
    assert grown(*range(14), *(13 + 0.3 * i for i in range(1, 6))).growth.leak
    assert not grown(*range(14), *(13 + 0.2 * i for i in range(1, 6))).growth.leak


@pytest.fixture
def looked(monkeypatch):
    """What the kernel says: 100 resident, 130 at its peak, and a tree of two processes."""
    says = SimpleNamespace(resident=100, peak=130, anonymous=60, exact=True)
    says.tree = [Usage("python", 50, 10, 20, 75, 100), Usage("worker", 30, 5, 7, 36, 60)]
    monkeypatch.setattr(usage, "resident_bytes", lambda: says.resident)
    monkeypatch.setattr(usage, "peak_resident_bytes", lambda: says.peak)
    monkeypatch.setattr(usage, "anonymous_bytes", lambda: says.anonymous)
    monkeypatch.setattr(usage, "of_tree", lambda: says.tree)
    monkeypatch.setattr(usage, "reset_peak", lambda: says.exact)
    monkeypatch.setattr(metering, "_cuda", lambda: None)
    return says


def test_what_others_hold_is_added_and_what_they_count_of_ours_is_taken_off(looked):
    with MemoryMeter(sample_seconds=1000) as meter:
        assert meter.held_bytes() == 100 - 20 + 42
        with meter.phase(Phase.update):
            pass

    assert meter.peaks[Phase.update] == Peaks(ram=130 - 20 + 42, pss=111)
    assert meter.peaks[Phase.start] == Peaks(ram=152, pss=111)
    assert meter.peak_bytes == 152
    assert meter.after_rollouts == []


def test_a_rollout_says_what_is_allocated_after_it_and_a_peak_is_no_less_than_what_is_held(looked):
    with MemoryMeter(sample_seconds=1000) as meter:
        looked.resident = 500
        with meter.phase(Phase.rollout):
            pass

    assert meter.after_rollouts == [60]
    assert meter.peaks[Phase.rollout].ram == 500 - 20 + 42


def test_without_a_high_water_mark_what_was_sampled_counts(looked):
    looked.exact, looked.peak = False, 10**9
    with MemoryMeter(sample_seconds=1000) as meter:
        with meter.phase(Phase.update):
            looked.resident = 300
            meter._fast_peak = 400
        looked.resident = 100

    assert meter.peaks[Phase.update].ram == 400 - 20 + 42


def test_a_tree_that_cannot_be_looked_at_changes_nothing(looked):
    looked.tree = []
    with MemoryMeter(sample_seconds=1000) as meter:
        assert meter.held_bytes() == 100
        assert meter.peaks == {}
        assert meter.peak_bytes == 100


class Device:
    """torch.cuda with its peaks."""

    resets = 0

    def reset_peak_memory_stats(self):
        self.resets += 1

    def max_memory_allocated(self):
        return 7

    def max_memory_reserved(self):
        return 9


def test_a_devices_peaks_are_kept_by_phase(looked, monkeypatch):
    device = Device()
    monkeypatch.setattr(metering, "_cuda", lambda: device)
    with MemoryMeter(sample_seconds=1000) as meter:
        for phase in (Phase.update, Phase.update, Phase.rollout):
            with meter.phase(phase):
                pass

    kept = meter.peaks[Phase.update]
    assert (kept.device_allocated, kept.device_reserved, device.resets) == (7, 9, 3)
    assert meter.metrics() == {
        "memory/held_bytes": 122.0,
        "memory/start_peak_bytes": 152.0,
        "memory/rollout_peak_bytes": 152.0,
        "memory/rollout_device_bytes": 9.0,
        "memory/update_peak_bytes": 152.0,
        "memory/update_device_bytes": 9.0,
    }
    assert meter.summary()["memory/peak_device_bytes"] == 9


def test_a_summary_is_what_was_held_beside_what_was_predicted(looked):
    meter = meter_of(50, [100] * 20, pss=40)

    assert meter.summary(SimpleNamespace(ram_bytes=75)) == {
        "memory/peak_bytes": 50,
        "memory/peak_pss_bytes": 40,
        "memory/growth_bytes_per_rollout": 0.0,
        "memory/growth": "steady (+0.0 KiB per rollout)",
        "memory/leak": False,
        "memory/update_peak_bytes": 50,
        "memory/rollout_peak_bytes": 49,
        "plan/ram_bytes": 75,
        "memory/predicted_over_measured": 1.5,
    }
    nothing = MemoryMeter().summary()
    assert (nothing["memory/peak_bytes"], nothing["memory/peak_pss_bytes"]) == (100, 0)
    assert "plan/ram_bytes" not in nothing


def meter_of(ram: int, after=(), **shares) -> MemoryMeter:
    peaks = {Phase.update: Peaks(ram, **shares), Phase.rollout: Peaks(ram - 1)}
    return MemoryMeter(peaks=peaks, after_rollouts=list(after))


def test_a_watchdog_is_silent_up_to_its_share_and_then_says_what_and_why(looked):
    looked.resident = 0
    watch = Watchdog(meter_of(950), 1000, "memory.budget_gib=1", 0.95, 2048)

    assert watch() == ""
    assert replace(watch, meter=meter_of(951))() == (
        "The run held 951 B, 95% of the 1000 B of memory.budget_gib=1 (planned: 2.0 KiB). Run "
        "python scripts/plan.py with the same words for ways to fit, or raise "
        "memory.watchdog_share=0.95."
    )
    leaking = meter_of(2000, [i * 8 * MIB for i in range(11)])
    assert " It grows: leak: +8,192.0 KiB per rollout. Run " in replace(watch, meter=leaking)()
    looked.resident = 960  # now, and in no phase before
    assert "The run held 960 B" in watch()


def test_a_watchdog_guards_the_machine_as_it_is(monkeypatch):
    limits = {None: Limit(8 * GIB, "physical memory"), 2: Limit(2 * GIB, "memory.budget_gib=2")}
    monkeypatch.setattr(watching, "find_limit", limits.get)
    memory = SimpleNamespace(budget_gib=None, watchdog_share=0.9)
    run = SimpleNamespace(memory=memory, hardware=SimpleNamespace(ram_gib=64))
    meter = meter_of(5)

    assert Watchdog.of(run, meter, SimpleNamespace(ram_bytes=77)) == Watchdog(
        meter, 8 * GIB, "physical memory", 0.9, 77
    )
    memory.budget_gib = 2
    assert Watchdog.of(run, meter) == Watchdog(meter, 2 * GIB, "memory.budget_gib=2", 0.9, 0)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1023, "1023 B"), (1024, "1.0 KiB"), (-2048, "-2.0 KiB"), (1024**2 - 1, "1024.0 KiB"),
        (1024**2, "1.0 MiB"), (1024**3, "1.0 GiB"), (1024**4, "1.0 TiB"),
        (5000 * 1024**4, "5,000.0 TiB"), (0.4, "0 B"),
    ],
)  # fmt: skip
def test_bytes_are_said_from_their_unit_on(count, words):
    assert human(count) == words
