"""Answers `export_curves` with the curves of a run as a TensorBoard event file, as `burnish export --tensorboard` writes them."""

from pathlib import Path

from backend.contract.output_file import output_errors
from backend.contract.rpc.queries import Exported
from backend.contract.run.folder import RunFolder
from backend.helper.query import Arguments, Query, Tell, needed
from backend.mirrors import tensorboard
from backend.mirrors.curves import Curves


def _export(arguments: Arguments, tell: Tell) -> Exported:
    run, folder = RunFolder(needed(arguments, "run")), Path(needed(arguments, "folder"))
    run.check()
    curves = Curves(run.events)
    with output_errors(folder):
        written = tensorboard.write(curves, folder)
    return Exported(str(written.path), written.records)


QUERIES = (Query("export_curves", _export),)
