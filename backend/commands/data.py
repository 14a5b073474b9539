"""Runs `burnish data`: `report` on data, `prepare` it without training, `import` another layout, `recognise` files."""

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands.command import Command, add_action, add_changes, add_json
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.safe_files import user_path

if TYPE_CHECKING:
    from backend.contract.rpc.data import ColumnReport, DataReport, NumberSummary, RecognisedData, SplitReport
    from backend.inspect.data_report import ReportRequest

SHOWN_LABELS = 20
_MEASURES = ("mean", "std", "min", "p50", "p95", "p99", "p99_9", "max")
_HEADINGS = ("mean", "std", "min", "50 %", "95 %", "99 %", "99.9 %", "max")


def _arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    report = add_action(actions, "report", "report on data: rows, labels, lengths, duplicates")
    report.add_argument("target", metavar="FILE|SPEC", help="a data file, folder or pattern, a Hub name, or a spec")
    report.add_argument("--validation", metavar="FILE", help="validation data to compare with")
    report.add_argument("--test", metavar="FILE", help="test data to compare with")
    report.add_argument("--source", metavar="NAME", help="the data source (default: files)")
    report.add_argument("--task", metavar="NAME", help="the task, which determines the columns")
    report.add_argument("--tokenizer", metavar="NAME", help="tokenizer to count tokens with: a folder or Hub ID")
    add_changes(report, "data.encoding=windows-1252")
    add_json(report)
    report.set_defaults(execute_action=_report)
    prepare = add_action(actions, "prepare", "tokenize the data of a spec, without training")
    prepare.add_argument("spec", metavar="SPEC", type=Path, help="the spec file (YAML)")
    prepare.add_argument("--export", metavar="DIR", type=Path, help="also write the features to this folder")
    prepare.add_argument(
        "--format", choices=("npy", "parquet"), default="npy", help="padded arrays, or lists (default: npy)"
    )
    add_changes(prepare, "task.max_length=256")
    add_json(prepare)
    prepare.set_defaults(execute_action=_prepare)
    _add_import(actions)
    _add_recognise(actions)


def _execute(arguments: Namespace) -> int:
    return arguments.execute_action(arguments)


def _report(arguments: Namespace) -> int:
    import msgspec

    from backend.inspect import data_report  # loads the data room

    screen = ProgressScreen()
    try:
        found = data_report.data_report(_report_request(arguments), screen.report("reading data"))
    finally:
        screen.close()
    print(msgspec.json.encode(found).decode() if arguments.json else _describe_report(found))
    return 0


def _prepare(arguments: Namespace) -> int:
    from backend.inspect import pretokenize
    from backend.preflight import resolve  # load the data room

    screen = ProgressScreen()
    try:
        spec = resolve.read_spec(arguments.spec, arguments.changes)
        found = pretokenize.prepare(spec, screen.report, arguments.export, arguments.format)
    finally:
        screen.close()
    if arguments.json:
        splits = {split: asdict(one) for split, one in found.splits.items()}
        files = [str(path) for path in found.files]
        print(json.dumps({"splits": splits, "notes": found.notes, "files": files}, ensure_ascii=False))
        return 0
    for split, one in found.splits.items():
        skipped = f" ({one.skipped:,} left out)" if one.skipped else ""
        took = "cached" if one.cached else f"{one.seconds:.2f} s"
        print(f"{split:<12}{_rows(one.rows)}{skipped}, {one.features:,} features, {one.tokens:,} tokens, {took}")
    for note in found.notes:
        print(f"note: {note}")
    for path in found.files:
        print(path)
    return 0


def _report_request(arguments: Namespace) -> "ReportRequest":
    from backend.contract import spec_file
    from backend.inspect import data_report
    from backend.preflight import resolve

    if arguments.target.endswith((".yaml", ".yml")):
        _refuse_beside_spec(arguments)
        return data_report.request_of_spec(resolve.read_spec(Path(arguments.target), arguments.changes))
    data = {
        "source": arguments.source or "files",
        **data_report.source_keys(arguments.source or "files", arguments.target),
    }
    data |= _other_splits(arguments.target) if data["source"] == "files" else {}
    data |= {name: value for name in ("validation", "test") if (value := getattr(arguments, name)) is not None}
    values: dict[str, Any] = {"data": data, "task": {"type": arguments.task} if arguments.task else {}}
    values = spec_file.apply_changes(values, arguments.changes)
    return data_report.request_of_data(values["data"], values["task"], arguments.tokenizer, Path.cwd())


def _other_splits(target: str) -> dict[str, str]:
    """The `validation` and `test` files in a folder, recognised by name."""
    from backend.data.data_files import ignored_files, split_of

    found = {split_of(Path(name)) for name in ignored_files(target)}
    return {split: target for split in ("validation", "test") if split in found}


def _refuse_beside_spec(arguments: Namespace) -> None:
    for name, key in (("source", "data.source"), ("task", "task.type"), ("tokenizer", "model.tokenizer")):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name}: {arguments.target} is a spec, which sets this itself; use --set {key}=…")
    for name in ("validation", "test"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name}: {arguments.target} is a spec, which sets this itself; use --set data.{name}=…")


def _describe_report(found: "DataReport") -> str:
    lines: list[str] = []
    for split, one in found.splits.items():
        lines += _split_in_words(split, one, found.inputs)
    return "\n".join([*lines, *found.notes])


