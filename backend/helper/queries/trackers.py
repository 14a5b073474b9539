"""Answers queries about trackers: which are set up, and their settings."""

from backend.contract.rpc.trackers import TrackerList
from backend.helper.query import Arguments, Query, ReportProgress, require
from backend.mirrors import mirror


def _trackers(arguments: Arguments, report: ReportProgress) -> TrackerList:
    return TrackerList({name: settings.model_dump() for name, settings in mirror.read_trackers().items()})


def _save(arguments: Arguments, report: ReportProgress) -> TrackerList:
    name, settings = require(arguments, "name"), arguments.get("settings")
    trackers = {other: one for other, one in mirror.read_trackers().items() if other != name}
    if settings is not None:
        trackers[name] = mirror.check_settings(name, settings)
    mirror.write_trackers(trackers)
    return _trackers(arguments, report)


QUERIES = (Query("trackers", _trackers), Query("save_tracker", _save))
