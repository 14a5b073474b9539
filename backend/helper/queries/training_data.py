"""Answers `training_lengths`, `training_rows` and `training_feature`: data as a spec's or run's training sees it."""

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.rpc.protocol import Progress
from backend.contract.rpc.training_data import TrainingFeature, TrainingLengths, TrainingRows
from backend.contract.run.folder import find_run
from backend.helper.query import Arguments, Query, ReportProgress, reporting, require

if TYPE_CHECKING:
    from backend.data.sources.source import Report
    from backend.inspect.batch_preview import BatchPreview

PAGE = 100
MAX_NUMBERS = 12_000
"""Of an array that are sent to the window, so that no answer becomes too large for a line."""


def _lengths(arguments: Arguments, report: ReportProgress) -> TrainingLengths:
    from backend.inspect.length_report import training_lengths  # loads the data room

    return training_lengths(_preview(arguments, report), _stages(report))


def _rows(arguments: Arguments, report: ReportProgress) -> TrainingRows:
    from backend.inspect import feature_view

    preview = _preview(arguments, report)
    count = int(arguments.get("count") or PAGE)
    if arguments.get("step") is not None:
        return feature_view.rows_of_step(_with_new_events(preview, arguments), int(arguments["step"]), count)
    row = arguments.get("row")
    start = 0 if row is None else int(preview.features_of(int(row))[0])
    return feature_view.rows_in_order(preview, start, count)


def _feature(arguments: Arguments, report: ReportProgress) -> TrainingFeature:
    from backend.inspect import feature_view

    step = arguments.get("step")
    feature = int(require(arguments, "feature", int))
    return feature_view.view_feature(
        _preview(arguments, report), feature, None if step is None else int(step), MAX_NUMBERS
    )


def _preview(arguments: Arguments, report: ReportProgress) -> "BatchPreview":
    """The preview of a run (`run`) or a spec (`spec`, `folder`); `asked` changes to force files to be read again."""
    _present["report"] = report
    subject = {name: arguments.get(name) for name in ("run", "spec", "folder", "asked")}
    return _open_preview(json.dumps(subject, sort_keys=True), str(arguments.get("split") or "train"))


def _with_new_events(preview: "BatchPreview", arguments: Arguments) -> "BatchPreview":
    """The same; for an ongoing run, with its new events."""
    run = find_run(str(arguments["run"]), runs_folder()) if arguments.get("run") else None
    return preview.with_new_events(run.main_folder()) if run is not None else preview


_present: dict[str, ReportProgress] = {}
"""Receives progress; not part of the key of a cached preview."""


@lru_cache(maxsize=2)
def _open_preview(subject: str, split: str) -> "BatchPreview":
    from backend.inspect import batch_preview
    from backend.preflight import resolve

    request: dict[str, Any] = json.loads(subject)
    if request["run"]:
        run = find_run(request["run"], runs_folder())
        if run is None:
            raise InputError("{asked}: this run no longer exists", "run", asked=request["run"])
        return batch_preview.preview_run(run.main_folder(), _stages(_present["report"]), split)
    spec = resolve.resolve(require(request, "spec", dict), Path(str(request["folder"] or Path.home())))
    return batch_preview.preview(spec, _stages(_present["report"]), split)


def _stages(report: ReportProgress) -> "Any":
    def stage(name: str) -> "Report":
        report(Progress(text=name))
        return reporting(report)

    return stage


QUERIES = (
    Query("training_lengths", _lengths, warm_by="subject"),
    Query("training_rows", _rows, warm_by="subject"),
    Query("training_feature", _feature, warm_by="subject"),
)
