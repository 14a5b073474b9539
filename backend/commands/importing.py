"""`burnish import`: turns another system's experiment into a spec, and lists what has no counterpart."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands.command import Command, add_changes, add_json
from backend.contract.errors import InputError
from backend.contract.output_file import whole_file
from backend.contract.safe_files import MAX_SPEC, read_regular

if TYPE_CHECKING:
    from backend.importing.foreign import ImportedSpec

_EXAMPLE, _ACCELERATE = "transformers example", "file of accelerate config"
_SCRIPT_FILES = (".sh", ".txt", ".bash", ".cmd")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help=(
        "a Determined or PyMarlin YAML, the JSON arguments of an example script, a shell script that calls "
        "one, or a YAML of accelerate config, which becomes a hardware section to include"
    ))  # fmt: skip
    parser.add_argument(
        "--command", dest="line", metavar="TEXT", help="the command line of a transformers example script"
    )
    parser.add_argument("--script", metavar="NAME", help="which example script the arguments are for, such as run_glue")
    parser.add_argument(
        "--accelerate",
        metavar="FILE",
        type=Path,
        help="the YAML of accelerate config with which the script was launched",
    )
    parser.add_argument(
        "--output", metavar="SPEC.yaml", type=Path, help="write the spec to this file (default: print it)"
    )
    add_changes(parser)
    add_json(parser)


def _import(arguments: Namespace) -> int:
    if (arguments.file is None) == (arguments.line is None):
        raise InputError("name a file to import, or give a command line with --command")
    if arguments.output is not None and arguments.output.exists():
        raise InputError(f"--output: {arguments.output} already exists; name a new file")
    system, found = _import_file(arguments)
    spec = _validate_part(found.spec, arguments) if system == _ACCELERATE else _validate(found.spec, arguments)
    if arguments.json:
        print(json.dumps({"spec": spec, "without_counterpart": found.unmatched, "notes": found.notes}))
        return 0
    text = _format_spec(spec, system, found)
    if arguments.output is None:
        print(text, end="")
    else:
        _write(text, arguments.output)
        print(arguments.output.absolute())
    for line in found.unmatched:
        sys.stderr.write(f"no counterpart: {line}\n")
    return 0


def _import_file(arguments: Namespace) -> "tuple[str, ImportedSpec]":
    """The other system's name, and the result of the import."""
    from backend.contract import spec_file  # loads the YAML reader
    from backend.importing import accelerate_config, determined, example_scripts, pymarlin

    launcher = _launcher(arguments.accelerate)
    if arguments.line is not None or arguments.file.suffix in _SCRIPT_FILES:
        values, script = example_scripts.from_command(arguments.line or _text(arguments.file))
        return _EXAMPLE, example_scripts.import_arguments(values, arguments.script or script, launcher)
    values = spec_file.parse(_text(arguments.file), str(arguments.file))
    if isinstance(values, dict):
        if launcher is not None and not example_scripts.recognises(values):
            raise InputError("--accelerate: it is for the arguments of a transformers example script; leave it out")
        if determined.recognises(values):
            return "Determined experiment", determined.import_config(values)
        if pymarlin.recognises(values):
            return "PyMarlin config", pymarlin.import_config(values)
        if example_scripts.recognises(values):
            return _EXAMPLE, example_scripts.import_arguments(values, arguments.script, launcher)
        if accelerate_config.recognises(values):
            return _ACCELERATE, accelerate_config.import_config(values)
    raise InputError(
        f"{arguments.file}: it is neither a Determined experiment, nor a PyMarlin config, nor the arguments of a "
        "transformers example script, nor a file of accelerate config; write a spec instead"
    )


def _launcher(path: Path | None) -> "ImportedSpec | None":
    if path is None:
        return None
    from backend.contract import spec_file
    from backend.importing import accelerate_config

    values = spec_file.parse(_text(path), str(path))
    if not isinstance(values, dict) or not accelerate_config.recognises(values):
        raise InputError(f"--accelerate: {path} was not written by accelerate config; name its YAML")
    return accelerate_config.import_config(values)


def _text(path: Path) -> str:
    try:
        return read_regular(path, MAX_SPEC).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{path}: it cannot be read: {reason}; check the path") from None


def _validate(spec: dict[str, Any], arguments: Namespace) -> dict[str, Any]:
    """The spec with `--set` changes, fully validated. Raises InputError."""
    from backend.contract import spec_file
    from backend.preflight.resolve import resolve

    changed = spec_file.apply_changes({"version": 1, **spec}, arguments.changes)
    resolve(changed, (arguments.output or arguments.file or Path.cwd() / "spec").absolute().parent)
    return changed


def _validate_part(spec: dict[str, Any], arguments: Namespace) -> dict[str, Any]:
    """The `hardware` section with `--set` changes, validated by itself. Raises InputError."""
    from backend.contract import spec_file
    from backend.contract.spec import HardwareSection, validate

    changed = spec_file.apply_changes(spec, arguments.changes)
    validate(HardwareSection, changed.get("hardware", {}), "hardware")
    return changed


def _format_spec(spec: dict[str, Any], system: str, found: "ImportedSpec") -> str:
    from backend.contract import spec_file

    remarks = [f"Imported from a {system}."]
    remarks += ["A spec takes it over with: include: [NAME.yaml]"] if system == _ACCELERATE else []
    remarks += ["Without counterpart:", *(f"  {line}" for line in found.unmatched)] if found.unmatched else []
    remarks += ["Otherwise here:", *(f"  {line}" for line in found.notes)] if found.notes else []
    return "".join(f"# {line}\n" for line in remarks) + spec_file.dump(spec)


def _write(text: str, path: Path) -> None:
    with whole_file(path, "--output") as beside:
        beside.write_text(text, encoding="utf-8")


COMMANDS = (Command("import", "turn another system's experiment into a spec", _arguments, _import),)
