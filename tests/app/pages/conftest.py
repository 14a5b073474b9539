"""Panels are tested with the real widgets, recorded runs and a tiny real helper process."""

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QApplication, QWidget

from app import theme
from app.core import preferences
from app.services.backend_client import BackendClient
from app.services.context import AppContext
from backend.contract.run import events
from backend.contract.run.folder import RunFolder
from tests.app.gone import gone
from tests.app.helper_process import small_helper
from tests.app.pages.recorded_runs import copy_recorded
from tests.app.pages.shared_helper import SharedHelperClient

_DELAYS = (
    "app.services.latest_question.DELAY_MS",
    "app.pages.new_run.data.data_controller.GLANCE_DELAY_MS",
    "app.pages.new_run.draft_controller.CALM_MS",
    "app.pages.new_run.model.model_sources.SEARCH_DELAY_MS",
    "app.pages.new_run.model.model_sources.DETAILS_DELAY_MS",
    "app.pages.new_run.settings_search.PATIENCE_MS",
    "app.pages.predictions.filter_bar.CALM_MS",
    "app.pages.predictions.interactive.target_facts.CALM_MS",
    "app.pages.predictions.interactive.try_box.PIECE_MS",
    "app.pages.predictions.threshold_view.CALM_MS",
    "app.pages.run.page.REFRESH_MS",
    "app.pages.run.plots.TURN_MS",
    "app.pages.run.comparison.FEED_MS",
    "app.pages.run.run_curves.FEED_MS",
    "app.pages.runs.overlay_plot.FEED_MS",
    "app.pages.tokenizer.compare.aligned_tokens.CALM_MS",
    "app.pages.tokenizer.compare.compare_tab.CALM_MS",
    "app.pages.tokenizer.text.text_tab.CALM_MS",
    "app.pages.tokenizer.train.extender.CALM_MS",
    "app.pages.tokenizer.train.extender.COUNT_MS",
    "app.pages.tokenizer.vocabulary.piece_cards.CALM_MS",
    "app.pages.tokenizer.vocabulary.vocabulary_table.CALM_MS",
    "app.services.library_watcher.ENDED_MS",
    "app.services.library_watcher.INTERVAL_MS",
    "app.services.run_watcher.OVER_MS",
    "app.widgets.forms.path_field.REST_MS",
    "app.widgets.plots.live_plot.TURN_MS",
)
"""How long a page waits for a person to stop typing, before it draws anew, or before it looks again at what is over."""
SHORT_MS = {"services": 150, "pages": 5, "widgets": 5}
"""By the room; each look at the disk costs some milliseconds, and what is over is looked at less often than what lives."""


@pytest.fixture(autouse=True, scope="session")
def eager() -> Iterator[None]:
    """No page waits for more to come: what a test types is typed within one turn of the event loop."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _DELAYS:
            patch.setattr(name, SHORT_MS[name.split(".")[1]])
        yield


@pytest.fixture(autouse=True)
def look(qapp: QApplication) -> None:
    """The window's own style: sizes and colours as people see them."""
    if not qapp.styleSheet():
        theme.apply(qapp, "light")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A runs folder with every recorded run in it."""
    return copy_recorded(tmp_path / "runs")


@pytest.fixture
def diverged(runs: Path) -> RunFolder:
    """A finished run whose loss broke at its second step."""
    folder = RunFolder(shutil.copytree(runs / "sentiment-finished", runs / "diverged"))
    losses = iter([1.1, *(60.0 - number / 100 for number in range(5000))])

    def break_loss(event: events.Event) -> events.Event:
        if isinstance(event, events.EvaluationFinished):
            return msgspec.structs.replace(event, metrics={**event.metrics, "loss": 31.4, "accuracy": 0.25})
        return msgspec.structs.replace(event, loss=next(losses)) if isinstance(event, events.StepFinished) else event

    many = map(break_loss, events.decode_lines(folder.events.read_bytes())[0])
    folder.events.write_bytes(b"".join(map(events.encode, many)))
    return folder


@pytest.fixture(scope="module")
def helper() -> Iterator[BackendClient]:
    """The owner of a small real helper process, which answers at once."""
    made = BackendClient(make_process=small_helper)
    yield made
    made.close()


@pytest.fixture
def client(qapp: QApplication, helper: BackendClient) -> SharedHelperClient:
    """A client whose helper remembers nothing of other tests."""
    made = SharedHelperClient(helper)
    made.ask("begin_anew", {}, lambda _: None, lambda _: None)
    return made


@pytest.fixture
def context(qtbot, runs: Path, tmp_path: Path, client: SharedHelperClient):
    """The services with a small real helper process."""
    chosen = preferences.load(tmp_path / "config" / "preferences.json")
    chosen.set("runs_folder", str(runs))
    made = dataclasses.replace(AppContext.create(chosen), client=client)
    made.library_watcher.stop()
    yield made
    made.close()


@pytest.fixture
def watched(context: AppContext) -> None:
    """The list of runs follows what happens on disk."""
    context.library_watcher.refresh_now()


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """The services for pages that all tests of a module share; their list of runs is read when a test says so."""
    chosen = preferences.load(tmp_path_factory.mktemp("config") / "preferences.json")
    made = dataclasses.replace(AppContext.create(chosen), client=BackendClient(make_process=small_helper))
    made.library_watcher.stop()
    yield made
    made.close()


@pytest.fixture
def shared_context(services: AppContext, runs: Path) -> AppContext:
    """The same, with the runs of this test."""
    services.library_watcher.stop()  # the test before may have made it go on
    services.library.root, services.library.runs = runs, []
    return services


@pytest.fixture(scope="module")
def predictions_page(qapp: QApplication, services: AppContext) -> Iterator[QWidget]:
    """One Predictions page for all tests of a module, each of which shows it a run of its own."""
    from app.pages.predictions.page import Page  # after the look is chosen

    theme.apply(qapp, "light")
    made = Page(services)
    made.resize(1100, 760)
    made.show()
    yield made
    gone(made)


@pytest.fixture
def predictions(predictions_page, shared_context: AppContext) -> QWidget:
    """The page, which neither shows nor says nor waits for anything about the run before."""
    browser, overview = predictions_page.browser, predictions_page.browser.overview
    for part in (browser.chosen, browser.statistics):
        part.close()  # an answer would choose what the overview shows of the next run
    overview.clear()
    overview.labels.show_rows((), [])
    overview.parts.buttons()[0].click()
    browser.empty.set_words("", "")
    browser.stack.setCurrentWidget(browser.view)
    return predictions_page


@pytest.fixture
def try_box(qtbot, context: AppContext) -> QWidget:
    """The Try side without the page around it, which costs as much."""
    from app.pages.predictions.interactive.try_box import TryBox  # after the look is chosen

    made = TryBox(context)
    qtbot.addWidget(made)
    made.resize(1100, 640)
    made.show()
    made.on_shown()
    qtbot.waitUntil(lambda: made._has_catalog)
    return made


@pytest.fixture
def new_run(qtbot, context):
    """The New run page with the catalog."""
    from app.pages.new_run.page import Page  # after the look is chosen

    made = Page(context)
    qtbot.addWidget(made)
    made.resize(1068, 800)
    made.show()
    qtbot.waitUntil(lambda: made.catalog is not None, timeout=60_000)  # the first catalog is built
    return made
