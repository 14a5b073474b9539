"""A tokenizer's steps on screen: what a step changed in the text, and how the model found its pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from app.core.i18n import figure, tr, trn
from app.core.text.invisible_characters import SPACES, visible
from backend.contract.tokens.steps import Step, StepPart, WordTrace
from backend.contract.tokens.vocabulary import MergeNode

STAGES = {
    "words": tr("Before"),
    "added_tokens": tr("Added tokens"),
    "normalizer": tr("Normalizer"),
    "pre_tokenizer": tr("Pre-tokenizer"),
    "model": tr("Model"),
    "post_processor": tr("Post-processor"),
}
MAX_COMPARED = 1_000
"""Characters whose changes are looked for one by one; of a longer text only the ends that are equal are found."""
MAX_PARTS = 300
MAX_MERGES = 60


@dataclass(frozen=True)
class Run:
    """A stretch of text, and whether a step added it."""

    text: str
    changed: bool = False


def changes(before: str, after: str) -> list[Run]:
    """The text after a step; additions and replacements are marked, and removals leave an empty mark."""
    if max(len(before), len(after)) > MAX_COMPARED:
        return _between_ends(before, after)
    stretches = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [Run(after[begin:end], kind != "equal") for kind, _, _, begin, end in stretches]


def _between_ends(before: str, after: str) -> list[Run]:
    head = _count_equal(before, after)
    foot = _count_equal(before[head:][::-1], after[head:][::-1])
    parts = [Run(after[:head]), Run(after[head : len(after) - foot], True), Run(after[len(after) - foot :])]
    return [run for run in parts if run.text]


def _count_equal(one: str, other: str) -> int:
    """Characters from the beginning up to which both are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, pair in pairs if pair[0] != pair[1]), min(len(one), len(other)))


def text_after(parts: Sequence[StepPart]) -> str:
    """The whole text after a step."""
    return "".join(part.text for part in parts)


def outcome(step: Step) -> str:
    """`12 parts`, `unchanged`."""
    if not step.known:
        return tr("unknown")
    if not step.changed:
        return "unchanged"
    if step.stage in ("normalizer", "added_tokens"):
        return "changed"
    return trn("{count} part", "{count} parts", len(step.parts))


Row = tuple[str, str, str]
"""What happened, what came of it, and a number."""


def word_row(trace: WordTrace) -> Row:
    """A word with its pieces and ids."""
    return visible(trace.word), "  ".join(map(visible, trace.pieces)), ", ".join(map(str, trace.ids))


def trace_rows(trace: WordTrace) -> list[Row]:
    """How the model found the pieces of one word, one line each."""
    rows: list[Row] = [("", trace.sentence, "")] if trace.sentence else []
    if trace.symbols:
        rows.append((tr("starts with"), "  ".join(map(visible, trace.symbols)), ""))
    rows += _merge_rows(trace)
    rows += [_choice_row(trace, place) for place in range(len(trace.choices))]
    if trace.score is not None:
        rows.append((tr("best split"), "  ".join(map(visible, trace.pieces)), figure(trace.score, ".3f")))
    if trace.runner_up and trace.runner_up_score is not None:
        rows.append(
            (tr("second-best split"), "  ".join(map(visible, trace.runner_up)), figure(trace.runner_up_score, ".3f"))
        )
    return rows


def _merge_rows(trace: WordTrace) -> list[Row]:
    symbols, rows = list(trace.symbols), []
    for number, merge in enumerate(trace.merges, start=1):
        if symbols[merge.place : merge.place + 2] == [merge.left, merge.right]:
            symbols[merge.place : merge.place + 2] = [merge.left + merge.right]
        if number <= MAX_MERGES:
            shown = f"{visible(merge.left)} + {visible(merge.right)}   →   {'  '.join(map(visible, symbols))}"
            rows.append((tr("merge {number}", number=number), shown, tr("rank {rank:,}", rank=merge.rank)))
    left = len(trace.merges) - MAX_MERGES
    return [*rows, ("", tr("and {left:,} more merges", left=left), "")] if left > 0 else rows


def _choice_row(trace: WordTrace, place: int) -> Row:
    choice = trace.choices[place]
    where = f"{choice.start}–{choice.end}{' ✓' if choice.taken else ''}"
    number = "" if choice.log_probability is None else figure(choice.log_probability, ".3f")
    best = "" if choice.best is None else tr("   best sum so far {best:.3f}", best=choice.best)
    return where, f"{visible(choice.piece)}{best}", number


def merge_row(part: MergeNode) -> tuple[str, str]:
    """A piece in the tree of merges: its text, unless that is only part of a character, and its merge."""
    text = part.text if part.text and "\ufffd" not in part.text else part.piece
    return text.translate(SPACES), "" if part.rank is None else tr("merge {rank:,}", rank=part.rank)
