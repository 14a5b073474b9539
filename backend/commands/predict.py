"""Runs `burnish evaluate`, `predict`, `generate` and `slices`: a trained model on new rows, or on a prompt."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands import consents
from backend.commands.command import (
    Command,
    add_changes,
    add_consents,
    add_conversion,
    add_json,
    requested_group,
    requested_run,
)
from backend.commands.export import SUFFIXES
from backend.commands.follow import format_metrics, number, sure_number
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError
from backend.contract.metrics import SMALLER, beats_rule, spreads
from backend.contract.output_file import check_appended
from backend.contract.places import runs_folder
from backend.contract.run.folder import RunFolder, find_run
from backend.contract.run.group import RunGroup
from backend.contract.safe_files import user_path
from backend.contract.safe_text import one_line

if TYPE_CHECKING:
    from backend.contract.rpc.predictions import SliceReport
    from backend.inference.ensemble import GroupResult
    from backend.inference.predict import EvaluationResult

SHOWN, LISTED = 5, 100
"""Skipped rows that are named in words, and in JSON."""
_DECODING = {
    "max_new_tokens": "maximum number of tokens to generate",
    "min_new_tokens": "minimum number of tokens to generate",
    "temperature": "with --sample: below 1 is more conservative, above 1 more random",
    "top_k": "with --sample: choose from this many most likely tokens",
    "top_p": "with --sample: choose from the most likely tokens whose probabilities add up to this",
    "num_beams": "number of beams; above 1 uses beam search",
    "length_penalty": "with beams: above 0 favors longer texts, below 0 shorter ones",
    "early_stopping": "with beams: true stops as soon as there are enough complete texts",
    "repetition_penalty": "above 1 makes tokens that were already used less likely",
    "no_repeat_ngram_size": "generate no group of this many tokens twice",
}
"""The settings of generation that the tasks have under the same name, with their help; `sample` is a switch."""


def _add_shared_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--data", metavar="FILE", type=Path, required=True, help="the data file")
    _target_arguments(parser)


def _target_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="RUN_OR_MODEL",
        help="name or folder of a run or group, a checkpoint or model folder, or a Hub ID",
    )
    parser.add_argument("--task", metavar="NAME", help="the task, if the model does not specify it")
    add_changes(parser, "hardware.device=cpu")
    add_consents(parser)
    add_conversion(parser)
    add_json(parser)


def _predict_arguments(parser: ArgumentParser) -> None:
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--data", metavar="FILE", type=Path, help="the data file")
    rows.add_argument(
        "--input",
        metavar="JSON",
        action="append",
        help='a single row, such as \'{"text": "…"}\'; the answer is printed as a line of JSON',
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="with --data: the CSV file to write (default for a run: predictions_FILE.csv in its folder)",
    )
    parser.add_argument(
        "--append",
        metavar="FILE",
        type=Path,
        help="also add every answered --input to this CSV file, creating it if needed",
    )
    parser.add_argument(
        "--right",
        metavar="TEXT",
        action="append",
        default=[],
        help="with --append: the correct answer of each --input, in order, to make training rows",
    )
    parser.add_argument(
        "--glue",
        metavar="FILE",
        type=Path,
        help="with --data: also write index<TAB>prediction for the GLUE server",
    )
    _target_arguments(parser)


def _evaluate(arguments: Namespace) -> int:
    if (group := requested_group(arguments.target)) is not None:
        return _evaluate_group(group, arguments)
    consents.agree_if_asked(arguments, arguments.target)
    consents.convert_if_asked(arguments, arguments.target)
    screen = ProgressScreen()
    from backend.inference import predict  # loads the framework, which takes seconds

    try:
        result = predict.evaluate(
            arguments.target,
            arguments.data,
            arguments.task,
            arguments.changes,
            screen.report("evaluating"),
            lambda stage: screen.line(stage.lower()),
        )
    finally:
        screen.close()
    _print_notes(result)
    if arguments.json:
        _print_json({**_measured(result), "rows": result.rows, "timing": result.timing})
        return 0
    _print_metrics(result)
    print(_format_result(result))
    return 0


def _predict(arguments: Namespace) -> int:
    if (group := requested_group(arguments.target)) is not None:
        return _predict_group(group, arguments)
    consents.agree_if_asked(arguments, arguments.target)
    consents.convert_if_asked(arguments, arguments.target)
    if arguments.input:
        return _answer(arguments)
    output, parquet = (arguments.output, None) if arguments.output else _run_files(arguments)
    screen = ProgressScreen()
    from backend.inference import predict  # loads the framework, which takes seconds

    try:
        result = predict.predict(
            arguments.target,
            arguments.data,
            output,
            arguments.task,
            arguments.changes,
            screen.report("predicting"),
            arguments.glue,
            parquet,
            lambda stage: screen.line(stage.lower()),
        )
    finally:
        screen.close()
    _print_notes(result)
    if arguments.json:
        values = {
            "output": str(result.output),
            "rows": result.rows,
            "skipped": len(result.skipped),
            "skipped_rows": [f"{one.place}: {one.reason}" for one in result.skipped[:LISTED]],
            **_measured(result),
            "timing": result.timing,
        }
        _print_json(values)
        return 0
    _print_metrics(result)
    print(_format_result(result))
    print(result.output)
    return 0


def _run_files(arguments: Namespace) -> tuple[Path, Path]:
    """The CSV file and its Parquet twin in the run's folder, where the window looks for them."""
    run = find_run(arguments.target, runs_folder())
    if run is None:
        raise InputError("--output: name the CSV file to write; only a run has a folder for it")
    return _own_files(run.main_folder(), arguments.data)


