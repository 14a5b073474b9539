"""Answers `training_lengths`, `training_rows` and `training_feature`: data as the training of a spec or a run sees it."""

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.rpc.protocol import Progress
from backend.contract.rpc.training_data import TrainingFeature, TrainingLengths, TrainingRows
from backend.contract.run.folder import find_run
from backend.helper.query import Arguments, Query, Tell, reporting, require

if TYPE_CHECKING:
    from backend.data.sources.source import Report
    from backend.inspect.batch_preview import BatchPreview

PAGE = 100
MAX_NUMBERS = 12_000
"""Of an array that are sent to the window, so that no answer becomes too large for a line."""


def _lengths(arguments: Arguments, tell: Tell) -> TrainingLengths:
    from backend.inspect.length_report import training_lengths  # loads the data room

    return training_lengths(_preview(arguments, tell), _stages(tell))


def _rows(arguments: Arguments, tell: Tell) -> TrainingRows:
    from backend.inspect import feature_view

    look = _preview(arguments, tell)
    start, count = int(arguments.get("start") or 0), int(arguments.get("count") or PAGE)
    if arguments.get("step") is not None:
        return feature_view.rows_of_step(_with_new_events(look, arguments), int(arguments["step"]), start, count)
    if arguments.get("row") is not None:
        start = int(look.features_of(int(arguments["row"]))[0])
    return feature_view.rows_in_order(look, start, count)


def _feature(arguments: Arguments, tell: Tell) -> TrainingFeature:
    from backend.inspect import feature_view

    step = arguments.get("step")
    feature = int(require(arguments, "feature", int))
    return feature_view.view_feature(
        _preview(arguments, tell), feature, None if step is None else int(step), MAX_NUMBERS
    )


def _preview(arguments: Arguments, tell: Tell) -> "BatchPreview":
    """Of a run (`run`) or of a spec (`spec`, `folder`); `asked` changes when files are to be looked at anew."""
    _present["tell"] = tell
    subject = {name: arguments.get(name) for name in ("run", "spec", "folder", "asked")}
    return _open_preview(json.dumps(subject, sort_keys=True), str(arguments.get("split") or "train"))


def _with_new_events(look: "BatchPreview", arguments: Arguments) -> "BatchPreview":
    """The same; of a run that goes on with what it has said since."""
    run = find_run(str(arguments["run"]), runs_folder()) if arguments.get("run") else None
    return look.with_new_events(run.main_folder()) if run is not None else look


_present: dict[str, Tell] = {}
"""Whom to tell; no part of the key by which a look is found again."""


@lru_cache(maxsize=2)
def _open_preview(subject: str, split: str) -> "BatchPreview":
    from backend.inspect import batch_preview
    from backend.preflight import resolve

    asked: dict[str, Any] = json.loads(subject)
    if asked["run"]:
        run = find_run(asked["run"], runs_folder())
        if run is None:
            raise InputError("{asked}: this run no longer exists", "run", asked=asked["run"])
        return batch_preview.preview_run(run.main_folder(), _stages(_present["tell"]), split)
    spec = resolve.resolve(require(asked, "spec", dict), Path(str(asked["folder"] or Path.home())))
    return batch_preview.preview(spec, _stages(_present["tell"]), split)


def _stages(tell: Tell) -> "Any":
    def stage(name: str) -> "Report":
        tell(Progress(text=name))
        return reporting(tell)

    return stage


QUERIES = (
    Query("training_lengths", _lengths, warm_by="subject"),
    Query("training_rows", _rows, warm_by="subject"),
    Query("training_feature", _feature, warm_by="subject"),
)
