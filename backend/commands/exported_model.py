"""Owns `burnish export --model`: a run's model as a folder elsewhere, an adapter merged into its model where that is wished."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from backend.commands.named_run import named_run
from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder, output_errors


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `--model`."""
    parser.add_argument(
        "--dtype", choices=("float32", "float16"), default="float32", help="numbers of --model (float32)"
    )
    parser.add_argument(
        "--merged",
        action="store_true",
        help="with --model: merge an adapter into the model that it belongs to; RUN may be a checkpoint",
    )


def export(arguments: Namespace) -> int:
    """Write the folder and say where it is. Raises InputError."""
    if arguments.merged:
        _merge(arguments)
    else:
        folder = named_run(arguments.run)
        if not (folder.model / "config.json").is_file():
            raise InputError(f"{arguments.run}: this run has no model yet; let it finish, or stop it, first")
        from backend.models.remote_code import agree_to_copy
        from backend.models.saved_model import copy_model  # loads numpy

        copy_model(folder.model, arguments.model, arguments.dtype)
        agree_to_copy(folder.model, arguments.model)
    print(f"model: {arguments.model.absolute()}")
    return 0


def _merge(arguments: Namespace) -> None:
    target = arguments.model.absolute()
    if arguments.dtype != "float32":
        raise InputError("--dtype: a merged model is written in float32; leave --dtype out, then copy it with --model")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"--model {target}: it exists already; name a new folder")
    check_output_folder(target, "--model")
    from backend.inference.model import open_model  # loads the framework
    from backend.inference.spec import spec_of
    from backend.models import saved_model
    from backend.models.remote_code import agree_to_copy, copy_code

    spec = spec_of(arguments.run, None, ["hardware.device=cpu"])
    opened = open_model(spec)
    session = opened.session

    def fill(folder: Path) -> None:
        session.engine.export(folder)
        session.tokenizer.save_pretrained(folder)
        copy_code(opened.folder, folder)

    note = {"task": session.spec.task, "facts": session.facts, "columns": dict(session.columns)}
    with output_errors(target, "--model", target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        saved_model.write(target, fill, note)
        agree_to_copy(opened.folder, target)
