"""Answers `export_curves` with the curves of a run as a TensorBoard event file, as `burnish export --tensorboard` writes them."""

from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.rpc.queries import Exported
from backend.contract.run.folder import RunFolder
from backend.helper.query import Arguments, Query, Tell, needed
from backend.mirrors import tensorboard
from backend.mirrors.curves import Curves


def _export(arguments: Arguments, tell: Tell) -> Exported:
    run, folder = RunFolder(needed(arguments, "run")), Path(needed(arguments, "folder"))
    run.check()
    curves = Curves(run.events)
    try:
        written = tensorboard.write(curves, folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None
    return Exported(str(written.path), written.records)


QUERIES = (Query("export_curves", _export),)
