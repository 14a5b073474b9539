"""The time of a run reads as people say it, with where it is known from and what speaks against it."""

import pytest

from app.core.draft import run_duration
from backend.contract.run.cost import Measurement, TimePart

NOW = 1_000_000.0


def measured(**values: object) -> Measurement:
    return Measurement(
        **{"time": NOW - 200, "mean_length": 20.0, "longest": 90, "steps": 31, "step_seconds": 0.4, **values}
    )


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [(3.0, 3.2, "3 s"), (240, 350, "4 to 6 min"), (5_000, 9_000, "1.5 to 2.5 h"), (200_000, 400_000, "2.5 to 4.5 d")],
)
def test_a_span_has_one_unit(least, most, words):
    assert run_duration.span(least, most) == words


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (TimePart("Training", None), "unknown"),
        (TimePart("Tokenizing", 0.0, "", 0.0, 0.0), "almost none"),
        (TimePart("Training", 60.0, "", 50.0, 70.0), "50 to 70 s"),
        (TimePart("Training", 65.0), "about 1 min 05 s"),
    ],
)
def test_a_part_says_how_sure_it_is(part, words):
    assert run_duration.of_part(part) == words


def test_a_part_says_what_it_is_made_of():
    assert (
        run_duration.basis_words(TimePart("Evaluations", 1.0, "4 × 1,600 rows", rows=1600, times=4))
        == "4 × 1\u202f600 rows"
    )
    assert run_duration.basis_words(TimePart("Predictions", 1.0, "1 rows", rows=1)) == "1 row"
    assert run_duration.basis_words(TimePart("Training", 1.0, "600 × 156 ms")) == "600 × 156 ms"


def test_it_says_where_the_time_is_known_from():
    assert run_duration.origin(None, NOW) == ""
    assert run_duration.origin(measured(), NOW) == "measured 3 minutes ago"
    assert run_duration.origin(measured(source="run", time=NOW - 7_300), NOW) == "from a run 2 hours ago"


def test_what_speaks_against_a_measurement_is_told():
    found = run_duration.details(measured(memory_mb=1200.0, others=0.4, weights=False), 900.0, NOW)
    assert found[:2] == [
        "Measured on this machine 3 minutes ago: 31 steps.",
        "Peak memory was 1.2 GB; the estimate was 900 MB.",
    ]
    assert "40%" in found[2]
    assert "weights" in found[3]
    assert len(run_duration.details(measured(), 900.0, NOW)) == 1


def test_memory_is_that_of_the_device_where_there_is_one():
    assert run_duration.peak_mb(measured(memory_mb=1200.0)) == 1200.0
    assert run_duration.peak_mb(measured(memory_mb=1200.0, device_memory_mb=4000.0)) == 4000.0
