"""Describes the chosen data in words: one summary line, each column, what is skipped."""

from app.core import formatting
from app.core.backend_words import SPLITS, translate_word
from app.core.i18n import tr, trn
from backend.contract.rpc.data import ColumnSummary, DataPreview, DataSummary, IgnoredFile, LengthSummary, SplitSummary

SHOWN_LABELS = 8
SHOWN_SHARES = 3


def at_a_glance(preview: DataPreview, glance: DataSummary | None) -> str:
    """`2 400 rows · 2 labels (51 % / 49 %) · median 12 tokens · 3 unusable`."""
    parts = [trn("{count} row", "{count} rows", preview.row_count + preview.skipped_count)]
    if counts := usable_labels(preview, glance):
        parts.append(_labels(counts))
    if glance is not None and glance.lengths is not None:
        parts.append(
            tr(
                "median {p50} {unit}",
                p50=formatting.group_digits(round(glance.lengths.spread.p50)),
                unit=translate_word(glance.lengths.unit),
            )
        )
    unusable = unusable_count(preview, glance)
    if unusable:
        parts.append(tr("{unusable} unusable", unusable=formatting.group_digits(unusable)))
    return " · ".join(parts)


def unusable_count(preview: DataPreview, glance: DataSummary | None) -> int:
    """Unusable rows, of all splits once these are known."""
    return sum(split.unusable for split in glance.splits) if glance is not None else preview.skipped_count


def usable_labels(preview: DataPreview, glance: DataSummary | None) -> dict[str, int]:
    """Label → rows of the file, most frequent first; only usable ones once these are known.

    A split taken from the training file is included; one from its own file is not.
    """
    if not preview.label_counts or glance is None or not any(split.labels for split in glance.splits):
        return preview.label_counts
    left = preview.row_count + preview.skipped_count
    counts: dict[str, int] = {}
    for place, split in enumerate(glance.splits):
        left -= split.rows + split.unusable
        if place and left < 0:
            break
        for label, count in split.labels.items():
            counts[label] = counts.get(label, 0) + count
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def _labels(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    shares = " / ".join(
        f"{count / total:.0%}".replace("%", "\u202f%") for count in list(counts.values())[:SHOWN_SHARES]
    )
    more = " …" if len(counts) > SHOWN_SHARES else ""
    words = tr("1 label") if len(counts) == 1 else tr("{number} labels", number=formatting.group_digits(len(counts)))
    return f"{words} ({shares}{more})"


def label_line(counts: dict[str, int]) -> str:
    """`negative: 1 202 · positive: 1 198 and 3 more`."""
    counted = [f"{name}: {formatting.group_digits(count)}" for name, count in list(counts.items())[:SHOWN_LABELS]]
    more = len(counts) - len(counted)
    return " · ".join(counted) + (tr(" and {number} more", number=more) if more > 0 else "")


def split_line(glance: DataSummary) -> str:
    """Every row counted: `2 160 for training, 240 for validation, 3 left out.`"""
    parts = [
        tr("{rows} for {split}", rows=formatting.group_digits(split.rows), split=SPLITS.get(split.split, split.split))
        for split in glance.splits
    ]
    left = sum(split.unusable for split in glance.splits)
    return ", ".join([*parts, *([tr("{rows} skipped", rows=formatting.group_digits(left))] if left else [])]) + "."


def length_line(lengths: LengthSummary) -> str:
    """`Median 12, 95 % within 26, longest 62 tokens; limit 128.`"""
    spread = lengths.spread
    median, most, longest = (formatting.group_digits(round(value)) for value in (spread.p50, spread.p95, spread.max))
    words = tr(
        "Median {median}, 95% within {most}, longest {longest} {unit}",
        median=median,
        most=most,
        longest=longest,
        unit=translate_word(lengths.unit),
    )
    limit = tr("; limit {limit}", limit=formatting.group_digits(lengths.limit)) if lengths.limit else ""
    return f"{words}{limit}."


def bin_words(lengths: LengthSummary, place: int) -> str:
    """One bar of the length histogram: `12 to 17 tokens: 230 rows`."""
    first, last = round(place * lengths.width), round((place + 1) * lengths.width) - 1
    if place == len(lengths.counts) - 1:
        return tr(
            "{first} or more {unit}: {count}",
            first=first,
            unit=translate_word(lengths.unit),
            count=trn("{count} row", "{count} rows", lengths.counts[place]),
        )
    return tr(
        "{first} to {max} {unit}: {count}",
        first=first,
        max=max(first, last),
        unit=translate_word(lengths.unit),
        count=trn("{count} row", "{count} rows", lengths.counts[place]),
    )


def skipped_line(preview: DataPreview, glance: DataSummary | None) -> str:
    """How many rows cannot be used, and the first one."""
    count = unusable_count(preview, glance)
    first = (
        [f"{row.file}:{row.line}: {row.reason}" for split in glance.splits for row in split.first_unusable]
        if glance
        else []
    )
    examples = "; ".join((first or preview.skipped)[:2])
    return tr(
        "{count} can't be used and will be skipped: {examples}{value}",
        count=trn("{count} row", "{count} rows", count),
        examples=examples,
        value=" …" if count > 2 else "",
    )


def empty_lines(splits: list[SplitSummary]) -> list[str]:
    """Used columns with empty cells, one sentence each."""
    return [
        tr(
            "{name} is empty in {count} for {split}.",
            name=name,
            count=trn("{count} row", "{count} rows", count),
            split=SPLITS.get(split.split, split.split),
        )
        for split in splits
        for name, count in split.empty.items()
    ]


def repeated_line(splits: list[SplitSummary]) -> str:
    """How many training rows repeat an earlier one."""
    count = splits[0].repeated if splits else 0
    return (
        tr(
            "Duplicates in the training data: {count}.",
            count=trn("{count} training row", "{count} training rows", count),
        )
        if count
        else ""
    )


def left_out_line(left_out: list[IgnoredFile]) -> str:
    """The dropped files that are not part of the data: `Left out: README.md (describes the data) and 2 more.`"""
    if not left_out:
        return ""
    examples = ", ".join(f"{one.name} ({one.reason})" for one in left_out[:2])
    more = tr(" and {number} more", number=len(left_out) - 2) if len(left_out) > 2 else ""
    return tr("Skipped: {examples}{more}.", examples=examples, more=more)


def passed_over_line(names: list[str]) -> str:
    """Files of a folder that are not read."""
    if not names:
        return ""
    more = tr(" and {number} more", number=len(names) - 3) if len(names) > 3 else ""
    return tr("Files in the folder that are not read: {names}{more}.", names=", ".join(names[:3]), more=more)


def column_hint(column: ColumnSummary) -> str:
    """What a column contains, for a tooltip: `text, about 21 words each, 3 empty; for example …`."""
    parts = [translate_word(column.kind)]
    if column.median_words is not None and column.median_words >= 2:
        parts.append(tr("about {median_words:.0f} words each", median_words=column.median_words))
    if column.distinct is not None:
        parts.append(
            tr(
                "{count} in {count_2}",
                count=trn("{count} unique value", "{count} unique values", column.distinct),
                count_2=trn("{count} row", "{count} rows", column.rows),
            )
        )
    if column.empty:
        parts.append(tr("{empty} empty", empty=formatting.group_digits(column.empty)))
    examples = tr("; for example: {examples}", examples=" | ".join(column.examples)) if column.examples else ""
    return f"{', '.join(parts)}{examples}"
