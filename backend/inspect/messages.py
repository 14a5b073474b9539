"""The sentences about data and its lengths: problems with labels and splits, the cost of limits, and better ones."""

from collections.abc import Sequence

import numpy as np

from backend.contract.heads import IGNORE, Head
from backend.contract.messages import message, plural
from backend.contract.rpc.data import DataSummary, SplitSummary
from backend.contract.rpc.training_data import Beyond, LengthMeasure, Loss
from backend.inspect.batch_preview import BatchPreview
from backend.inspect.row_lengths import remove_limits
from backend.tasks.task import Limit

IMBALANCED = 10
"""Times that the most frequent label has the rows of the least."""
MANY_OVERLAP = 0.005
_OUTSIDE = "O"
"""The tag of words outside any entity; tags are uneven by nature."""
_NAMES = {"train": "training", "validation": "validation", "test": "test"}
LITTLE = 0.005
"""A share of rows that people are ready to cut."""


# About data that the user chooses


def warnings_of(found: DataSummary, can_weigh: bool) -> list[str]:
    """Problems with the labels, the splits and the lengths; `can_weigh`: the task supports label weights."""
    train, *others = found.splits
    warnings = [_imbalance(train, can_weigh), _single_labels(train)]
    for split in others:
        warnings += [_unseen_labels(split), _repeated_rows(split)]
    return [sentence for sentence in (*warnings, _truncated_rows(found)) if sentence]


def _imbalance(train: SplitSummary, can_weigh: bool) -> str:
    if len(train.labels) < 2 or train.label_count > 50 or _OUTSIDE in train.labels:
        return ""
    most, least = max(train.labels, key=train.labels.__getitem__), min(train.labels, key=train.labels.__getitem__)
    times = train.labels[most] / train.labels[least]
    if times < IMBALANCED:
        return ""
    hint = message("; the class weights “balanced” compensate for this") if can_weigh else ""
    return message(
        "The labels are imbalanced: “{most}” has {times:,.0f} times as many rows as “{least}”{way}.",
        most=most,
        times=times,
        least=least,
        way=hint,
    )


def _single_labels(train: SplitSummary) -> str:
    once = [label for label, count in train.labels.items() if count == 1]
    if not once or train.label_count >= 200 or _OUTSIDE in train.labels:
        return ""
    if len(once) == 1:
        return message("The label “{once}” occurs in only one training row.", once=once[0])
    return message(
        "{once} labels occur in only one training row, for example “{once_2}”.", once=len(once), once_2=once[0]
    )


def _unseen_labels(split: SplitSummary) -> str:
    if not split.only_here:
        return ""
    first = ", ".join(f"“{label}”" for label in split.only_here[:3])
    return message(
        "The {split} data has labels that do not occur in the training data: {first}.",
        split=_NAMES[split.split],
        first=first,
    )


def _repeated_rows(split: SplitSummary) -> str:
    if not split.in_train or split.in_train < MANY_OVERLAP * split.rows:
        return ""
    share = split.in_train / split.rows
    return message(
        "{in_train:,} of {rows:,} {split} rows ({share:.1%}) also occur in the training data, so scores on "
        "them mean little.",
        in_train=split.in_train,
        rows=split.rows,
        split=_NAMES[split.split],
        share=share,
    )


def _truncated_rows(found: DataSummary) -> str:
    lengths = found.lengths
    if lengths is None or not lengths.over or lengths.limit is None:
        return ""
    share = lengths.over / lengths.rows
    return message(
        "{share:.1%} of the rows are longer than the limit of {limit:,} {unit} and are truncated.",
        share=share,
        limit=lengths.limit,
        unit=lengths.unit,
    )


# On lengths and limits


