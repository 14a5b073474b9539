"""Settings and metrics of several runs side by side."""

import csv
import io
from dataclasses import replace

from backend.contract.run import events
from backend.contract.run.comparison import FinalMetrics, facts_of, metrics_table, settings_table

SPECS = {
    "one": {"name": "a", "training": {"learning_rate": 1e-3, "epochs": 3}, "data": {"columns": {"text": "t"}}},
    "two": {"name": "b", "training": {"learning_rate": 1e-4, "epochs": 3}, "data": {"columns": {}}},
}


def test_only_what_differs_is_shown():
    table = settings_table(SPECS)
    assert table.header == ("Setting", "one", "two")
    assert table.rows == (("training.learning_rate", "0.001", "0.0001"), ("data.columns.text", "t", "–"))


def test_what_a_run_found_is_compared_like_its_settings():
    started = events.RunStarted(time=1, name="n", task="t", model="m", device="cpu", versions={"torch": "2.12"})
    data = events.DataLoaded(time=2, split="train", rows=90, fingerprint="0123456789")
    resumed = events.RunResumed(time=3, attempt=2, from_step=1, versions={"torch": "2.13"})
    assert facts_of([started, data, resumed]) == {
        "found.device": "cpu", "found.versions.torch": "2.13", "found.train_rows": "90", "found.train_data": "01234567",
    }  # fmt: skip


def test_everything_is_shown_on_demand():
    keys = [row[0] for row in settings_table(SPECS, everything=True).rows]
    assert "training.epochs" in keys
    assert "name" not in keys


METRICS = metrics_table(
    [
        FinalMetrics([("run", "a, b"), ("note", "x | y")], {"accuracy": 0.123456789}, {}),
        FinalMetrics([("run", "c"), ("note", 'said "yes"')], {"accuracy": None, "f1": 1.0}, {}),
    ]
)


def test_an_interval_stands_beside_its_value_and_in_csv_in_columns_of_its_own():
    lines = [
        FinalMetrics([("run", "a")], {"accuracy": 0.8828}, {"accuracy": (0.8551, 0.9062)}),
        FinalMetrics([("run", "b")], {"accuracy": 0.7}, {}),
    ]
    assert [row[1] for row in metrics_table(lines).rows] == ["0.8828 (0.855 to 0.906)", "0.7"]
    table = metrics_table(lines, form="csv")
    assert table.header == ("run", "accuracy", "accuracy_low", "accuracy_high")
    assert table.rows == (("a", "0.8828", "0.8551", "0.9062"), ("b", "0.7", "–", "–"))


def test_a_rule_without_a_model_is_the_last_row_and_in_csv_a_column():
    rule = {"accuracy": 0.6}
    runs = [
        FinalMetrics([("run", "a"), ("state", "finished")], {"accuracy": 0.9}, {"accuracy": (0.8, 0.95)}, rule),
        FinalMetrics(
            [("run", "b"), ("state", "finished")], {"accuracy": 0.65}, {"accuracy": (0.55, 0.75)}, rule, {"accuracy"}
        ),
    ]
    assert metrics_table(runs).rows == (
        ("a", "finished", "0.9 (0.8 to 0.95)"),
        ("b", "finished", "0.65 (0.55 to 0.75), may be chance"),
        ("without a model", "–", "0.6"),
    )
    assert metrics_table(runs, form="csv").header[-1] == "accuracy_trivial"
    runs[1] = replace(runs[1], trivial={"accuracy": 0.7})
    assert [row[0] for row in metrics_table(runs).rows[2:]] == ["without a model (a)", "without a model (b)"]


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
