"""A data report in words, from the figures of a real table."""

import json

import msgspec
import pytest

from app.core.draft import data_report_text
from backend.contract.rpc.data import ColumnReport, DataReport, LabelShare, NumberSummary, SplitReport


def spread(mean: float, longest: float) -> NumberSummary:
    return NumberSummary(count=3, mean=mean, std=1.0, min=1, p50=2, p95=3, p99=3, p99_9=3, max=longest)


REPORT = DataReport(
    splits={
        "train": SplitReport(
            files=["/data/train.csv"],
            rows=2400,
            columns={
                "text": ColumnReport(
                    part="text", kind="text", empty=2, words=spread(11.94, 62), tokens=spread(17.2, 91)
                ),
                "label": ColumnReport(
                    part="label",
                    kind="label",
                    empty=0,
                    distinct=2,
                    labels=[LabelShare("yes|no", 1202, 0.5008), LabelShare("positive", 1198, 0.4992)],
                ),
            },
            duplicates=11,
            first_duplicates=[["train.csv:1045", "train.csv:1771"]],
            unusable=3,
            unusable_reasons={"the label is empty": 1, "the text is empty": 2},
        ),
        "validation": SplitReport(files=[], rows=600, columns={}, duplicates=0, in_train=7),
    },
    inputs=["text"],
    notes=["Tokens were not counted."],
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12, "12"), (11.94, "11.9"), (50.04, "50"), (1234567, "1.23e+06"), (1234, "1\u202f234"), (None, "–")],
)
def test_figures_are_short(value: float | None, shown: str):
    assert data_report_text.figure(value) == shown


def test_json_is_what_the_command_line_prints():
    assert json.loads(data_report_text.as_json(REPORT)) == msgspec.to_builtins(REPORT)


def test_markdown_holds_lengths_as_a_table():
    assert "| text, words | 11.9 | 2 | 3 | 3 | 3 | 62 |" in data_report_text.as_markdown(REPORT)


def test_a_label_with_a_bar_does_not_break_the_table():
    assert "| yes\\|no | 1\u202f202 | 50.1% |" in data_report_text.as_markdown(REPORT)


def test_markdown_tells_of_the_overlap_and_of_what_cannot_be_used():
    told = data_report_text.as_markdown(REPORT)
    assert "- 7 rows also in the training data" in told
    assert told.index("2 rows: the text is empty") < told.index("1 row: the label is empty")


def test_empty_cells_are_counted_by_column():
    assert data_report_text.empty_cells(REPORT.splits["train"]) == ["text: 2 empty cells"]


def test_columns_of_the_task_come_first():
    label = REPORT.splits["train"].columns["label"]
    split = SplitReport(
        files=[], rows=1, duplicates=0, columns={"source": msgspec.structs.replace(label, part=""), "y": label}
    )
    assert [name for name, _ in data_report_text.columns(split)] == ["y", "source"]