def percent(share: float) -> str:
    """`12 %`, `0.4 %`, `< 0.1 %`."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.1f} %"


def suggest_limit(beyond: Beyond, limit: int, losses: Sequence[Loss]) -> int | None:
    """The smallest common limit that truncates almost no row; None if almost none is cut now, or none is better."""
    now = next(one.share for one in losses if one.limit == limit)
    larger = [one for one in losses if one.limit > limit and one.share < now]
    if beyond != "cut" or not larger:
        return None
    wanted = LITTLE if now > LITTLE else 0.0
    return next((one.limit for one in larger if one.share <= wanted), larger[-1].limit)


def limit_sentence(bound: Limit, limit: int, losses: Sequence[Loss], better: int | None, longest: int) -> str:
    """What a limit does to the rows, and what another one would do."""
    share = next(one.share for one in losses if one.limit == limit)
    what = bound.what
    if bound.beyond == "blocks":
        return (
            message(
                "The {what} are joined and cut into blocks of {limit:,} tokens, so no text is lost; the "
                "longest has {longest:,}, and {share} are longer than a block.",
                what=what,
                limit=limit,
                longest=longest,
                share=percent(share),
            )
            if share
            else message(
                "The {what} are joined and cut into blocks of {limit:,} tokens, so no text is lost; the "
                "longest has {longest:,}.",
                what=what,
                limit=limit,
                longest=longest,
            )
        )
    if not share and bound.beyond == "windows":
        return message(
            "At {limit:,} tokens, none of the {what} needs a second window: the longest has {longest:,}.",
            what=what,
            limit=limit,
            longest=longest,
        )
    if not share:
        return message(
            "At {limit:,} tokens, none of the {what} loses {loses}: the longest has {longest:,}.",
            what=what,
            loses=bound.loses,
            limit=limit,
            longest=longest,
        )
    if bound.beyond == "windows":
        return message(
            "{share} of the {what} are longer than {limit:,} tokens and are read in several windows; no text is lost.",
            share=percent(share),
            what=what,
            limit=limit,
        )
    values = {"share": percent(share), "what": what, "loses": bound.loses, "limit": limit}
    if better is None:
        return message(
            "{share} of the {what} lose {loses} at {limit:,} tokens, which is all that the model can read.", **values
        )
    values["better"] = better
    if left := next(one.share for one in losses if one.limit == better):
        return message(
            "{share} of the {what} lose {loses} at {limit:,} tokens; {better:,} loses {left}.",
            left=percent(left),
            **values,
        )
    return message("{share} of the {what} lose {loses} at {limit:,} tokens; {better:,} loses none.", **values)


def unknown_sentence(token: str, tokens: int, unknown: int, rows: int, all_rows: int) -> str:
    """How much of the data the tokenizer has no piece for."""
    if not token:
        return message("This tokenizer has no unknown token: it splits anything it does not know into smaller pieces.")
    if not unknown:
        return message("Every token is known: {token} does not occur in {tokens:,} tokens.", token=token, tokens=tokens)
    return message(
        "{unknown:,} of {tokens:,} tokens ({unknown_2}) are {token}, in {rows:,} of {all_rows:,} rows.",
        unknown=unknown,
        tokens=tokens,
        unknown_2=percent(unknown / tokens),
        token=token,
        rows=rows,
        all_rows=all_rows,
    )


def limit_notes(preview: BatchPreview, measures: Sequence[LengthMeasure]) -> list[str]:
    """What happens to the rows besides truncation."""
    if measures[0].beyond == "windows":
        return [*_windows(preview), *_truncated_answers(preview)]
    if "segment" in preview.features.table.column_names:
        return _packing(preview)
    if measures[0].beyond == "blocks":
        return [
            message("{rows:,} rows make {features:,} blocks.", rows=len(preview.rows), features=len(preview.features))
        ]
    return _features_without_target(preview)


def _windows(preview: BatchPreview) -> list[str]:
    parts = np.bincount(preview.features.scalars["row"], minlength=len(preview.rows))
    several = parts[parts > 1]
    if not len(several):
        return []
    return [
        message(
            "{several:,} of {rows:,} rows are read in several windows, {several_2:.1f} on average: "
            "{features:,} features in total.",
            several=len(several),
            rows=len(preview.rows),
            several_2=several.mean(),
            features=len(preview.features),
        )
    ]


def _truncated_answers(preview: BatchPreview) -> list[str]:
    """Questions with an answer that no window contains in full, so that "no answer" is trained."""
    scalars = preview.features.scalars
    if "null_index" not in scalars:
        return []
    starts, row = scalars["start_positions"], scalars["row"]
    cut = np.zeros(len(preview.rows), dtype=bool)
    several = np.bincount(row, minlength=len(preview.rows)) > 1
    answered = (starts != scalars["null_index"]) & (starts != IGNORE)
    held = np.bincount(row[answered], minlength=len(preview.rows)) > 0
    cut[several & ~held] = True
    count = _count_with_answer(preview, np.flatnonzero(cut))
    if not count:
        return []
    return [
        plural(
            '{count:,} answer does not fit completely into any window, so it is trained as "no '
            'answer"; a larger task.doc_stride or task.max_length keeps it whole.',
            '{count:,} answers do not fit completely into any window, so they are trained as "no '
            'answer"; a larger task.doc_stride or task.max_length keeps them whole.',
            count,
        )
    ]


def _count_with_answer(preview: BatchPreview, rows: np.ndarray) -> int:
    """How many of these rows have an answer in their context, found by encoding them again without a limit."""
    if not len(rows):
        return 0
    free = remove_limits(preview.session)
    found = free.typed_features(preview.rows.take(rows, "whole"))
    starts = found.scalars["start_positions"]
    return int(np.count_nonzero((starts != found.scalars["null_index"]) & (starts != IGNORE)))


def _packing(preview: BatchPreview) -> list[str]:
    segments = preview.features.lists["segment"]
    examples = sum(int(one[-1]) for one in segments.take(np.arange(len(preview.features))))
    full = preview.features.lengths.mean() / preview.session.facts["max_length"]
    return [
        message(
            "{examples:,} examples are packed into {features:,} features, {full} full.",
            examples=examples,
            features=len(preview.features),
            full=percent(float(full)),
        )
    ]


def _features_without_target(preview: BatchPreview) -> list[str]:
    """Features without any target: a long prompt may leave no room for the answer."""
    if preview.session.task.head is not Head.CAUSAL_LM or "labels" not in preview.features.lists:
        return []
    empty = 0
    for batch in preview.features.table.to_batches(max_chunksize=1000):
        labels = batch["labels"]
        known = np.concatenate([[0], np.cumsum(labels.flatten().to_numpy() != IGNORE)])
        offsets = labels.offsets.to_numpy() - labels.offsets[0].as_py()
        begins, ends = offsets[:-1], offsets[1:]
        # The first token is never a target, because nothing precedes it.
        empty += int(np.count_nonzero(known[ends] == known[np.minimum(begins + 1, ends)]))
    if not empty:
        return []
    return [
        message(
            "{empty:,} of {features:,} features have no tokens to learn from, so they do not count.",
            empty=empty,
            features=len(preview.features),
        )
    ]
