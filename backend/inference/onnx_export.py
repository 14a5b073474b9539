"""Exports a run's model to ONNX, and proves it on the run's validation rows: ONNX Runtime's answers beside the engine's."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from backend import registry
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.metrics import Metric
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.rpc.models import OnnxExport, ScoredModel
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import open_unlinked
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.inspect.run_comparison import open_run
from backend.metrics.metric import declared_metrics
from backend.models import calibration, saved_model
from backend.preflight.datasets import ignore_progress
from backend.preflight.session import FeatureSession, ScoredEvaluation

MODEL, INT8, PROOF = "model.onnx", "model_int8.onnx", "comparison.json"
MAX_LOSS = 0.01
"""The share of a metric that an int8 model may lose."""
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_BATCH = 64


def export_onnx(
    run: RunFolder,
    target: Path,
    *,
    int8: bool = False,
    max_loss: float = MAX_LOSS,
    report: Report = ignore_progress,
    say: Callable[[str], None] = lambda stage: None,
) -> OnnxExport:
    """Write `model.onnx`, the tokenizer and the proof to the new folder `target`; with `int8` a second, rounded model.

    The rounded one is kept if the task's metric falls by no more than the share `max_loss`. Raises InputError.
    """
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise InputError(
            "--onnx needs {packages}, which are not installed; install them with: pip install 'burnish[onnx]'",
            packages=" and ".join(missing),
        )
    if target.exists():
        raise InputError("--onnx {target} already exists; name a new folder", target=target)
    check_output_folder(target, "--onnx")
    with output_errors(target, "--onnx", target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    if not run.predictions("validation", "parquet").is_file():
        raise InputError(
            "--onnx: {run} has not predicted its validation rows, by which the files are compared; let it finish first",
            run=run.name,
        )
    predicted = open_run(run, run.name, _read)
    say("Loading the model")
    session = _open(run)
    models: list[ScoredModel] = []
    with output_errors(target, "--onnx", target.parent):
        saved_model.write(
            target,
            lambda folder: models.extend(
                _fill(folder, session, predicted.rows, report, say, max_loss=max_loss if int8 else None)
            ),
            {"task": session.spec.task, "facts": session.facts, "columns": dict(session.columns)},
        )
    metric = _find_metric(session, models[0].metrics)
    return OnnxExport(folder=str(target), rows=len(predicted.rows), metric=metric.name if metric else "", models=models)


def _read(path: str) -> pa.Table:
    with open_unlinked(Path(path)) as source, parquet.ParquetFile(source) as file:
        return file.read()


def _onnx() -> Any:
    """`backend/engines/torch/onnx_model.py`"""
    return registry.find("engine", "torch", "hardware.engine").onnx()


def _open(run: RunFolder) -> FeatureSession:
    from backend.inference.model import open_model  # loads the framework
    from backend.inference.spec import spec_of

    spec = spec_of(str(run.path), None, ["hardware.engine=torch", "hardware.device=cpu"])
    opened = open_model(spec)
    if opened.session.task.head not in _onnx().OUTPUTS:
        raise InputError(
            "--onnx: {task} models cannot be exported yet; export the model itself with --model",
            task=spec.task["type"],
        )
    if spec.model.trust_remote_code:
        raise InputError("--onnx: a model with code of its own cannot be exported; use --model")
    return opened.session


def _fill(
    folder: Path,
    session: FeatureSession,
    rows: Rows,
    report: Report,
    say: Callable[[str], None],
    *,
    max_loss: float | None,
) -> list[ScoredModel]:
    """Write everything to `folder`; without `max_loss` no int8 model."""
    say("Writing ONNX (about a minute)")
    whole = folder / "whole"
    whole.mkdir()
    session.engine.export(whole)
    scaling = session.calibration
    if scaling is not None and not calibration.fold_into_weights(whole, scaling):
        calibration.write(folder, scaling)
    token_types = "token_type_ids" in session.tokenizer.model_input_names
    _onnx().write(whole, session.task.head, folder / MODEL, token_types=token_types)
    own_megabytes = _megabytes(whole / "model.safetensors")
    for name in ("config.json", "generation_config.json"):
        if (whole / name).is_file():
            shutil.move(whole / name, folder / name)
    shutil.rmtree(whole)
    session.tokenizer.save_pretrained(folder)

    say("Comparing the answers")
    features = session.features(rows)

    def score(one: FeatureSession) -> ScoredEvaluation:
        return one.score(rows, features, _BATCH, lambda done, total: report(done, total, "rows"))

    def measure(name: str) -> ScoredModel:
        scored = score(replace(session, engine=_engine(folder / name, session), calibration=calibration.read(folder)))
        return _compare(name, _megabytes(folder / name), scored, first, session, rows)

    score(session)  # whatever is done once is done now, and the speeds can be compared
    first = score(session)
    models = [_compare("", own_megabytes, first, first, session, rows), measure(MODEL)]
    if max_loss is not None:
        say("Rounding to 8 bits")
        _onnx().round_to_int8(folder / MODEL, folder / INT8)
        rounded = measure(INT8)
        refused = _refuse(session, models[0], rounded, max_loss)
        models.append(msgspec.structs.replace(rounded, refused=refused))
        if models[-1].refused:
            (folder / INT8).unlink()
    proof = {"rows": len(rows), "models": msgspec.to_builtins(models)}
    (folder / PROOF).write_text(json.dumps(proof, indent=1) + "\n", encoding="utf-8")
    return models


def _engine(path: Path, session: FeatureSession) -> Any:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(path.parent, local_files_only=True)
    threads = (session.spec.hardware.model_extra or {}).get("threads")
    return _onnx().OnnxEngine(path, session.task.head_facts(session.facts), config, threads)


def _compare(
    name: str, megabytes: float, scored: ScoredEvaluation, own: ScoredEvaluation, session: FeatureSession, rows: Rows
) -> ScoredModel:
    table, other = scored.predictions.table, own.predictions.table
    same = np.array(table["prediction"].to_pylist(), object) == np.array(other["prediction"].to_pylist(), object)
    differences = [
        np.nanmax(np.abs(table[column].to_numpy() - other[column].to_numpy()), initial=0.0)
        for column in table.column_names
        if pa.types.is_floating(table.schema.field(column).type)
    ]
    return ScoredModel(
        file=name,
        megabytes=megabytes,
        rows_per_second=len(rows) / scored.seconds,
        metrics=scored.metrics,
        intervals=session.intervals(scored, rows),
        changed=float(1 - same.mean()) if len(same) else 0.0,
        largest_difference=float(max(differences, default=0.0)),
    )


def _refuse(session: FeatureSession, own: ScoredModel, rounded: ScoredModel, max_loss: float) -> str:
    """Why the rounded model loses too much by the metric that the task is judged by; empty if it does not."""
    metric = _find_metric(session, own.metrics)
    if metric is None:
        return ""
    before, after = own.metrics[metric.name], rounded.metrics[metric.name]
    lost = (before - after if metric.greater_is_better else after - before) / max(abs(before), 1e-12)
    if lost <= max_loss:
        return ""
    return message(
        "{name} goes from {before:.4g} to {after:.4g} in 8 bits, which loses {lost:.1%}; --max-loss {wanted:.2f} would keep it",
        name=metric.name,
        before=before,
        after=after,
        lost=lost,
        wanted=lost + 0.005,
    )


def _find_metric(session: FeatureSession, there: Mapping[str, float]) -> Metric | None:
    """The metric that chooses the best checkpoint, else the task's first; a loss only if there is no other."""
    chosen = session.spec.evaluation.best_metric
    known = [one for one in declared_metrics(session.task.metrics) if one.name in there]
    return min(known, key=lambda one: (one.name != chosen, not one.greater_is_better), default=None)


def _megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6