def _split_in_words(split: str, one: "SplitReport", inputs: list[str]) -> list[str]:
    lines = [f"{split}: {_rows(one.rows)} ({', '.join(one.files[:3])}{' …' if len(one.files) > 3 else ''})"]
    same = ", ".join(inputs)
    lines.append(f"  {_rows(one.duplicates, 'repeats', 'repeat')} an earlier one ({same})" + _example(one))
    if one.in_train is not None:
        lines.append(f"  {_rows(one.in_train, 'is', 'are')} in the training data too")
    if one.unusable:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in one.unusable_reasons.items())
        lines.append(f"  {_rows(one.unusable)} cannot be used: {reasons}; the first: {one.first_unusable[0]}")
    table = [row for name, column in one.columns.items() for row in _spreads(name, column)]
    if table:
        width = max(len(name) for name, _ in table)
        lines.append(f"  {'':<{width}}" + "".join(f"{heading:>9}" for heading in _HEADINGS))
        lines += [f"  {name:<{width}}" + "".join(f"{cell:>9}" for cell in cells) for name, cells in table]
    for name, column in one.columns.items():
        lines += _column_in_words(name, column)
    return lines


def _rows(count: int, one: str = "", several: str = "") -> str:
    """The number of rows with the matching verb."""
    return f"{count:,} {'row' if count == 1 else 'rows'} {one if count == 1 else several}".rstrip()


def _example(one: "SplitReport") -> str:
    return f", for example {' = '.join(one.first_duplicates[0])}" if one.first_duplicates else ""


def _spreads(name: str, column: "ColumnReport") -> list[tuple[str, list[str]]]:
    measured = [(f"{name} words", column.words), (f"{name} tokens", column.tokens)]
    if column.kind == "number":
        measured.append((name, column.numbers))
    return [(title, _cells(spread)) for title, spread in measured if spread is not None]


def _cells(spread: "NumberSummary") -> list[str]:
    values = [getattr(spread, name) for name in _MEASURES]
    return ["" if value is None else f"{value:.1f}" if abs(value) < 1e6 else f"{value:.3g}" for value in values]


def _column_in_words(name: str, column: "ColumnReport") -> list[str]:
    lines = [f"  {name}: {column.empty:,} empty cells"] if column.empty else []
    if column.labels:
        counted = [f"{one.label} {one.count:,} ({one.ratio:.1%})" for one in column.labels[:SHOWN_LABELS]]
        more = f" and {len(column.labels) - SHOWN_LABELS} more" if len(column.labels) > SHOWN_LABELS else ""
        lines.append(f"  {name}: {', '.join(counted)}{more}")
    return lines


def _add_import(actions: Any) -> None:
    """Add the `import` action to `burnish data`."""
    parser = add_action(
        actions,
        "import",
        "write a language pair as train.tsv and eval.tsv, in both directions, each row with its prefix",
    )
    parser.add_argument("kind", choices=("tatoeba",), help="the data source")
    parser.add_argument("data", metavar="FOLDER", help="folder or archive of the pair, or its name such as eng-sin")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="where to write the tables (default: beside the data)"
    )
    parser.add_argument("--languages", metavar="A,B", help="language names for the prefixes, such as english,sinhala")
    parser.set_defaults(execute_action=_import)


def _import(arguments: Namespace) -> int:
    from backend.contract.places import cache_folder, is_offline  # these load the data room
    from backend.contract.spec import validate
    from backend.data.prefixed_tables import language_names, write_tables
    from backend.data.sources.source import ReadOptions
    from backend.data.sources.tatoeba import Settings, pair_folder

    where = user_path(arguments.data)
    output = arguments.output or _output_folder(where)
    check_output_folder(output, "--output")
    languages = language_names(arguments.languages, re.sub(r"(\.tar)?(\.gz)?$", "", where.absolute().name))
    given = {"folder": str(where)} if where.exists() else {"pair": arguments.data}
    screen = ProgressScreen()
    try:
        reading = ReadOptions(cache_folder() / "tables", screen.report("bringing the data"), offline=is_offline())
        folder = pair_folder(validate(Settings, given, "data"), reading)
        with output_errors(output, "--output", output):
            output.mkdir(parents=True, exist_ok=True)
            written = write_tables(folder, output, languages, screen.report("writing"))
    finally:
        screen.close()
    for path, rows in written.items():
        print(f"{path.absolute()}: " + ("it already exists and was kept" if rows is None else f"{rows:,} rows"))
    return 0


def _output_folder(where: Path) -> Path:
    if where.is_dir():
        return where
    if where.is_file():
        return where.parent
    raise InputError(f"--output: {where} is not a folder here; say where to write the tables")


def _add_recognise(actions: Any) -> None:
    """Add the `recognise` action to `burnish data`."""
    parser = add_action(
        actions, "recognise", "detect what files or a folder contain, and print the data section that reads them"
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a file, several files, a folder, or a Hub URL")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(execute_action=_recognise)


def _recognise(arguments: Namespace) -> int:
    import msgspec

    from backend.inspect.recognition import recognise  # loads every source

    found = recognise(arguments.paths)
    print(msgspec.json.encode(found).decode() if arguments.json else _describe_section(found))
    for one in found.unreadable:
        print(one, file=sys.stderr)
    return 2 if found.unreadable else 0


def _describe_section(found: "RecognisedData") -> str:
    """The sentence as a comment, then the lines to put in a spec."""
    lines = [f"# {found.words}", *(f"# left out: {one.name} ({one.reason})" for one in found.left_out)]
    lines += [f"# careful: {one}" for one in found.warnings]
    if found.task:
        lines.append(f"task: {{type: {found.task}}}")
    lines.append("data:")
    lines += [f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in found.data.items()]
    return "\n".join(lines)


COMMANDS = (Command("data", "report on, detect, prepare or import data", _arguments, _execute),)
