"""Formats a data report: the figures of each split as text, and the whole report as Markdown or JSON."""

import msgspec

from app.core import formatting
from app.core.backend_words import capitalize
from app.core.i18n import tr, trn
from backend.contract.rpc.data import ColumnReport, DataReport, NumberSummary, SplitReport

HEADINGS = (tr("Mean"), "50 %", "95 %", "99 %", f"{formatting.figure(99.9)} %", tr("Longest"))
SPLITS = {"train": tr("Training"), "validation": tr("Validation"), "test": tr("Test")}


def split_title(split: str) -> str:
    """A split's display name."""
    return SPLITS.get(split, capitalize(split))


def figure(value: float | None) -> str:
    """A length: an integer as it is, otherwise with one decimal."""
    if value is None:
        return "–"
    if abs(value) >= 1e6:
        return formatting.figure(value, ".3g")
    return formatting.group_digits(value, 0 if round(value, 1) % 1 == 0 else 1)


def columns(split: SplitReport) -> list[tuple[str, ColumnReport]]:
    """The columns with their facts, those used in the task first."""
    return sorted(split.columns.items(), key=lambda each: not each[1].part)


def measures(name: str, column: ColumnReport) -> list[tuple[str, list[str]]]:
    """(what is measured, figures under HEADINGS) of one column."""
    spreads = [(tr("words"), column.words), (tr("tokens"), column.tokens)]
    if column.kind == "number":
        spreads.append((tr("values"), column.numbers))
    return [(f"{name}, {what}", _cells(spread)) for what, spread in spreads if spread is not None]


def _cells(spread: NumberSummary) -> list[str]:
    values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.p99_9, spread.max)
    return [figure(value) for value in values]


def repetition_words(split: SplitReport) -> str:
    """The locations of the first repeated rows."""
    return (
        tr("for example {first_duplicates}", first_duplicates=" = ".join(split.first_duplicates[0]))
        if split.first_duplicates
        else ""
    )


def empty_cells(split: SplitReport) -> list[str]:
    """A sentence per column with empty cells."""
    return [
        f"{name}: " + trn("{count} empty cell", "{count} empty cells", one.empty)
        for name, one in split.columns.items()
        if one.empty
    ]


def unusable(split: SplitReport) -> list[str]:
    """Why rows cannot be used, and how many, most frequent first."""
    ordered = sorted(split.unusable_reasons.items(), key=lambda each: -each[1])
    return [f"{trn('{count} row', '{count} rows', count)}: {reason}" for reason, count in ordered]


def as_json(report: DataReport) -> str:
    """The output of `burnish data report --json`, indented."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def as_markdown(report: DataReport) -> str:
    """The report as a page for a README or an issue."""
    parts = [tr("# Data report"), *(f"*{note}*" for note in report.notes)]
    for name, split in report.splits.items():
        parts += _split(name, split, report.inputs)
    return "\n\n".join(parts) + "\n"


def _split(name: str, split: SplitReport, inputs: list[str]) -> list[str]:
    facts = [
        tr(
            "- {count} in {files}",
            count=trn("{count} row", "{count} rows", split.rows),
            files=", ".join(split.files) or tr("memory"),
        )
    ]
    facts.append(
        tr(
            "- {count} duplicating an earlier one ({inputs})",
            count=trn("{count} row", "{count} rows", split.duplicates),
            inputs=", ".join(inputs),
        )
    )
    if split.in_train is not None:
        facts.append(
            tr("- {count} also in the training data", count=trn("{count} row", "{count} rows", split.in_train))
        )
    facts += [f"- {sentence}" for sentence in empty_cells(split)]
    if split.unusable:
        facts += [tr("- unusable: {sentence}", sentence=sentence) for sentence in unusable(split)]
    parts = [f"## {split_title(name)}", "\n".join(facts)]
    if rows := [row for column, one in columns(split) for row in measures(column, one)]:
        parts.append(_table([tr("Length"), *HEADINGS], [[what, *cells] for what, cells in rows]))
    for column, one in columns(split):
        if one.labels:
            shares = [
                [label.label, formatting.group_digits(label.count), formatting.figure(label.ratio, ".1%")]
                for label in one.labels
            ]
            parts.append(_table([column, tr("Rows"), tr("Share")], shares))
    return parts


def _table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
