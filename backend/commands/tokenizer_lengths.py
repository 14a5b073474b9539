"""Owns `burnish tokenizer lengths`: how long rows are against the limits, what is unknown, and what padding costs."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from backend.commands.command import add_changes, add_json
from backend.commands.looking import add_subject, look_of
from backend.commands.screen import Screen

if TYPE_CHECKING:
    from backend.contract.rpc.training_data import LengthMeasure, TrainingLengths

SHOWN_WORST = 5


def add_lengths(actions: Any) -> None:
    """The words after `burnish tokenizer lengths`."""
    lengths = actions.add_parser(
        "lengths", help="how long the rows of a spec or a run are against its limits", allow_abbrev=False
    )
    add_subject(lengths)
    add_changes(lengths)
    add_json(lengths)
    lengths.set_defaults(execute_action=_lengths)


def _lengths(arguments: Namespace) -> int:
    import msgspec

    from backend.inspect.shown_lengths import training_lengths  # loads the data room

    screen = Screen()
    try:
        found = training_lengths(look_of(arguments, screen), screen.report)
    finally:
        screen.close()
    print(msgspec.json.encode(found).decode() if arguments.json else _in_words(found))
    return 0


def _in_words(found: "TrainingLengths") -> str:
    lines = [
        f"{found.name}: {found.task_title.lower()}, tokens of {found.tokenizer}",
        f"{found.split}: {found.rows:,} rows, {found.features:,} features, {found.tokens:,} tokens",
    ]
    for measure in found.measures:
        lines += ["", measure.sentence, *_table(measure)]
        if measure.suggestion is not None:
            lines.append(f"  use it with --set {measure.setting}={measure.suggestion}")
    lines += ["", *found.notes, found.unknown.sentence]
    lines += [
        f"  {row.place}: {row.unknown} of {row.tokens} tokens  {row.text[:80]}"
        for row in found.unknown.worst[:SHOWN_WORST]
    ]
    if found.padding:
        lines += ["", f"padding in batches of {found.batch_size:,}"]
        lines += [
            f"  {rule.title:<32}{rule.padding:>7.1%}{'  (as set)' if rule.chosen else ''}" for rule in found.padding
        ]
    return "\n".join(lines)


def _table(measure: "LengthMeasure") -> list[str]:
    quantiles = "  ".join(f"{share} ≤ {tokens:,}" for share, tokens in measure.quantiles.items())
    lines = [f"  tokens: mean {measure.mean:.1f}  {quantiles}", f"  {'limit':>9}{'rows beyond':>14}{'share':>9}"]
    for loss in measure.losses:
        mark = "  (as set)" if loss.limit == measure.limit else ""
        lines.append(f"  {loss.limit:>9,}{loss.rows:>14,}{loss.share:>9.1%}{mark}")
    return lines
