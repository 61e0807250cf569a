"""Maps updated by crops equal maps computed whole."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from frugal_rl.errors import ConfigError
from mine_rl_npv.incremental import ConvolutionCache


@pytest.mark.parametrize(("kernel", "strides"), [(3, (1, 2, 2)), (5, (2, 2)), (3, (1, 1, 1))])
def test_sixty_updates_leave_the_maps_of_a_full_pass(kernel, strides):
    torch.manual_seed(0)
    widths = [5, 4, 6, 8]
    convolutions = [
        nn.Conv3d(widths[i], widths[i + 1], kernel, s, kernel // 2) for i, s in enumerate(strides)
    ]
    cache = ConvolutionCache(convolutions)
    volume = torch.randn(2, 5, 11, 9, 8)
    cache.restart(volume)
    for _ in range(60):
        env = int(torch.randint(2, ()))
        cell = tuple(int(torch.randint(n, ())) for n in (11, 9, 8))
        values = torch.randn(5)
        volume[(env, slice(None), *cell)] = values
        last = cache.update(env, cell, values)
    whole = ConvolutionCache(convolutions)
    expected = whole.restart(volume)
    assert_close(last[0], expected[env], rtol=1e-5, atol=1e-5)
    for kept, full in zip(cache.maps, whole.maps, strict=True):
        assert_close(kept, full, rtol=1e-5, atol=1e-5)


def test_a_network_with_whole_map_norms_is_refused():
    with pytest.raises(ConfigError, match=r"agent\.norm=none"):
        ConvolutionCache([nn.Conv3d(2, 2, 3)], [nn.GroupNorm(1, 2)])
