"""Rows that many samples share: read as indexing reads them, with gradients that repeat."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frugal_rl.observation.distinct import rows_at


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@given(
    st.integers(1, 9),
    st.lists(st.integers(0, 3), max_size=2),
    st.lists(st.integers(0, 4), min_size=1, max_size=2),
    st.integers(0, 1000),
)
def test_rows_and_their_gradients_are_those_of_an_index(rows, row_shape, index_shape, seed):
    random = torch.Generator().manual_seed(seed)
    index = torch.randint(0, rows, index_shape, generator=random)
    both = []
    for read in (rows_at, lambda values, index: values[index]):
        values = torch.arange(rows * 9.0)[: rows * 1].reshape(rows, *[1] * len(row_shape))
        values = values.repeat(1, *row_shape).requires_grad_()
        found = read(values, index)
        (found * torch.arange(found.numel()).reshape(found.shape)).sum().backward()
        both.append((found.detach(), values.grad))
    (ours, our_gradient), (theirs, their_gradient) = both
    assert torch.equal(ours, theirs)
    assert torch.equal(our_gradient, their_gradient)  # whole numbers: no sum rounds


def test_the_gradient_repeats_itself_with_several_threads(two_threads):
    torch.manual_seed(0)
    values = torch.randn(50, 64, requires_grad=True)
    index, weight = torch.randint(0, 50, (20_000,)), torch.randn(20_000, 64)

    def gradient():
        return torch.autograd.grad((rows_at(values, index) * weight).sum(), values)[0]

    first = gradient()
    assert all(torch.equal(gradient(), first) for _ in range(5))