def _own_files(folder: RunFolder, data: Path) -> tuple[Path, Path]:
    from backend.inference.predictions_file import free_name

    name = free_name(folder, data)
    return folder.predictions(name), folder.predictions(name, "parquet")


# Groups


def _evaluate_group(group: RunGroup, arguments: Namespace) -> int:
    _agree(group, arguments)
    screen = ProgressScreen()
    from backend.inference import ensemble  # loads the framework, which takes seconds

    try:
        report, say = screen.report("evaluating"), lambda stage: screen.line(stage.lower())
        result = ensemble.evaluate(group, arguments.data, arguments.changes, report, say)
    finally:
        screen.close()
    return _print_group(result, arguments.json)


def _predict_group(group: RunGroup, arguments: Namespace) -> int:
    _agree(group, arguments)
    for option, value in (("--input", arguments.input), ("--glue", arguments.glue)):
        if value:
            raise InputError("{option}: name one of the runs of {name} for this", option=option, name=group.name)
    output, parquet = (
        (arguments.output, None) if arguments.output else _own_files(RunFolder(group.path), arguments.data)
    )
    screen = ProgressScreen()
    from backend.inference import ensemble  # loads the framework, which takes seconds

    try:
        report, say = screen.report("predicting"), lambda stage: screen.line(stage.lower())
        result = ensemble.predict(group, arguments.data, output, arguments.changes, report, parquet, say)
    finally:
        screen.close()
    return _print_group(result, arguments.json)


def _agree(group: RunGroup, arguments: Namespace) -> None:
    if arguments.task is not None:
        raise InputError("--task: the runs of a group have their task; leave it out")
    for run in group.made_runs():
        consents.agree_if_asked(arguments, str(run.path))
        consents.convert_if_asked(arguments, str(run.path))


def _print_group(result: "GroupResult", as_json: bool) -> int:
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    found = spreads([one.metrics for one in result.each.values()])
    means = {name: one.mean for name, one in found.items()}
    intervals = {name: one.interval for name, one in found.items() if one.interval is not None}
    deviations = {name: one.deviation for name, one in found.items() if one.deviation is not None}
    together = result.together
    first = next(iter(result.each.values()))
    if as_json:
        values = {
            "metrics": means, "intervals": intervals, "deviations": deviations, "trivial": first.trivial,
            "seeds": {str(seed): {"metrics": one.metrics, "intervals": one.intervals} for seed, one in result.each.items()},
            "together": {"metrics": together.metrics, "intervals": together.intervals} if together else None,
            "rows": first.rows, "skipped": len(first.skipped),
        }  # fmt: skip
        _print_json(values | ({"output": str(result.output)} if result.output else {}))
        return 0
    for seed, one in result.each.items():
        print(f"{f'seed {seed}':<12} {format_metrics(one.metrics)}".rstrip())
    if means:
        print(f"{'mean':<12} {format_metrics(means, intervals, deviations)}")
    if together is not None and together.metrics:
        print(f"{'together':<12} {format_metrics(together.metrics, together.intervals)}")
    print(f"{first.rows} rows{f', {len(first.skipped)} skipped ({_list_skipped(first)})' if first.skipped else ''}")
    if result.output:
        print(result.output)
    return 0


