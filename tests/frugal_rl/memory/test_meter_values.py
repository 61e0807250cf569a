"""The meter's arithmetic, on a process tree and a device whose bytes the test has given."""

from types import SimpleNamespace

import pytest

from frugal_rl.memory import meter as metering
from frugal_rl.memory import usage
from frugal_rl.memory.meter import MemoryMeter, Peaks
from frugal_rl.memory.part import Phase
from frugal_rl.memory.usage import Usage

OWN = Usage("python", anonymous=500, shared=40, files=60, pss=700, resident=900)
WORKER = Usage("python", anonymous=200, shared=40, files=50, pss=300, resident=400)
TRACKER = Usage("tracker", anonymous=30, shared=0, files=20, pss=55, resident=60)


@pytest.fixture
def tree(monkeypatch):
    """A tree of three processes, of which this one is seen to hold 950 bytes and held 1,000."""
    monkeypatch.setattr(usage, "of_tree", lambda: [OWN, WORKER, TRACKER])
    monkeypatch.setattr(usage, "resident_bytes", lambda: 950)
    monkeypatch.setattr(usage, "peak_resident_bytes", lambda: 1000)
    monkeypatch.setattr(usage, "anonymous_bytes", lambda: 77)
    return monkeypatch


def test_a_phase_keeps_the_most_of_all_times_that_it_was_entered(tree):
    with MemoryMeter() as meter:
        for most in (1000, 3000, 2000):
            tree.setattr(usage, "peak_resident_bytes", lambda most=most: most)
            with meter.phase(Phase.update):
                pass

    assert meter.peaks[Phase.update] == Peaks(ram=3000 - 300 + 290, pss=1055)
    assert meter.peak_bytes == 2990
    assert meter.after_rollouts == []


class Device:
    """torch.cuda with given peaks, one of each per phase."""

    def __init__(self, peaks) -> None:
        self.peaks, self.resets = iter(peaks), 0

    def reset_peak_memory_stats(self) -> None:
        self.resets += 1
        self.now = next(self.peaks)

    def max_memory_allocated(self) -> int:
        return self.now[0]

    def max_memory_reserved(self) -> int:
        return self.now[1]


def test_a_device_is_asked_for_the_peak_of_each_phase(tree):
    device = Device([(3, 10), (7, 40), (5, 30)])
    tree.setattr(metering, "_cuda", lambda: device)
    with MemoryMeter() as meter:
        for phase in (Phase.rollout, Phase.update, Phase.update):
            with meter.phase(phase):
                pass
    plan = SimpleNamespace(ram_bytes=2 * meter.peak_bytes)

    assert device.resets == 3
    assert [(p.device_allocated, p.device_reserved) for p in meter.peaks.values()] == [
        (0, 0), (3, 10), (7, 40),
    ]  # fmt: skip
    assert meter.metrics()["memory/rollout_device_bytes"] == 10.0
    assert meter.summary(plan) == meter.summary() | {
        "memory/peak_device_bytes": 40,
        "plan/ram_bytes": plan.ram_bytes,
        "memory/predicted_over_measured": 2.0,
    }


def test_address_spaces_are_compared_by_kcmp(monkeypatch):
    asked = []
    libc = SimpleNamespace(syscall=lambda *call: asked.append(call) or call[1] - call[2])
    monkeypatch.setattr(usage, "KCMP", {"z80": 312})
    monkeypatch.setattr(usage.platform, "machine", lambda: "z80")
    monkeypatch.setattr(usage.ctypes, "CDLL", lambda name: libc)

    assert usage._same_memory(5, 5)
    assert not usage._same_memory(5, 6)
    assert asked == [(312, 5, 5, 1, 0, 0), (312, 5, 6, 1, 0, 0)]  # 1 is KCMP_VM
    monkeypatch.setattr(usage.platform, "machine", lambda: "pdp11")
    assert not usage._same_memory(5, 5)
