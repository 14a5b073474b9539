"""Owns `export_curves`: the curves of a run as a TensorBoard event file, as `burnish export --tensorboard` writes them."""

from io import BytesIO
from pathlib import Path

from backend.contract import events
from backend.contract.errors import InputError
from backend.contract.queries import Exported
from backend.contract.run_folder import RunFolder
from backend.queries.query import Arguments, Query, Tell, needed
from backend.run import event_files


def _export(arguments: Arguments, tell: Tell) -> Exported:
    path, folder = RunFolder(Path(needed(arguments, "run"))).events, Path(needed(arguments, "folder"))
    with path.open("rb") if path.is_file() else BytesIO() as file:
        records = event_files.records_of(events.decode_all(file))
    if not records:
        raise InputError("this run has no steps yet; wait until it trains")
    try:
        return Exported(str(event_files.write(records, folder)), len(records))
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None


QUERIES = (Query("export_curves", _export),)
