"""Tokenizes without training: writes the features that a run with the same spec finds in the cache; exports them."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.run.folder import write_json
from backend.contract.spec import RunSpec
from backend.data.export import write_arrays, write_parquet
from backend.data.features import Features
from backend.data.sources.source import Report
from backend.models.config import decoder_start_token
from backend.models.inspection import read_config
from backend.preflight.checks import check_model, locate_small_files
from backend.preflight.datasets import load_splits
from backend.preflight.session import FeatureSession, open_session

Format = Literal["npy", "parquet"]
Stage = Callable[[str], Report]
"""Starts a stage of that name and returns its progress callback."""


@dataclass(frozen=True)
class PreparedSplit:
    """One split as features."""

    rows: int
    skipped: int
    features: int
    tokens: int
    seconds: float
    cached: bool


@dataclass(frozen=True)
class Prepared:
    """Every split, warnings about the data, and the written files."""

    splits: dict[str, PreparedSplit]
    notes: tuple[str, ...]
    files: tuple[Path, ...]


def prepare(spec: RunSpec, stage: Stage, export: Path | None = None, file_format: Format = "npy") -> Prepared:
    """Tokenise what a run of `spec` trains and evaluates on, and write it to the folder `export` if one is given.

    Raises InputError. If it is interrupted, neither the cache nor the folder contains anything half-written.
    """
    if export is not None and ((export.exists() and not export.is_dir()) or not export.absolute().parent.is_dir()):
        raise InputError(
            "--export: {export} must be a folder inside an existing folder; choose another one", export=export
        )
    if export is not None and any(export.glob(f"*.{file_format}")):
        raise InputError(
            "--export: {export} already contains .{file_format} files; choose another folder",
            export=export,
            file_format=file_format,
        )
    if export is not None:
        check_output_folder(export, "--export")
    model = locate_small_files(spec, stage("finding model"))
    check_model(spec, model.folder, looks_at_weights=False)
    splits = load_splits(spec, model.folder, stage("loading data"))
    session = open_session(spec, splits, model, engine=None)
    prepared: dict[str, PreparedSplit] = {}
    features: dict[str, Features] = {}
    for split, rows in splits.rows.items():
        started = time.perf_counter()
        found = session.features(rows, stage(message("tokenizing {split}", split=split)), to_train=split == "train")
        seconds = time.perf_counter() - started
        prepared[split] = PreparedSplit(
            len(rows), len(rows.skipped), len(found), int(found.lengths.sum()), seconds, found.cached
        )
        features[split] = found
    files = _export_features(session, features, model.folder, export, file_format, stage) if export is not None else ()
    return Prepared(prepared, splits.notes, tuple(files))


def _export_features(
    session: FeatureSession, features: dict[str, Features], model: Path, export: Path, file_format: Format, stage: Stage
) -> list[Path]:
    """Write to a temporary folder and move the files at the end; files of the same names are replaced."""
    export = export.absolute()
    beside = export.with_name(f".{export.name}.{os.getpid()}")
    head = session.task.head
    config = read_config(model)
    start = decoder_start_token(config.get("model_type"), config.get("decoder_start_token_id"), session.pad_token_id)
    try:
        with output_errors(export, "--export", beside):
            beside.mkdir()
            written: list[Path] = []
            for split, one in features.items():
                report = stage(message("writing {split}", split=split))
                if file_format == "parquet":
                    written += write_parquet(one, beside / f"{split}.parquet", report)
                else:
                    written += write_arrays(one, beside, split, head, session.pad_token_id, start, report)
            note = {
                "task": session.spec.task,
                "facts": session.facts,
                "columns": dict(session.columns),
                "head": str(head),
                "pad_token_id": session.pad_token_id,
                "features": {split: len(one) for split, one in features.items()},
            }
            write_json(beside / "features.json", note)
            export.mkdir(exist_ok=True)
            for path in beside.iterdir():
                path.replace(export / path.name)
            return [export / path.name for path in written]
    finally:
        shutil.rmtree(beside, ignore_errors=True)
