"""Owns what a person should read about data before training on it, a sentence each."""

from backend.contract.rpc.data import DataGlance, SplitGlance

IMBALANCED = 10
"""Times that the most frequent label has the rows of the least."""
MANY_OVERLAP = 0.005
_OUTSIDE = "O"
"""The tag of words that are no part of anything; tags are uneven by nature."""
_NAMES = {"train": "training", "validation": "validation", "test": "test"}


def warnings_of(found: DataGlance, can_weigh: bool) -> list[str]:
    """What is odd about the labels, the splits and the lengths; `can_weigh`: the task could weigh its labels."""
    train, *others = found.splits
    said = [_imbalance(train, can_weigh), _once(train)]
    for split in others:
        said += [_only_here(split), _overlap(split)]
    return [sentence for sentence in (*said, _cut(found)) if sentence]


def _imbalance(train: SplitGlance, can_weigh: bool) -> str:
    if len(train.labels) < 2 or train.label_count > 50 or _OUTSIDE in train.labels:
        return ""
    most, least = max(train.labels, key=train.labels.__getitem__), min(train.labels, key=train.labels.__getitem__)
    times = train.labels[most] / train.labels[least]
    if times < IMBALANCED:
        return ""
    way = "; class weights “balanced” make up for it" if can_weigh else ""
    return f"The labels are uneven: “{most}” has {times:,.0f} times the rows of “{least}”{way}."


def _once(train: SplitGlance) -> str:
    once = [label for label, count in train.labels.items() if count == 1]
    if not once or train.label_count >= 200 or _OUTSIDE in train.labels:
        return ""
    if len(once) == 1:
        return f"The label “{once[0]}” occurs in one training row only."
    return f"{len(once)} labels occur in one training row only, for example “{once[0]}”."


def _only_here(split: SplitGlance) -> str:
    if not split.only_here:
        return ""
    first = ", ".join(f"“{label}”" for label in split.only_here[:3])
    return f"The {_NAMES[split.split]} data has labels that the training data has not: {first}."


def _overlap(split: SplitGlance) -> str:
    if not split.in_train or split.in_train < MANY_OVERLAP * split.rows:
        return ""
    share = split.in_train / split.rows
    return (
        f"{split.in_train:,} of {split.rows:,} {_NAMES[split.split]} rows ({share:.1%}) are in the training data too; "
        "scores on them say little."
    )


def _cut(found: DataGlance) -> str:
    lengths = found.lengths
    if lengths is None or not lengths.over or lengths.limit is None:
        return ""
    share = lengths.over / lengths.rows
    return f"{share:.1%} of the rows are longer than the limit of {lengths.limit:,} {lengths.unit} and are cut there."
