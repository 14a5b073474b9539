"""Settings and metrics of several runs side by side."""

import csv
import io

from backend.contract.run.comparison import metrics_table, settings_table

SPECS = {
    "one": {"name": "a", "training": {"learning_rate": 1e-3, "epochs": 3}, "data": {"columns": {"text": "t"}}},
    "two": {"name": "b", "training": {"learning_rate": 1e-4, "epochs": 3}, "data": {"columns": {}}},
}


def test_only_what_differs_is_shown():
    table = settings_table(SPECS)
    assert table.header == ("Setting", "one", "two")
    assert table.rows == (("training.learning_rate", "0.001", "0.0001"), ("data.columns.text", "t", "–"))


def test_everything_is_shown_on_demand():
    keys = [row[0] for row in settings_table(SPECS, everything=True).rows]
    assert "training.epochs" in keys
    assert "name" not in keys


METRICS = metrics_table(
    [
        ([("run", "a, b"), ("note", "x | y")], {"accuracy": 0.123456789}),
        ([("run", "c"), ("note", 'said "yes"')], {"accuracy": None, "f1": 1.0}),
    ]
)


def test_every_metric_that_any_run_has_is_a_column_of_the_csv():
    rows = list(csv.reader(io.StringIO(METRICS.format("csv"), newline="")))
    assert rows == [
        ["run", "note", "accuracy", "f1"],
        ["a, b", "x | y", "0.123457", ""],
        ["c", 'said "yes"', "", "1"],
    ]


def test_a_bar_in_a_cell_does_not_split_it_in_markdown():
    assert METRICS.format("markdown").splitlines()[:3] == [
        "| run | note | accuracy | f1 |",
        "| --- | --- | --- | --- |",
        "| a, b | x \\| y | 0.123457 | – |",
    ]
