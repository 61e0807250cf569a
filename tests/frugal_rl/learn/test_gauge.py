"""What an update holds per sample, where growth barely stands out."""

from itertools import cycle

import pytest
import torch

from frugal_rl.learn.gauge import SURE_BYTES, Gauge

MIB = 1 << 20


def gauged(monkeypatch, grown):
    """A gauge that finds, for each number of samples, these MiB one after the other."""
    gauge, asked = Gauge(torch.device("cpu")), []
    found = {count: cycle(values) for count, values in grown.items()}

    def growth(self, call):
        asked.append(call())
        return next(found[asked[-1]]) * MIB

    monkeypatch.setattr(Gauge, "growth", growth)
    return gauge, asked


def test_growth_that_does_not_stand_out_is_measured_again(monkeypatch):
    gauge, asked = gauged(monkeypatch, {8: [160, 146, 119, 118, 121], 32: [142, 139, 144, 140]})

    line = gauge.line(lambda count: lambda: count, 8, 32)

    assert asked == [8, 8, 32, 8, 8, 8, 32, 32, 32]
    assert line.per_sample == pytest.approx((144 - 118) * MIB / 24)
    assert line.fixed + 32 * line.per_sample == pytest.approx(144 * MIB)


def test_growth_that_stands_out_is_believed(monkeypatch):
    clear = 118 + SURE_BYTES // MIB
    gauge, asked = gauged(monkeypatch, {8: [160, 118], 32: [clear]})

    line = gauge.line(lambda count: lambda: count, 8, 32)

    assert asked == [8, 8, 32]
    assert line.per_sample == SURE_BYTES / 24