def _answer(arguments: Namespace) -> int:
    rows = [_row(text) for text in arguments.input]
    right = _right_answers(arguments)
    if arguments.append is not None:
        check_appended(user_path(arguments.append).absolute(), "--append")
    from backend.inference import interactive  # loads the framework, which takes seconds

    answerer = interactive.InteractivePredictor(arguments.target, arguments.task, arguments.changes)
    answer = answerer.answer(rows)
    for sentence in filter(None, [answer.note, *answer.cuts]):
        print(sentence, file=sys.stderr)
    for row, correct in zip(answer.rows, right, strict=True):
        _print_json(row)
        if arguments.append is not None:
            added = answerer.collect(arguments.append, row, correct or None)
            rows = "1 row" if added.rows == 1 else f"{added.rows} rows"
            count = "" if added.rows is None else f", which has {rows} now"
            print(f"added to {added.path}{count}", file=sys.stderr)
    return 0


def _right_answers(arguments: Namespace) -> list[str]:
    """One answer per input; empty if none was given."""
    if arguments.right and arguments.append is None:
        raise InputError("--right: it goes into a file; name one with --append")
    if len(arguments.right) > len(arguments.input):
        raise InputError("--right: there are more right answers than inputs; give one for each --input, in their order")
    return [*arguments.right, *[""] * (len(arguments.input) - len(arguments.right))]


def _row(text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise InputError(f'--input {text}: this is not a JSON mapping; write for example \'{{"text": "…"}}\'')
    return row


def _print_json(values: dict[str, Any]) -> None:
    import msgspec  # writes null for NaN, where the standard library writes NaN

    print(msgspec.json.encode(values).decode())


def _list_skipped(result: "EvaluationResult") -> str:
    """The locations of the first skipped rows, and why they were skipped."""
    named = "; ".join(f"{one.place}: {one.reason}" for one in result.skipped[:SHOWN])
    return named + ("; …" if len(result.skipped) > SHOWN else "")


def _print_notes(result: "EvaluationResult") -> None:
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)


def _measured(result: "EvaluationResult") -> dict[str, Any]:
    return {"metrics": result.metrics, "intervals": result.intervals, "trivial": result.trivial}


def _print_metrics(result: "EvaluationResult") -> None:
    for name, value in result.metrics.items():
        interval, rule = result.intervals.get(name), result.trivial.get(name)
        words = sure_number(value, interval)
        if rule is not None:
            words = f"{words:<30} {number(rule)} without a model{_verdict(name, interval, rule)}"
        print(f"{name:<20} {words}")


def _verdict(name: str, interval: tuple[float, float] | None, rule: float) -> str:
    """Whether a model is better than the rule."""
    if interval is None:
        return ""
    greater = name not in SMALLER
    if beats_rule(interval, rule, greater):
        return ", which is surpassed"
    return ", which is better" if beats_rule(interval, rule, not greater) else ", which may be no worse"


def _format_result(result: "EvaluationResult") -> str:
    skipped = f", {len(result.skipped)} skipped ({_list_skipped(result)})" if result.skipped else ""
    timing = result.timing
    compiled = f", compiling {timing.compile_seconds:.2f} s" if timing.compile_seconds else ""
    return (
        f"{result.rows} {'row' if result.rows == 1 else 'rows'}{skipped} in {timing.seconds:.2f} s, {timing.rows_per_second:.0f} rows/s, "
        f"{timing.tokens_per_second:.0f} tokens/s; start-up {timing.startup_seconds:.2f} s{compiled}"
    )


def _generate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="RUN_OR_MODEL", help="name or folder of a run, a checkpoint or model folder, or a Hub ID"
    )
    parser.add_argument("--prompt", metavar="TEXT", required=True, help="the text to continue or to answer")
    parser.add_argument("--sample", action="store_true", help="sample tokens instead of taking the most likely ones")
    for name, words in _DECODING.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=words)
    parser.add_argument("--seed", metavar="N", type=int, help="seed for repeatable sampling")
    add_changes(parser, "hardware.device=cpu")
    add_consents(parser)
    add_conversion(parser)


