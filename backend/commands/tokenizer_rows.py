"""Runs `burnish tokenizer rows` and `lengths`: training rows as the model receives them, and how long they are."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands.command import add_action, add_changes, add_json, requested_run
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError

if TYPE_CHECKING:
    from backend.contract.rpc.training_data import (
        LengthMeasure,
        TokenSequence,
        TrainingFeature,
        TrainingLengths,
        TrainingRows,
        TrainingStep,
    )
    from backend.inspect.batch_preview import BatchPreview

SPLITS = ("train", "validation", "test")
SHOWN = 20
SHOWN_WORST = 5
_MARKS = {"padding": "_", "ignored": "-", "special": "s", "second": "2", "unknown": "?"}
"""Kind of a token → the sign before it; whatever else is learnt has a `+`."""


def _add_subject(parser: ArgumentParser) -> None:
    """Add the arguments for the spec or run and its split."""
    parser.add_argument("subject", metavar="SPEC|RUN", help="a spec file (YAML), or the name or folder of a run")
    parser.add_argument("--split", choices=SPLITS, default="train", help="which split (default: train)")


def _open_preview(arguments: Namespace, screen: ProgressScreen) -> "BatchPreview":
    """Open what the arguments of `_add_subject` name. Raises InputError."""
    from backend.inspect import batch_preview
    from backend.preflight import resolve  # load the data room

    path = Path(arguments.subject)
    if path.suffix in (".yaml", ".yml") and not path.is_dir():
        return batch_preview.preview(resolve.read_spec(path, arguments.changes), screen.report, arguments.split)
    if arguments.changes:
        raise InputError(
            f"--set: {arguments.subject} is a run, whose steps are those of its own settings; name its spec.yaml instead"
        )
    return batch_preview.preview_run(requested_run(arguments.subject), screen.report, arguments.split)


def add_rows(actions: Any) -> None:
    """The arguments of `burnish tokenizer rows`."""
    rows = add_action(actions, "rows", "show what the model receives in a training step")
    _add_subject(rows)
    which = rows.add_mutually_exclusive_group()
    which.add_argument("--step", metavar="K", type=int, help="the rows of optimizer step K, counted from 1")
    which.add_argument("--row", metavar="N", type=int, help="row N of the data, counted from 1")
    rows.add_argument("--limit", metavar="N", type=int, default=SHOWN, help=f"show at most N features ({SHOWN})")
    rows.add_argument("--tokens", action="store_true", help="show every token (always on with --row)")
    add_changes(rows, "task.max_length=256")
    add_json(rows)
    rows.set_defaults(execute_action=_rows)


def _rows(arguments: Namespace) -> int:
    import msgspec

    screen = ProgressScreen()
    try:
        preview = _open_preview(arguments, screen)
    finally:
        screen.close()
    found, found_rows = _find_rows(preview, arguments)
    if arguments.json:
        print(msgspec.json.encode({"rows": found, "features": found_rows}).decode())
        return 0
    print("\n".join([*_head(found), *(_lines(found) if not found_rows else [])]))
    for feature in found_rows:
        print("\n".join(["", *_describe_feature(feature)]))
    return 0


def _find_rows(preview: "BatchPreview", arguments: Namespace) -> "tuple[TrainingRows, list[TrainingFeature]]":
    """The list of features, and the features token by token if requested (always in JSON)."""
    from backend.inspect import feature_view

    if arguments.step is not None:
        found = feature_view.rows_of_step(preview, arguments.step, arguments.limit)
        wanted = [line.feature for line in found.lines]
    elif arguments.row is not None:
        features = preview.features_of(arguments.row - 1)
        found = feature_view.rows_in_order(preview, int(features[0]), len(features))
        wanted = features.tolist()
    else:
        found = feature_view.rows_in_order(preview, 0, arguments.limit)
        wanted = [line.feature for line in found.lines]
    every = arguments.tokens or arguments.json or arguments.row is not None
    return found, [feature_view.view_feature(preview, one, arguments.step) for one in wanted] if every else []


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


def _describe_feature(feature: "TrainingFeature") -> list[str]:
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


def add_lengths(actions: Any) -> None:
    """The arguments of `burnish tokenizer lengths`."""
    lengths = add_action(actions, "lengths", "show how long the rows of a spec or a run are compared to its limits")
    _add_subject(lengths)
    add_changes(lengths, "task.max_length=256")
    add_json(lengths)
    lengths.set_defaults(execute_action=_lengths)


def _lengths(arguments: Namespace) -> int:
    import msgspec

    from backend.inspect.length_report import training_lengths  # loads the data room

    screen = ProgressScreen()
    try:
        found = training_lengths(_open_preview(arguments, screen), screen.report)
    finally:
        screen.close()
    print(msgspec.json.encode(found).decode() if arguments.json else _describe_lengths(found))
    return 0


def _describe_lengths(found: "TrainingLengths") -> str:
    lines = [
        f"{found.name}: {found.task_title.lower()}, tokens of {found.tokenizer}",
        f"{found.split}: {found.rows:,} rows, {found.features:,} features, {found.tokens:,} tokens",
    ]
    for measure in found.measures:
        lines += ["", measure.sentence, *_limits_table(measure)]
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


def _limits_table(measure: "LengthMeasure") -> list[str]:
    quantiles = "  ".join(f"{share} ≤ {tokens:,}" for share, tokens in measure.quantiles.items())
    lines = [f"  tokens: mean {measure.mean:.1f}  {quantiles}", f"  {'limit':>9}{'rows beyond':>14}{'share':>9}"]
    for loss in measure.losses:
        mark = "  (as set)" if loss.limit == measure.limit else ""
        lines.append(f"  {loss.limit:>9,}{loss.rows:>14,}{loss.share:>9.1%}{mark}")
    return lines
