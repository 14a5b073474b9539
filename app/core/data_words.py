"""Owns how data that is being chosen reads on screen: one line at a glance, a column, what is left out."""

from app.core import wording
from backend.contract.data_choice import DataGlance, LeftOut, LengthGlance, SplitGlance
from backend.contract.queries import ColumnLook, DataPreview

SHOWN_LABELS = 8
SHOWN_SHARES = 3
_SPLITS = {"train": "training", "validation": "validation", "test": "test"}


def at_a_glance(preview: DataPreview, glance: DataGlance | None) -> str:
    """`2 400 rows · 2 labels (51 % / 49 %) · median 12 tokens · 3 unusable`."""
    parts = [wording.count(preview.row_count + preview.skipped_count, "row")]
    if preview.label_counts:
        parts.append(_labels(preview.label_counts))
    if glance is not None and glance.lengths is not None:
        parts.append(f"median {wording.grouped(round(glance.lengths.spread.p50))} {glance.lengths.unit}")
    unusable = unusable_count(preview, glance)
    if unusable:
        parts.append(f"{wording.grouped(unusable)} unusable")
    return " · ".join(parts)


def unusable_count(preview: DataPreview, glance: DataGlance | None) -> int:
    """Rows that cannot be used, of all splits as soon as these are known."""
    return sum(split.unusable for split in glance.splits) if glance is not None else preview.skipped_count


def _labels(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    shares = " / ".join(
        f"{count / total:.0%}".replace("%", "\u202f%") for count in list(counts.values())[:SHOWN_SHARES]
    )
    more = " …" if len(counts) > SHOWN_SHARES else ""
    words = "1 label" if len(counts) == 1 else f"{wording.grouped(len(counts))} labels"
    return f"{words} ({shares}{more})"


def label_line(counts: dict[str, int]) -> str:
    """`negative: 1 202 · positive: 1 198 and 3 more`."""
    shown = [f"{name}: {wording.grouped(count)}" for name, count in list(counts.items())[:SHOWN_LABELS]]
    more = len(counts) - len(shown)
    return f"{' · '.join(shown)}{f' and {more} more' if more > 0 else ''}"


def split_line(glance: DataGlance) -> str:
    """Every row accounted for: `2 160 for training, 240 for validation, 3 left out.`"""
    parts = [f"{wording.grouped(split.rows)} for {_SPLITS.get(split.split, split.split)}" for split in glance.splits]
    left = sum(split.unusable for split in glance.splits)
    return f"{', '.join(parts)}{f', {wording.grouped(left)} left out' if left else ''}."


def length_line(lengths: LengthGlance) -> str:
    """`Median 12, 95 % within 26, longest 62 tokens; limit 128.`"""
    spread = lengths.spread
    median, most, longest = (wording.grouped(round(value)) for value in (spread.p50, spread.p95, spread.max))
    said = f"Median {median}, 95\u202f% within {most}, longest {longest} {lengths.unit}"
    limit = f"; limit {wording.grouped(lengths.limit)}" if lengths.limit else ""
    return f"{said}{limit}."


def bin_words(lengths: LengthGlance, place: int) -> str:
    """One bar of the lengths: `12 to 17 tokens: 230 rows`."""
    first, last = round(place * lengths.width), round((place + 1) * lengths.width) - 1
    if place == len(lengths.counts) - 1:
        return f"{first} {lengths.unit} and more: {wording.count(lengths.counts[place], 'row')}"
    return f"{first} to {max(first, last)} {lengths.unit}: {wording.count(lengths.counts[place], 'row')}"


def skipped_line(preview: DataPreview, glance: DataGlance | None) -> str:
    """How many rows cannot be used, and the first of them."""
    count = unusable_count(preview, glance)
    first = (
        [f"{row.file}:{row.line} {row.reason}" for split in glance.splits for row in split.first_unusable]
        if glance
        else []
    )
    shown = "; ".join((first or preview.skipped)[:2])
    return f"{wording.count(count, 'row')} cannot be used and will be left out: {shown}{' …' if count > 2 else ''}"


def empty_lines(splits: list[SplitGlance]) -> list[str]:
    """Columns in use with empty cells, a sentence each."""
    return [
        f"{name} is empty in {wording.count(count, _SPLITS.get(split.split, split.split) + ' row')}."
        for split in splits
        for name, count in split.empty.items()
    ]


def repeated_line(splits: list[SplitGlance]) -> str:
    """How many training rows repeat an earlier one."""
    count = splits[0].repeated if splits else 0
    return f"{wording.count(count, 'training row')} repeat an earlier one." if count else ""


def left_out_line(left_out: list[LeftOut]) -> str:
    """The files of a drop that are no part of the data: `Left out: README.md (tells about the data) and 2 more.`"""
    if not left_out:
        return ""
    shown = ", ".join(f"{one.name} ({one.reason})" for one in left_out[:2])
    more = f" and {len(left_out) - 2} more" if len(left_out) > 2 else ""
    return f"Left out: {shown}{more}."


def passed_over_line(names: list[str]) -> str:
    """Files of a folder that are not read."""
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"Not read, though they lie in the folder: {', '.join(names[:3])}{more}."


def column_hint(look: ColumnLook) -> str:
    """What a column holds, for a tooltip: `text, about 21 words each, 3 empty; for example …`."""
    parts = [look.kind]
    if look.median_words is not None and look.median_words >= 2:
        parts.append(f"about {look.median_words:.0f} words each")
    if look.distinct is not None:
        parts.append(f"{wording.count(look.distinct, 'different value')} in {wording.count(look.rows, 'row')}")
    if look.empty:
        parts.append(f"{wording.grouped(look.empty)} empty")
    examples = f"; for example {' | '.join(look.examples)}" if look.examples else ""
    return f"{', '.join(parts)}{examples}"
