"""`burnish models`, `hub` and `calibrate`: lists local models, searches the Hub, downloads a model, calibrates a classifier."""

import json
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands.command import Command, add_action, add_changes, add_json, requested_run
from backend.commands.follow import number, sure_number
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError
from backend.contract.places import cache_folder, is_offline, runs_folder
from backend.contract.run.folder import RunFolder, find_run, run_folders
from backend.contract.safe_files import user_path

if TYPE_CHECKING:
    from backend.contract.rpc.models import ModelChoice
    from backend.contract.rpc.predictions import CalibrationReport
    from backend.models.compatibility import RunNeeds

_HEADINGS = {"demo": "demo models", "recent": "used before", "run": "made by runs", "cache": "in the Hub cache", "hub": "on the hub"}  # fmt: skip


def _add_run_needs(parser: ArgumentParser) -> None:
    parser.add_argument("--task", metavar="NAME", default="", help="show for each model whether it can do this task")
    parser.add_argument("--engine", metavar="NAME", default="", help="show whether this engine supports it")
    parser.add_argument(
        "--memory", metavar="GB", type=float, default=0.0, help="show whether it fits into this much memory"
    )
    add_json(parser)


def _models_arguments(parser: ArgumentParser) -> None:
    _add_run_needs(parser)


def _hub_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    search = add_action(actions, "search", "search models on the Hub by name, most downloaded first")
    search.add_argument(
        "query", metavar="QUERY", nargs="?", default="", help="words in the name (default: list popular models)"
    )
    search.add_argument("--limit", metavar="N", type=int, default=20, help="maximum number of results (default: 20)")
    _add_run_needs(search)
    search.set_defaults(execute_action=_search)
    download = add_action(actions, "download", "download a model, resuming an interrupted download")
    download.add_argument("name", metavar="ID", help="the model's ID, for example google/mt5-small")
    download.add_argument("--revision", metavar="NAME", default="main", help="branch, tag or commit (default: main)")
    add_json(download)
    download.set_defaults(execute_action=_download)


def _models(arguments: Namespace) -> int:
    import msgspec

    from backend.contract.rpc.models import ModelChoices
    from backend.models import local_models  # loads the hub library

    found = local_models.choices(_run_needs(arguments), [], run_folders(runs_folder()))
    if arguments.json:
        print(msgspec.json.encode(ModelChoices(found)).decode())
    else:
        _print(found)
    return 0


def _hub(arguments: Namespace) -> int:
    return arguments.execute_action(arguments)


def _search(arguments: Namespace) -> int:
    import msgspec

    from backend.models import hub_search

    found = hub_search.search(
        arguments.query, _run_needs(arguments), is_offline=is_offline(), most=max(1, arguments.limit)
    )
    if arguments.json:
        print(msgspec.json.encode(found).decode())
    elif not found.models:
        print(f"the Hub has no model whose name contains {arguments.query!r}; try fewer or different words")
    else:
        _print(found.models)
        if found.is_cut:
            print(f"and more; --limit shows more than {arguments.limit}")
    return 0


def _download(arguments: Namespace) -> int:
    import msgspec

    from backend.models import hub_search

    screen = ProgressScreen()
    progress = _DownloadProgress(screen, f"downloading {arguments.name}")
    try:
        found = hub_search.download(
            arguments.name, arguments.revision, cache_folder() / "weights", progress, None, is_offline=is_offline()
        )
    finally:
        screen.close()
    if arguments.json:
        print(msgspec.json.encode(found).decode())
    else:
        print(f"{found.name} at {found.commit[:12]}: {found.fetched_mb:.1f} MB in {found.seconds:.0f} s")
        print(found.folder)
    return 0