def _generate(arguments: Namespace) -> int:
    if not arguments.prompt.strip():
        raise InputError("--prompt: it is empty; write the text to continue or to answer")
    consents.agree_if_asked(arguments, arguments.target)
    consents.convert_if_asked(arguments, arguments.target)
    from backend.inference import predict  # loads the framework

    changes = [f"task.{name}={value}" for name in _DECODING if (value := getattr(arguments, name)) is not None]
    if arguments.sample:
        changes.append("task.sample=true")
    pieces = predict.generate(
        arguments.target, arguments.prompt, changes=[*arguments.changes, *changes], seed=arguments.seed
    )
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
    return 0


# Slices


def _slices_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or folder of a run or group")
    parser.add_argument(
        "--split",
        metavar="NAME",
        default="validation",
        help="validation, test, or the name of another predicted file with labels (default: validation)",
    )
    parser.add_argument(
        "--metric", metavar="NAME", help="measure the slices by this metric (default: the task's main one)"
    )
    parser.add_argument("--rows", metavar="NUMBER", type=int, help="write the rows of this slice to --output")
    parser.add_argument("--output", metavar="FILE", type=Path, help="with --rows: the .csv or .parquet file to write")
    add_json(parser)


def _slices(arguments: Namespace) -> int:
    if (arguments.rows is None) != (arguments.output is None):
        raise InputError("--rows: name a slice's number and, with --output, the file to write its rows to")
    group = requested_group(arguments.run)
    folder = requested_run(arguments.run) if group is None else RunFolder(group.path)
    folder.check()
    if group is not None:
        from backend.inference.ensemble import write_predictions  # loads the framework

        write_predictions(group)
    parquet = folder.predictions(arguments.split, "parquet")
    if not parquet.is_file():
        there = ", ".join(folder.prediction_names()) or "none yet; a run writes them when it finishes"
        raise InputError(f"--split {arguments.split}: {arguments.run} has no such predictions; there are {there}")
    from backend.helper.queries import predictions  # loads pyarrow

    if arguments.rows is not None:
        return _write_slice(str(parquet), arguments)
    screen = ProgressScreen()
    try:
        report = screen.report("measuring")
        found = predictions.report_slices(
            str(parquet), arguments.metric, lambda done: report(int(done.done), int(done.total), done.unit)
        )
    finally:
        screen.close()
    _print_slices(found, arguments.json)
    return 0


def _write_slice(parquet: str, arguments: Namespace) -> int:
    from backend.helper.queries import predictions

    output = user_path(arguments.output).absolute()
    kind = SUFFIXES.get(output.suffix.lower())
    if kind is None:
        raise InputError(f"--output {output.name}: name a file that ends in .csv or .parquet")
    rows = predictions.slice_rows(parquet, arguments.rows)
    written = predictions.export(predictions.ExportRequest(parquet=parquet, output=output, rows=rows, format=kind))
    print(f"{written.rows} {'row' if written.rows == 1 else 'rows'}: {Path(written.path)}")
    return 0


def _print_slices(found: "SliceReport", as_json: bool) -> None:
    if as_json:
        import msgspec

        print(msgspec.json.encode(found).decode())
        return
    from backend.inspect.slices import name_of

    print(f"{found.metric} {number(found.value)} on {found.rows} rows")
    print(f"{'slice':>5}  {'rows':>6}  {found.metric:<28} {'others':<8} {'p (Holm)':<10}")
    for one in found.slices:
        p = "few rows" if one.p_holm is None else f"{one.p_holm:.2g}"
        words = f"{sure_number(one.score, one.interval):<28} {number(one.others):<8} {p:<10}"
        mark = "worse  " if one.is_worse else ""
        print(one_line(f"{one.number:>5}  {one.rows:>6}  {words} {mark}{name_of(one)}"))
    print(found.sentence)


COMMANDS = (
    Command("slices", "find the kinds of rows that a run answers worst", _slices_arguments, _slices),
    Command("evaluate", "evaluate a model on labeled rows", _add_shared_arguments, _evaluate),
    Command("predict", "predict new rows with a model", _predict_arguments, _predict),
    Command("generate", "continue or answer a text", _generate_arguments, _generate),
)
