"""What a real backend says, read in German on the real pages."""

import dataclasses
import functools
import gettext
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel, QWidget

from app.core import formatting, i18n
from app.core.tasks import learn_tasks
from app.pages.new_run.page import Page as NewRun
from app.pages.run.page import Page as Run
from app.services.backend_client import BackendClient, backend_process
from app.services.context import AppContext
from backend import catalog
from backend.contract.resources import resource
from backend.contract.run import events
from backend.contract.run.folder import RunFolder
from backend.training.failures.failure import FailureContext, failure_event
from backend.training.pending_metrics import NonFiniteLossError


@pytest.fixture(autouse=True)
def german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For the backend's messages alone: the pages' own constants were looked up in English when they were imported."""
    catalogue = gettext.translation(i18n.DOMAIN, str(resource("languages")), ["de"])
    monkeypatch.setattr(i18n, "_code", "de")
    monkeypatch.setattr(i18n, "lookup", lambda text: catalogue.gettext(text) if text else text)
    monkeypatch.setattr(i18n, "lookup_plural", catalogue.ngettext)
    yield
    english = catalog.catalog()  # the window keeps the titles of what it has met
    formatting.learn_metrics(english.metrics)
    learn_tasks(english.tasks)


@pytest.fixture
def real(context: AppContext) -> Iterator[AppContext]:
    """The services with one real worker of the helper, so that the framework is loaded in one process."""
    worker = functools.partial(backend_process, ["_query", "--as-run"], {})
    made = dataclasses.replace(context, client=BackendClient(make_process=worker))
    yield made
    made.client.close()


def shown(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel))


def spec(**columns: str) -> dict[str, Any]:
    train = str(resource("demo", "sentiment", "train.csv"))
    return {
        "version": 1,
        "name": "german",
        "task": {"type": "text_classification"},
        "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"source": "files", "train": train, "columns": columns},
    }


def test_a_refusal_and_the_cost_of_a_run_are_read_in_german(qtbot, real):
    page = NewRun(real)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitUntil(lambda: page.catalog is not None)
    page.load_spec(spec(text="sentence", label="label"), "loaded")
    qtbot.waitUntil(lambda: "ie Spalte 'sentence' gibt es nicht; es gibt" in shown(page))
    page.load_spec(spec(text="text", label="label") | {"training": {"batch_size": 4000}}, "loaded")
    qtbot.waitUntil(lambda: "Der Batch von 4000 ist größer als die Daten" in shown(page))


def test_a_failure_is_read_in_german_and_its_event_stays_english(qtbot, context, runs: Path):
    run = RunFolder(runs / "sentiment-failed")
    end = failure_event(NonFiniteLossError(step=9, before_change=False), 9, FailureContext(run))
    said = [*run.events.read_bytes().splitlines(keepends=True)[:-1], events.encode(end)]
    run.events.write_bytes(b"".join(said))
    page = Run(context)
    qtbot.addWidget(page)
    page.show()
    page.show_run(str(run.path))
    qtbot.waitUntil(lambda: page.watcher is not None and page.watcher.is_caught_up)
    qtbot.waitUntil(lambda: "Der Loss bei Schritt 9 ist keine Zahl" in page.banner.text())
    assert "Verringern Sie" in page.banner.text()
    assert "the loss at step 9 is not a number" in run.events.read_text()