class _DownloadProgress:
    """Shows a download with its speed and remaining time."""

    def __init__(self, screen: ProgressScreen, name: str) -> None:
        self._screen, self._name = screen, name
        self._began: tuple[float, int] | None = None

    def __call__(self, done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        if self._began is None:
            self._screen.start_stage(self._name, total, unit)
            self._began = (now, done)
        seconds, brought = now - self._began[0], done - self._began[1]
        speed = brought / seconds if seconds > 1 else 0.0
        words = f"{speed / 1e6:.1f} MB/s, {(total - done) / speed:.0f} s left" if speed else ""
        self._screen.advance(done, total, words)


def _run_needs(arguments: Namespace) -> "RunNeeds":
    from backend import registry
    from backend.models.compatibility import RunNeeds

    if arguments.task:
        registry.find("task", arguments.task, "--task")
    if arguments.engine:
        registry.find("engine", arguments.engine, "--engine")
    return RunNeeds(arguments.task, arguments.engine, free_mb=arguments.memory * 1000)


def _print(models: "list[ModelChoice]") -> None:
    group = ""
    width = max(len(one.name if one.group in ("cache", "hub") else one.title or one.name) for one in models)
    for one in models:
        if one.group != group:
            group = one.group
            print(f"{_HEADINGS[group]}:")
        title = one.name if group in ("cache", "hub") else one.title or one.name
        print(f"  {title:<{width}}  {_facts(one)}".rstrip())
        for sentence in filter(None, (f"not for this run: {one.problem}" if one.problem else "", *one.notes)):
            print(f"      {sentence}")


def _facts(one: "ModelChoice") -> str:
    facts = (
        one.model_type,
        f"{one.parameters / 1e6:,.1f} M parameters" if one.parameters else "",
        f"{one.size_mb:,.0f} MB" if one.size_mb else "",
        one.licence,
        f"{one.downloads:,} downloads" if one.downloads is not None else "",
        f"{one.started_mb:,.0f} MB of it already downloaded" if one.started_mb else "",
        one.use,
    )
    return ", ".join(filter(None, facts))


# Calibration


def _calibrate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_OR_MODEL", help="name or folder of a run, or a model folder")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--measure", action="store_true", help="only measure what it would do; change nothing")
    what.add_argument("--remove", action="store_true", help="let the model predict as it was trained")
    parser.add_argument(
        "--data", metavar="FILE", type=Path, help="labeled rows to fit it on (default: the run's validation rows)"
    )
    add_changes(parser, "hardware.device=cpu")
    add_json(parser)


def _calibrate(arguments: Namespace) -> int:
    from backend.inference import calibration  # loads scipy

    run = find_run(arguments.run, runs_folder())
    model = _model_of(arguments.run, run)
    if arguments.remove:
        there = calibration.remove(model)
        if arguments.json:
            print(json.dumps({"removed": there}))
        else:
            print(f"{model}: {'its calibration is removed' if there else 'it has no calibration'}")
        return 0
    if run is not None and arguments.data is None:
        if arguments.changes:
            raise InputError("--set: it is for rows that are predicted first; name them with --data")
        from backend.helper.queries.predictions import report_calibration  # loads pyarrow

        found = report_calibration(run.main_folder(), "" if arguments.measure else "fit")
    else:
        found = _calibrate_on_file(model, arguments)
    if arguments.json:
        import msgspec

        print(msgspec.json.encode(found).decode())
    else:
        _print_calibration(found)
    return 0


def _model_of(name: str, run: RunFolder | None) -> Path:
    """The folder whose model is calibrated. Raises InputError."""
    model = requested_run(name).model if run is not None else user_path(name).absolute()
    if run is not None:
        run.check()
    if not (model / "config.json").is_file():
        requested_run(name)  # says which runs there are, or of a group its own
        raise InputError(f"{name}: this run has no model yet; let it finish, or stop it, first")
    return model


def _calibrate_on_file(model: Path, arguments: Namespace) -> "CalibrationReport":
    from backend.inference import calibration

    if arguments.data is None:
        raise InputError("--data: name labeled rows to fit the calibration on; only a run has its own")
    screen = ProgressScreen()
    try:
        rows = calibration.answer_rows(
            arguments.run,
            arguments.data,
            arguments.changes,
            screen.report("evaluating"),
            lambda stage: screen.line(stage.lower()),
        )
    finally:
        screen.close()
    found = calibration.measure(rows)
    if not arguments.measure:
        calibration.save(model, found, rows)
    return calibration.describe(model, found, rows)


def _print_calibration(found: "CalibrationReport") -> None:
    state = "saved in the model" if found.applied is not None else "not saved"
    print(f"temperature {found.temperature:.4g}, fitted on {found.rows} rows, {state}")
    print(f"{'':<28} {'before':<28} after, on rows it was not fitted on")
    for title, name in (("expected calibration error", "error"), ("loss", "loss")):
        before, after = (
            sure_number(getattr(side, name), getattr(side, f"{name}_interval")) for side in (found.before, found.after)
        )
        print(f"{title:<28} {before:<28} {after}")
    print(f"{'accuracy':<28} {number(found.accuracy):<28} {number(found.accuracy)}")
    print(found.sentence)


COMMANDS = (
    Command(
        "calibrate",
        "make a classifier's probabilities trustworthy (temperature scaling)",
        _calibrate_arguments,
        _calibrate,
    ),
    Command("models", "list the models on this computer", _models_arguments, _models),
    Command("hub", "search the Hub, or download a model", _hub_arguments, _hub),
)
