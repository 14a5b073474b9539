"""Owns `burnish tokenizer rows`: the rows of a training step, or any row, as the model gets them."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from backend.commands.command import add_changes, add_json
from backend.commands.looking import add_subject, look_of
from backend.commands.screen import Screen

if TYPE_CHECKING:
    from backend.contract.rpc.training_data import TokenSequence, TrainingFeature, TrainingRows, TrainingStep
    from backend.inspect.batch_preview import Look

SHOWN = 20
_MARKS = {"padding": "_", "ignored": "-", "special": "s", "second": "2", "unknown": "?"}
"""Kind of a token → the sign before it; whatever else is learnt has a `+`."""


def add_rows(actions: Any) -> None:
    """The words after `burnish tokenizer rows`."""
    rows = actions.add_parser("rows", help="what the model gets in a step of training", allow_abbrev=False)
    add_subject(rows)
    which = rows.add_mutually_exclusive_group()
    which.add_argument("--step", metavar="K", type=int, help="the rows of optimizer step K, counted from 1")
    which.add_argument("--row", metavar="N", type=int, help="row N of the data, counted from 1")
    rows.add_argument("--limit", metavar="N", type=int, default=SHOWN, help=f"show at most N features ({SHOWN})")
    rows.add_argument("--tokens", action="store_true", help="show every token; --row does so anyway")
    add_changes(rows)
    add_json(rows)
    rows.set_defaults(execute_action=_rows)


def _rows(arguments: Namespace) -> int:
    import msgspec

    screen = Screen()
    try:
        look = look_of(arguments, screen)
    finally:
        screen.close()
    found, shown = _found(look, arguments)
    if arguments.json:
        print(msgspec.json.encode({"rows": found, "features": shown}).decode())
        return 0
    print("\n".join([*_head(found), *(_lines(found) if not shown else [])]))
    for feature in shown:
        print("\n".join(["", *_in_words(feature)]))
    return 0


def _found(look: "Look", arguments: Namespace) -> "tuple[TrainingRows, list[TrainingFeature]]":
    """The lines, and the features token by token where that is asked for: in JSON always."""
    from backend.inspect import shown_features

    if arguments.step is not None:
        found = shown_features.rows_of_step(look, arguments.step, 0, arguments.limit)
        wanted = [line.feature for line in found.lines]
    elif arguments.row is not None:
        features = look.features_of(arguments.row - 1)
        found = shown_features.rows_in_order(look, int(features[0]), len(features))
        wanted = features.tolist()
    else:
        found = shown_features.rows_in_order(look, 0, arguments.limit)
        wanted = [line.feature for line in found.lines]
    every = arguments.tokens or arguments.json or arguments.row is not None
    return found, [shown_features.shown_feature(look, one, arguments.step) for one in wanted] if every else []


def _head(found: "TrainingRows") -> list[str]:
    if found.step is None:
        steps = f", {found.steps:,} steps of training" if found.steps else ""
        return [f"{found.split}: {found.features:,} features of {found.rows:,} rows{steps}"]
    return [_step_in_words(found.step), *([found.step.differs] if found.step.differs else [])]


def _step_in_words(step: "TrainingStep") -> str:
    loss = f", loss {step.loss:.4f}" if step.loss is not None else ""
    shapes = " + ".join("×".join(map(str, shape)) for shape in step.shapes[:8])
    return (
        f"step {step.step:,} of {step.total_steps:,}, epoch {step.epoch}{loss}: {step.tokens:,} tokens in {shapes}, "
        f"{step.padding:.1%} padding"
    )


def _lines(found: "TrainingRows") -> list[str]:
    lines = [
        f"{line.place:<24} {line.tokens:>6} tokens  {f'{line.label}  ' if line.label else ''}{line.text}"
        for line in found.lines
    ]
    left = found.features - found.start - len(found.lines)
    return [*lines, f"and {left:,} more; --limit shows them"] if left > 0 else lines


def _in_words(feature: "TrainingFeature") -> list[str]:
    part = f", part {feature.part + 1} of {feature.parts}" if feature.parts > 1 else ""
    lines = [f"{feature.place}{part}"]
    lines += [f"  {name}: {text[:200]}" for name, text in feature.cells]
    lines += [f"  {name}: {text}" for name, text in feature.values]
    for sequence in feature.sequences:
        lines += [f"  {sequence.title}", *_tokens(sequence)]
    return lines


def _tokens(sequence: "TokenSequence") -> list[str]:
    borders = {border.place: border.title for border in sequence.borders}
    lines = []
    for place, (token, text, kind, label) in enumerate(
        zip(sequence.ids, sequence.texts, sequence.kinds, sequence.labels, strict=True)
    ):
        if place in borders:
            lines.append(f"  ── {borders[place]}")
        lines.append(f"  {place:>6} {token:>8} {_MARKS.get(kind, '+' if kind != 'token' else ' ')} {text!r}  {label}")
    return lines
