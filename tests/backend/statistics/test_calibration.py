"""A temperature against scipy's minimiser, reliability against scikit-learn's curve, and errors of rows that were not seen."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.calibration import calibration_curve

from backend.statistics import calibration, resampling
from backend.statistics.calibration import calibrate, calibration_error, fit_temperature, reliability, scaled


def draw_rows(rng, rows=2000, labels=3, overconfident=2.0):
    """Log-probabilities that are too sure by a factor, and labels drawn from those that are not."""
    outputs = rng.normal(0, 1.5, (rows, labels))
    actual = (special.softmax(outputs, axis=1).cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    return special.log_softmax(outputs * overconfident, axis=1), actual


def test_the_temperature_is_where_scipys_minimiser_ends():
    log_probabilities, actual = draw_rows(np.random.default_rng(1))

    def loss(temperature):
        return -special.log_softmax(log_probabilities / temperature, axis=1)[np.arange(2000), actual].mean()

    oracle: Any = optimize.minimize_scalar(loss, bounds=(0.1, 10), method="bounded", options={"xatol": 1e-9})
    assert fit_temperature(log_probabilities, actual) == pytest.approx(oracle.x, abs=1e-5)
    assert oracle.x == pytest.approx(2.0, rel=0.1)


def test_a_temperature_changes_no_answer():
    log_probabilities, _ = draw_rows(np.random.default_rng(2))
    for temperature in (0.05, 0.7, 3.0, 20.0):
        after = scaled(log_probabilities, temperature)
        assert (after.argmax(axis=1) == log_probabilities.argmax(axis=1)).all()
        assert np.exp(after).sum(axis=1) == pytest.approx(1)


def test_a_label_that_a_row_cannot_have_stays_impossible():
    log_probabilities, actual = draw_rows(np.random.default_rng(3), labels=4)
    log_probabilities[:500, 3] = -np.inf
    actual[:500] %= 3
    rest = fit_temperature(log_probabilities, actual)
    assert np.isfinite(rest)
    assert (scaled(log_probabilities, rest)[:500, 3] == -np.inf).all()


def test_rows_that_teach_nothing_end_at_the_bounds():
    sure = np.log(np.array([[0.9, 0.1]] * 60))
    assert fit_temperature(sure, np.zeros(60, np.int64)) == calibration.LOWEST
    assert fit_temperature(sure, np.ones(60, np.int64)) == calibration.HIGHEST


def test_reliability_is_the_curve_of_scikit_learn():
    log_probabilities, actual = draw_rows(np.random.default_rng(4))
    confidence, right = np.exp(log_probabilities.max(axis=1)), log_probabilities.argmax(axis=1) == actual
    accuracy, mean = calibration_curve(right, confidence, n_bins=10)
    bins = [one for one in reliability(confidence, right, intervals=True) if one.count]
    assert [one.accuracy for one in bins] == pytest.approx(accuracy.tolist())
    assert [one.confidence for one in bins] == pytest.approx(mean.tolist())
    assert all(one.interval and one.interval[0] <= (one.accuracy or 0) <= one.interval[1] for one in bins)


def test_the_error_after_is_of_rows_that_the_temperature_has_not_seen():
    log_probabilities, actual = draw_rows(np.random.default_rng(5))
    found = calibrate(log_probabilities, actual)
    assert found.parts == 5
    assert found.temperature == pytest.approx(2.0, rel=0.1)
    assert found.before.error == pytest.approx(calibration_error(found.before.bins))
    assert found.after.error == pytest.approx(calibration_error(found.after.bins))
    assert found.after.error < found.before.error / 2
    assert found.change_interval is not None
    assert found.change_interval[1] < 0
    # on the rows themselves the loss of the fitted temperature is the smallest there is
    own = -scaled(log_probabilities, found.temperature)[np.arange(2000), actual].mean()
    assert own < found.after.loss < found.before.loss


def test_rows_of_one_group_are_in_one_part():
    groups = np.repeat(np.arange(30), 10)
    for own in calibration._parts(300, groups):
        assert {bool(own[groups == group].all()) for group in groups[own]} == {True}


def test_a_calibrated_model_may_have_no_error_at_all():
    found = calibrate(*draw_rows(np.random.default_rng(7), overconfident=1.0))
    assert found.before.error > 0
    assert found.before.error_interval is not None
    assert found.before.error_interval[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("overconfident", [1.0, 1.25, 3.0])
def test_intervals_of_the_error_hold_the_truth(monkeypatch, overconfident):
    monkeypatch.setattr(resampling, "RESAMPLES", 300)
    monkeypatch.setattr(calibration, "_PERFECT", 200)
    rng, hits = np.random.default_rng(6), []
    everything = draw_rows(rng, 400_000, overconfident=overconfident)
    truth = calibration_error(
        reliability(np.exp(everything[0].max(axis=1)), everything[0].argmax(axis=1) == everything[1])
    )
    for _ in range(400):
        low, high = calibrate(*draw_rows(rng, 600, overconfident=overconfident)).before.error_interval or (0, 0)
        hits.append(low <= (truth or 0) <= high)
    assert 0.92 <= np.mean(hits) <= 0.99
