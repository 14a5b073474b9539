"""Writes what a run leaves behind: `model/` and the predictions of its validation and test data."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.events import ModelExported, PredictionsWritten, Warned
from backend.contract.run.folder import RunFolder
from backend.inference import predictions_file
from backend.models import saved_model
from backend.models.remote_code import agree_to_copy, copy_code
from backend.preflight.session import ScoredEvaluation
from backend.tasks.task import tune as task_tune
from backend.tasks.task import tunes_predictions
from backend.training.event_log import EventLog
from backend.training.setup import RunSetup
from backend.training.stages import StageReporter


def tune(opened: RunSetup, stages: StageReporter) -> RunSetup:
    """Let the task learn from the predicted validation rows how outputs become predictions, and keep that with the model."""
    session, rows = opened.session, opened.rows.get("validation")
    if rows is None or not tunes_predictions(session.task):
        return opened
    features = opened.features["validation"]
    stages.start("evaluating", len(features), "rows")
    scored = session.score(rows, features, opened.evaluation_batch_size, stages.report)
    learned = dict(task_tune(session.task, scored.predictions, rows, session.columns, session.facts))
    for note in learned.pop("notes", ()):
        stages.warn("task", note)
    return replace(opened, session=replace(session, facts={**session.facts, **learned})) if learned else opened


def export(folder: RunFolder, opened: RunSetup, log: EventLog, step: int) -> None:
    """Save the engine's weights, which are those of `step`, as the run's `model/`."""
    session = opened.session

    def fill(path: Path) -> None:
        session.engine.export(path)
        _save_tokenizer(session.task, session.tokenizer, path)
        copy_code(opened.model_folder, path)

    note = {**opened.note, "step": step}
    if opened.hosts.is_first:
        for kept in saved_model.write(folder.model, fill, note):
            sentence = message(
                "{path} is an older model that could not be deleted ({reason}); delete it manually",
                path=kept.path,
                reason=kept.reason,
            )
            log.write(Warned(time=time.time(), code="not_deleted", message=sentence))
        try:
            agree_to_copy(opened.model_folder, folder.model)
        except InputError as error:  # the model is whole, and its user is asked when it is opened
            log.write(Warned(time=time.time(), code="not_agreed", message=str(error)))
    else:
        session.engine.export(folder.model)  # takes part in gathering sharded weights, and writes nothing
    log.write(ModelExported(time=time.time(), folder=folder.model.name, step=step))


def _save_tokenizer(task: Any, tokenizer: Any, path: Path) -> None:
    """Save it with the chat template used in training, so that prompts are formatted the same everywhere."""
    before = tokenizer.chat_template
    if hasattr(task, "chat_template"):
        tokenizer.chat_template = task.chat_template(tokenizer) or before
    tokenizer.save_pretrained(path)
    tokenizer.chat_template = before  # the cache knows features by it


def predict(folder: RunFolder, opened: RunSetup, log: EventLog, split: str, stages: StageReporter) -> dict[str, float]:
    """Write the predictions for every row of one split; returns its metrics."""
    rows, features = opened.rows[split], opened.features[split]
    scored: ScoredEvaluation = opened.session.score(rows, features, opened.evaluation_batch_size, stages.report)
    intervals = opened.session.intervals(scored, rows, stages.check)
    csv, parquet = folder.predictions(split), folder.predictions(split, "parquet")
    if opened.hosts.is_first:
        predictions_file.write(
            predictions_file.join_predictions(rows, scored.predictions), csv, parquet, scored.predictions.documents
        )
    log.write(
        PredictionsWritten(
            time=time.time(),
            split=split,
            csv=csv.name,
            parquet=parquet.name,
            rows=len(rows),
            seconds=scored.seconds,
            metrics=dict(scored.metrics),
            intervals=intervals,
        )
    )
    return scored.metrics
