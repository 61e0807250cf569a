"""Equally likely grade models."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from mine_rl_npv.data.realisations import gaussian_fields, realised_models, value_of_information
from mine_rl_npv.data.synthetic import Deposit, block_model


def test_realisations_honour_the_drillholes_and_the_histogram_and_differ_elsewhere():
    model = block_model(Deposit(15, 15, 6, seed=1))
    one, other = realised_models(model, 2, seed=7, spacing=5)
    holes = (model.cell[:, 0] % 5 == 2) & (model.cell[:, 1] % 5 == 2)
    for made in (one, other):
        assert_array_equal(made.columns["cu"][holes], model.columns["cu"][holes])
        quantiles = np.linspace(0.05, 0.95, 10)
        assert_allclose(
            np.quantile(made.columns["cu"], quantiles),
            np.quantile(model.columns["cu"], quantiles),
            atol=0.12,
        )
    assert not np.array_equal(one.columns["cu"], other.columns["cu"])
    assert_array_equal(one.columns["ton"], model.columns["ton"])


def test_realised_copper_and_molybdenum_stay_correlated():
    model = block_model(Deposit(15, 15, 6, seed=1))
    (made,) = realised_models(model, 1, seed=3)
    wanted = np.corrcoef(model.columns["cu"], model.columns["mo"])[0, 1]
    found = np.corrcoef(made.columns["cu"], made.columns["mo"])[0, 1]
    assert abs(found - wanted) < 0.25


def test_gaussian_fields_have_unit_variance_and_the_stated_covariance():
    fields = gaussian_fields((24, 24, 12), (6.0, 6.0, 3.0), 40, np.random.default_rng(0))
    assert_allclose(fields.var(), 1.0, atol=0.05)
    assert_allclose((fields[:, 3:] * fields[:, :-3]).mean(), np.exp(-0.75), atol=0.06)


def test_the_value_of_information_is_what_knowing_would_gain():
    npv = np.array([[10.0, 0.0], [4.0, 8.0]])
    figures = value_of_information(npv)
    assert figures["mean"] == 6.0
    assert figures["value_of_information"] == 9.0 - 6.0
