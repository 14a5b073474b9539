"""What can be done on each page, known before the page is built, so that the palette finds it from the first second.

A page binds its own actions with `Action.bind`. Until it is built, an obstacle here says what is missing.
"""

from dataclasses import replace

from app.core.actions import Action
from app.core.i18n import tr

NEW_RUN_SECTIONS = {
    "task": tr("Task"),
    "data": tr("Data"),
    "model": tr("Model"),
    "hardware": tr("Hardware"),
    "settings": tr("Settings"),
    "search": tr("Search"),
}
TOKENIZER_TABS = {
    "text": (tr("Text"), tr("Drop a tokenizer or a text file here")),
    "vocabulary": (tr("Vocabulary"), tr("Search, sort, count and export all pieces")),
    "compare": (tr("Compare"), tr("Compare two to four tokenizers on a text or on data")),
    "data": (tr("My data"), tr("Lengths, padding, and what the model sees")),
    "train": (tr("Train"), tr("Train a tokenizer, or add tokens to this one")),
}
"""Title and subtitle."""
OPEN_A_RUN = tr("Open a run first.")
OPEN_PREDICTIONS = tr("Open a run's predictions first.")
SELECT_A_RUN, SELECT_A_QUEUED_RUN = tr("Select a run first."), tr("Select a queued run.")
SELECT_SEVERAL = tr("Select two or more runs: hold Ctrl or Shift while you click.")
OPEN_NEW_RUN = tr("Open New run first.")


def _absent(reason: str, actions: dict[str, Action]) -> dict[str, Action]:
    return {key: replace(action, obstacle=lambda: reason) for key, action in actions.items()}


NEW_RUN = {
    "undo": Action(tr("Undo"), shortcut="Ctrl+Z", icon="undo", words="back"),
    **_absent(
        OPEN_NEW_RUN,
        {"redo": Action(tr("Redo"), shortcut="Ctrl+Shift+Z; Ctrl+Y", icon="redo", words=tr("again"))},
    ),
    "find": Action(tr("Find a setting"), shortcut="Ctrl+F", icon="search"),
    **{
        name: Action(tr("Go to {title}", title=title), shortcut=f"Alt+{number}", icon="chevron-right")
        for number, (name, title) in enumerate(NEW_RUN_SECTIONS.items(), start=1)
    },
    "new": Action(tr("New draft"), icon="plus", words=tr("clear empty discard")),
    "open": Action(tr("Open spec"), shortcut="Ctrl+O", icon="folder", words=tr("yaml load file")),
    "save": Action(tr("Save spec"), shortcut="Ctrl+S", icon="save", words=tr("yaml file")),
    "changes": Action(tr("Show changed settings"), icon="settings", words=tr("defaults reset")),
    "presets": Action(tr("Browse presets"), icon="table"),
    "save_preset": Action(tr("Save settings as preset"), icon="save"),
    "copy": Action(tr("Copy command"), icon="copy", words="terminal"),
    "demo": Action(tr("Try the demo"), icon="bolt"),
    "copy_queue": Action(tr("Copy command to queue the run"), icon="copy", words="terminal"),
    **_absent(
        OPEN_NEW_RUN,
        {
            "measure": Action(tr("Measure time"), icon="gauge"),
            "start": Action(tr("Start training"), shortcut="Ctrl+Return", icon="play"),
            "queue": Action(tr("Add run to queue"), shortcut="Ctrl+Shift+Return", icon="plus"),
        },
    ),
}
RUN = _absent(
    OPEN_A_RUN,
    {
        "checkpoint": Action(tr("Save a checkpoint now"), shortcut="Ctrl+S", icon="save"),
        "pause": Action(tr("Pause the run"), icon="pause"),
        "stop": Action(tr("Stop the run"), icon="stop"),
        "start_now": Action(tr("Start the queued run now"), icon="play"),
        "resume": Action(tr("Resume the run"), shortcut="Ctrl+R", icon="play"),
        "try": Action(tr("Try the run's model"), shortcut="Ctrl+T", icon="text"),
        "predictions": Action(tr("Show predictions"), shortcut="Ctrl+P", icon="target"),
        "export": Action(tr("Export the run's model"), icon="download"),
        "duplicate": Action(tr("Duplicate this run"), shortcut="Ctrl+D", icon="copy"),
        "search": Action(tr("Search around this run"), icon="search"),
        "folder": Action(tr("Open run folder"), icon="folder"),
        "curves": Action(tr("Export curves for TensorBoard"), icon="download"),
    },
)
RUNS = {
    "search": Action(tr("Search runs"), shortcut="Ctrl+F", icon="search"),
    **_absent(
        SELECT_A_RUN,
        {
            "open": Action(tr("Open selected run"), icon="chart"),
            "resume": Action(tr("Resume selected run"), shortcut="Ctrl+R", icon="play"),
            "start_now": Action(tr("Start selected queued run now"), icon="play"),
            "stop": Action(tr("Stop selected run"), icon="stop"),
            "predictions": Action(tr("Show predictions of selected run"), icon="target"),
            "duplicate": Action(tr("Duplicate selected run"), shortcut="Ctrl+D", icon="copy"),
            "folder": Action(tr("Open folder of selected run"), icon="folder"),
            "delete": Action(tr("Move selected runs to trash"), shortcut="Del", icon="trash"),
        },
    ),
    **_absent(SELECT_SEVERAL, {"compare": Action(tr("Compare selected runs"), shortcut="Ctrl+E", icon="chart")}),
    **_absent(
        SELECT_A_QUEUED_RUN,
        {
            "move_next": Action(tr("Start selected queued run next"), icon="first"),
            "move_earlier": Action(tr("Start selected queued run earlier"), icon="chevron-left"),
            "move_later": Action(tr("Start selected queued run later"), icon="chevron-right"),
        },
    ),
}
PREDICTIONS = {
    "rows": Action(tr("Show prediction rows"), icon="table"),
    "try": Action(tr("Try a model on your own text"), icon="text"),
    **_absent(OPEN_PREDICTIONS, {"export": Action(tr("Export predictions"), shortcut="Ctrl+E", icon="download")}),
}
TOKENIZER = {
    name: Action(tr("Tokenizer: {title}", title=title), icon="text", words=subtitle)
    for name, (title, subtitle) in TOKENIZER_TABS.items()
}
SETTINGS = {
    name: Action(title, icon="settings", kind=tr("Setting"))
    for name, title in {
        "theme": tr("Theme"),
        "text_size": tr("Text size"),
        "language": tr("Language"),
        "runs_folder": tr("Runs folder"),
        "cache_folder": tr("Cache folder and clearing the cache"),
        "offline": tr("Work offline"),
        "token": tr("Sign in to the Hub"),
        "consents": tr("Approved custom model code"),
        "machines": tr("Machines for training (ssh)"),
        "trackers": tr("Trackers (TensorBoard, MLflow, W&B, Trackio)"),
        "desktop_messages": tr("Desktop notifications"),
        "csv_bom": tr("UTF-8 BOM in CSV files"),
        "csv_defuse": tr("Escape formulas in CSV files"),
    }.items()
}
PAGE_ACTIONS = {
    "new_run": NEW_RUN,
    "run": RUN,
    "runs": RUNS,
    "predictions": PREDICTIONS,
    "tokenizer": TOKENIZER,
    "settings": SETTINGS,
}
